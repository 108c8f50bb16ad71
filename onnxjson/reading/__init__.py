"""Text of the format onnxjson/1 -> records, with every mistake named by line and column.

`exact_reader.read` is the way in. `scan` and `tree` turn text into a tree of plain JSON values, the other modules turn
trees into records; each of their functions takes a tree, the place where it stands and the `Context` that collects what
is wrong.
"""
