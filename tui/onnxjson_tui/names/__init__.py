"""Names: completion of commands and paths, and the contents of forms without their screen.

Here: names of a session, completion of the command line, fields of a form with defaults and feedback.
Not here: the screen of a form (`onnxjson_tui.screens`).

Read first: `completion` (the line after ``:``), `offers` (choices for fields), `form_filling` (fields as an edit).
"""
