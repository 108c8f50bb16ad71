"""What a network is, on one page: lines of blocks, expressions and repeats, from the structure of its graphs alone.

Here: which nodes compute shapes and constants, which form blocks such as attention, how nodes become expressions, and
which lines repeat. Every node belongs to exactly one line.

Not here: the search for patterns (`onnxjson.patterns`), and where lines are shown.

Read first: `lines` (what a line is, and how a graph becomes lines), `blocks` (what has a name), `repeats`.
"""
