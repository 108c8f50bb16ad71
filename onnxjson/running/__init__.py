"""Run models in a sandboxed process, compare their results, verify and locate differences, prove single rewrites.

Here: the sandboxed process (worker and box), inputs for a model, engines, comparison within tolerances, verification of
two models, the search for the first node that differs, and the verification of single rewrites. No native code runs in
this process: a server forks a child with limits for each job. `worker_jobs`, `executing`, `engines`, `timing` and
`opset_conversion` run in such a child, which may crash, hang or be killed at any moment.

Not here: optimizers (`onnxjson.optimizing`) and reports of a run (`onnxjson.rendering`). The worker imports no room
above this one; the client names the module that does a job.

Read first: `worker` (the client of the sandboxed process), `model_run` (`onnxjson.run`), `verification`
(`onnxjson.verify`).
"""
