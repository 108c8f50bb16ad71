"""The program, the ways into it from the command line, and its actions, which a key, a word or the palette runs.

Here: `start` turns arguments into the first screen, `app` is the Textual program and puts actions and pages into the
workbench; each other module has one kind of action, and at its end their part of the table. Not here: the declaration
of an action (`onnxjson_tui.widgets.actions`), what actions may use (`onnxjson_tui.shell.workbench`), screens that they
open (`onnxjson_tui.screens`).

Read first: `app` (the program, the table of actions), `moving` (short actions), `editing` (changes of the model).
"""
