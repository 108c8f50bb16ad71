"""Recently opened files: a list in the state folder.

::

    $XDG_STATE_HOME/onnxjson/recent.json     mode 0600; a JSON list of absolute paths, newest first
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from onnxjson.model.errors import OnnxJsonError
from onnxjson.storage.saving import save_file
from onnxjson.storage.state import state_folder

KEPT: Final = 50
"""Maximum number of remembered files."""

_LONGEST: Final = 1 << 20
"""Maximum bytes of a list; a longer file is not from onnxjson."""


def recent_files() -> list[Path]:
    """Return recently opened files that still exist, newest first."""
    return [path for path in _remembered() if path.is_file()]


def remember(path: Path) -> None:
    """Put a file at the top of the list. Errors are ignored, since they are no reason not to open a model."""
    with suppress(OSError, OnnxJsonError):
        wanted = Path(os.path.abspath(path))
        paths = [wanted, *[each for each in _remembered() if each != wanted]][:KEPT]
        # ASCII with lone surrogates preserves names that are not UTF-8.
        data = json.dumps([str(each) for each in paths], indent=0).encode("ascii")
        folder = state_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        save_file(folder / "recent.json", lambda output: output.write(data), mode=0o600, fsync=False)


def _remembered() -> list[Path]:
    try:
        with (state_folder() / "recent.json").open("rb") as file:
            found = json.loads(file.read(_LONGEST))
    except (OSError, ValueError, RecursionError, OnnxJsonError):
        return []
    if not isinstance(found, list):
        return []
    return [Path(each) for each in found if isinstance(each, str) and each.startswith("/") and "\0" not in each]
