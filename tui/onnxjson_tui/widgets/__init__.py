"""Widgets: lists drawn line by line, the bars around them, the line to type in."""
