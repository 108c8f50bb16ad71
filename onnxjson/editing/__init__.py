"""Named edits, scripts of edits, models edited as text, and new models.

Here: one family of edits per module, each edit a declared class; `catalogue` lists all of them. `applying` applies
edits to a model, `script` and `spelling` read and write them.
`declaration`, `parameters` and `script` also serve the passes of `onnxjson.optimizing`. `round_trip` and `drafts` serve
a model that is edited as text; `new_models` builds models from nothing.

Not here: rewriters without a name (`onnxjson.model`), exact patches (`onnxjson.patching`), optimizers
(`onnxjson.optimizing`). `edits` has the public names; modules of this room do not import it.

Read first: `declaration` (what an edit is), `workspace` (the model during edits), `applying` (how edits are applied).
"""
