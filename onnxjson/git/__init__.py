"""Models in git: read at a revision, shown, compared, merged and checked. Only this package starts git.

Here: `repository` opens what ``HEAD~1:model.onnx`` names as a model; `textconv` and `merge_driver` are started by git;
`installation` writes and checks the settings; `changed_models` lists what differs and what is not merged.

Not here: the merge itself (`onnxjson.merging`) and the commands (`onnxjson.cli`). The names `onnxjson.git.textconv`
and `onnxjson.git.merge_driver` are written into users' settings and never change.

Read first: `repository` (models at revisions), `driver_lines` (what is written into settings), `merge_driver`.
"""
