"""The public names of edits: import them from here.

::

    from onnxjson import apply, edits

    model = apply(model, edits.SetAttribute(node="op:Conv", attribute="pads", value=[0, 0, 0, 0]))
    patch = edits.plan(model, edits.Script.load("rewrite.json"))
"""

import re
from typing import TYPE_CHECKING

from onnxjson.editing.applying import Result as Result
from onnxjson.editing.applying import apply as apply
from onnxjson.editing.applying import plan as plan
from onnxjson.editing.applying import run as run
from onnxjson.editing.catalogue import *  # noqa: F403 - the edits
from onnxjson.editing.catalogue import NAMES as EDITS_BY_NAME
from onnxjson.editing.catalogue import edit_meant
from onnxjson.editing.declaration import Edit as Edit
from onnxjson.editing.declaration import Outcome as Outcome
from onnxjson.editing.script import Script as Script
from onnxjson.editing.workspace import Workspace as Workspace
from onnxjson.model.display import suggest

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise the AttributeError of a class that is no edit; it says what is meant."""
        edit = EDITS_BY_NAME.get(edit_meant(re.sub("(?<=[a-z])(?=[A-Z])", "-", name).lower()))
        near = suggest(name, [each.__name__ for each in EDITS_BY_NAME.values()])
        hint = f"; write {edit.__name__}" if edit else f"; {near}" if near else ""
        raise AttributeError(f"there is no edit {name!r}{hint}")
