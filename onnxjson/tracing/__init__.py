"""Traces of pipelines: what each pass, and each part of it, did to a model, kept so that it can be looked at again."""

from onnxjson.tracing.loading import load_trace
from onnxjson.tracing.provenance import Provenance, provenance
from onnxjson.tracing.recording import Recorder
from onnxjson.tracing.records import Part, Size, Step, Trace
from onnxjson.tracing.storing import write_trace

__all__ = ["Part", "Provenance", "Recorder", "Size", "Step", "Trace", "load_trace", "provenance", "write_trace"]
