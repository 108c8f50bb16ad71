"""Rows of lists, made of a model by functions that know nothing of a screen."""
