"""Widgets: lists drawn line by line, the bars around them, the prompt, the drawer and its pages.

Here: what draws and has focus, independent of its content. Not here: the text of rows (`onnxjson_tui.rows`), the keys
(`onnxjson_tui.keys`).

Read first: `lines` (a list of any length), `prompt` (the input line), `drawer` (pages at the bottom).
"""
