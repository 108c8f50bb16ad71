"""Tests of the reader of the text."""
