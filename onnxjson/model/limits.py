"""The limits that a user can meet: sizes, depths and times beyond which a command refuses to continue.

The message of each refusal states the limit. Bounds that only shorten a list, choose an algorithm or size a cache stay
private constants of their modules.
"""

from typing import Final

# Models

MESSAGE_BYTES: Final = 2**31 - 1
"""Bytes of a protobuf message; protobuf reads no more."""

MESSAGE_DEPTH: Final = 100
"""Levels of nested messages in a model, as in protobuf's own readers."""

GRAPH_DEPTH: Final = 34
"""Levels of nested graphs in the short form of the text, including the main graph: `MESSAGE_DEPTH` allows no more."""

TEXT_DEPTH: Final = 256
"""Levels of nested objects and lists in a document."""

TYPE_DEPTH: Final = 50
"""Levels of sequences, maps and optional types around a type that is written as one string."""

LARGEST_DIM: Final = 2**63 - 1
"""The largest size of a dimension (int64)."""

EDITOR_MESSAGE_BYTES: Final = 1 << 30
"""Bytes of one message of an editor to the language server."""

# Patterns of names

PATTERN_CHARACTERS: Final = 500
"""Characters of a wildcard pattern or a regular expression in a selector or an edit."""

PATTERN_COPIES: Final = 4_000
"""Parts of a regular expression in which every count, such as ``{100}``, is written out."""

PATTERN_NAME_CHARACTERS: Final = 10_000
"""Characters of a name that a pattern can match."""

PATTERN_SECONDS: Final = 2.0
"""CPU seconds that one regular expression may take on all names of a model."""

PATTERN_TEXT: Final = 20_000
"""Characters of a pattern of structure."""

PATTERN_DEPTH: Final = 60
"""Levels of calls inside calls in a pattern of structure."""

PATTERN_STEPS: Final = 1_000_000
"""Comparisons of a part of a pattern with a part of a model, in one search; and 20 more for each node."""

# Commands

NAME_TABLE_BYTES: Final = 64 << 20
"""Bytes of a CSV table of old and new names."""

BATCH_CONSTANT_BYTES: Final = 256 << 20
"""Bytes of a constant that a new batch size makes larger."""

CONFLICT_TEXT_BYTES: Final = 512 << 20
"""Bytes of a text that contains both sides of merge conflicts."""

TEXTCONV_BYTES: Final = 256 << 20
"""Bytes of a text that is written for `git diff`."""

TRACE_BYTES: Final = 512 << 20
"""Bytes of the trace.json of a recorded optimization."""

RANDOM_INPUT_BYTES: Final = 1 << 31
"""Bytes of one random input."""

UNPACKED_BYTES: Final = 256 << 20
"""Bytes of an array in a .npz file that may be packed to less than a hundredth."""

PART_CONSTANT_BYTES: Final = 256 << 20
"""Bytes of all constants of a part of a model that runs on its own to verify a rewrite."""

REWRITE_INPUT_ELEMENTS: Final = 1 << 24
"""Elements of all inputs of such a part."""

EXPANDED_NODES: Final = 500_000
"""Nodes of a model whose calls of functions are replaced by their bodies, for the analysis by onnx."""

EXPANDED_RUN_NODES: Final = 20_000
"""The same for a run: the time that onnxruntime needs to replace calls grows with the square of their number."""

ANALYSIS_SECONDS: Final = 30.0
"""Maximum seconds of an analysis by onnx: checker, shape inference, version converter or inliner."""

ANALYSIS_PROCESSOR_SECONDS: Final = 20
"""Maximum seconds of CPU time of such an analysis."""

ANALYSIS_BYTES: Final = 2 << 30
"""Maximum bytes of address space of such an analysis; for bigger models, 4 times the size of the model."""
