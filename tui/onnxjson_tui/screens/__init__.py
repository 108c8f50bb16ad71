"""Screens over the workbench: to choose, to confirm, to fill in, to read."""
