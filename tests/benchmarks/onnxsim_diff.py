"""What onnxsim's ``diff_graphs`` calls removed: ``python onnxsim_diff.py PAIRS``.

PAIRS is a JSON file, a list of pairs of paths of models. Prints, for each pair, the list of the outputs of the nodes of
the first that have no counterpart in the second. It needs nothing of this project.
"""

import json
import sys

import onnx
from onnxsim.model_info import diff_graphs

with open(sys.argv[1], encoding="utf-8") as file:
    pairs = json.load(file)
found = [
    [entry.outputs for entry in diff_graphs(onnx.load(one), onnx.load(other)).removed_nodes] for one, other in pairs
]
json.dump(found, sys.stdout)
