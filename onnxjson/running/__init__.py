"""Models evaluated: values made for their inputs, results compared, rewrites proved.

Nothing runs in this process: `onnxjson.worker` evaluates in a guarded one.
"""
