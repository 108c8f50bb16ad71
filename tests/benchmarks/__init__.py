"""Measures onnxjson beside what else writes ONNX as text: ``python -m tests.benchmarks``; see docs/benchmarks.md."""
