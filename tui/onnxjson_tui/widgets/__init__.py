"""Widgets and keys: lists drawn line by line, bars, fields, drawer; what an action declares.

Here: what draws and has focus, independent of its content; all code that reads the table of actions. Not here: the text
of rows (`onnxjson_tui.rows`), the actions themselves (`onnxjson_tui.workbench`).

Read first: `lines` (a list of any length), `actions` (an entry of the table, the parser of keys), `drawer` (pages).
"""
