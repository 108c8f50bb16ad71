"""Rows of lists and drawings, computed from a model independently of any screen.

Here: lines, nodes, lanes, inspector, values of tensors, differences, conflicts. Not here: drawing the rows on a
screen (`onnxjson_tui.widgets`), reports of the command line (`onnxjson.rendering`).

Read first: `nodes` (the list of nodes), `page` (lines folded), `inspector` (one node).
"""
