"""Optimizers of models: passes, traces of their changes, benchmarks of their results.

Here: `passes` declares and runs optimizers, each in the sandboxed process; `trace_*` and `provenance` record what each
pass and each part of it changed; `bench` and `variants` compare variants of a model with each other.

Not here: the sandboxed process and verification (`onnxjson.running`), edits (`onnxjson.editing`), tables and pages of
results (`onnxjson.rendering`).

Read first: `passes.pipeline` (passes in their order), `passes.declaration` (base of all passes), `bench` (variants
compared).
"""
