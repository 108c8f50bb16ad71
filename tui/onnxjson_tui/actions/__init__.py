"""Actions that a key, a word after ``:`` or the palette runs: one table, one module per kind of action.

Here: `catalogue` is the table; each module has the functions of one kind. Not here: the declaration of an action
(`onnxjson_tui.keys.action`), what actions may use (`onnxjson_tui.shell.bench`), screens that an action opens
(`onnxjson_tui.screens`).

Read first: `catalogue` (the table), `moving` (short actions), `editing` (actions that change the model).
"""
