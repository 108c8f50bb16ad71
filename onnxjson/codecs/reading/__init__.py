"""Text of the format onnxjson/1 -> records, with line and column of every mistake.

Start with `exact_reader.read`. `scan` and `tree` turn text into a tree of plain JSON values, the other modules turn
trees into records; each of their functions has a tree, its place, and the `Context` that collects findings.
"""

import onnxjson.codecs.reading.model  # noqa: F401 - registers the readers of all messages, whichever module is imported first
