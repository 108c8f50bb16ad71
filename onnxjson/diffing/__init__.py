"""What changed between two models: which node is which, what happened to it, in words, and as a patch.

`onnxjson.diff` is the door. An `alignment` pairs nodes by structure, `events` say what the pairs and the rest mean.
"""
