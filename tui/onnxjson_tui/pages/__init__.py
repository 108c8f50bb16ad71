"""Pages of the drawer at the bottom of the workbench.

Here: changes and history, problems, tensor. Not here: the base of a page (`onnxjson_tui.widgets.drawer`), their order
(`onnxjson_tui.workbench.app`) and the actions that open one.

Read first: `history` (the steps), `problems` (findings), `tensor` (one tensor).
"""
