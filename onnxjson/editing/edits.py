"""The public names of edits: import them from here.

::

    from onnxjson import apply, edits

    model = apply(model, edits.SetAttribute(node="op:Conv", attribute="pads", value=[0, 0, 0, 0]))
    patch = edits.plan(model, edits.Script.load("rewrite.json"))
"""

from onnxjson.editing.applying import Result as Result
from onnxjson.editing.applying import apply as apply
from onnxjson.editing.applying import plan as plan
from onnxjson.editing.applying import run as run
from onnxjson.editing.catalogue import *  # noqa: F403 - the edits
from onnxjson.editing.declaration import Edit as Edit
from onnxjson.editing.declaration import Outcome as Outcome
from onnxjson.editing.script import Script as Script
from onnxjson.editing.workspace import Workspace as Workspace
