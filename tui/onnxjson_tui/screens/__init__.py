"""Screens next to the workbench and over it, each for one purpose: open, compare, fill in, save, recover.

Here: screens, and questions that several actions ask. Not here: what all screens are built on (`onnxjson_tui.shell`),
dialogs of a single action (`onnxjson_tui.workbench`).

Read first: `comparison` (differences of two models), `form` (the form of an edit), `saving` (questions when saving).
"""
