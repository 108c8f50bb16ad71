"""Screens next to the workbench and over it: choose, confirm, fill in, compare, read.

Here: `keyed` is the base of full screens, `dialogs` that of small ones. Not here: the workbench itself and its drawer,
dialogs of a single action (`onnxjson_tui.actions`).

Read first: `keyed` (a screen with a table of keys), `dialogs` (questions and choices), `form` (the form of an edit).
"""
