"""Actions that a key, a word after ``:`` or the palette runs: one module per kind of action.

Here: the functions and, at the end of each module, their part of the table. Not here: the whole table
(`onnxjson_tui.workbench.app`), the declaration of an action (`onnxjson_tui.widgets.actions`), what actions may use
(`onnxjson_tui.shell.bench`), screens that an action opens (`onnxjson_tui.screens`).

Read first: `moving` (short actions), `editing` (actions that change the model), `forms_and_commands` (any edit).
"""
