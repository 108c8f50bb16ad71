"""Reports: models, nodes, tensors, differences, runs and traces as text, tables, JSON, Markdown and HTML.

Here: data in, lines or documents out; one subject per module and form. Nothing here moves the cursor of a terminal,
reads a file or prints.

Not here: deciding what happened (`onnxjson.diffing`, `onnxjson.running`), options and output of commands
(`onnxjson.cli`), rows of the terminal program (`onnxjson_tui.rows`).

Read first: `tables` (columns and widths), `summary` (a model at a glance), `diff_report` (a difference as data).
"""
