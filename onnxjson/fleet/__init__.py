"""Fleets: one command over thousands of models, on this machine or on a cluster.

Here: which models there are, workers that share them, a process with limits for each worker, a row for each model, and
the summary of all rows.

Not here: what a command does with a model: a worker calls the command line. Models at URLs
(`onnxjson.storage.remote`).

Read first: `listing` (which models), `engine` (the workers), `results` (the rows).
"""
