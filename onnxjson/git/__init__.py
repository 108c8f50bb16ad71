"""Models in git: read at a revision. The only place that starts git.

`repository` is the door: what ``HEAD~1:model.onnx`` names, as a model.
"""
