"""Names of models at URLs; `onnxjson.storage.remote` opens them."""

import os
import re
from pathlib import Path
from typing import Final

from onnxjson.model.display import visible
from onnxjson.model.errors import OutputError

LOCAL: Final[dict[str, str]] = {}
"""The URLs of this process by the paths of their local files."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(text: str) -> bool:
    """Whether a text is a URL, such as ``https://host/m.onnx`` or ``zip://m.onnx::s3://bucket/a.zip``."""
    return _URL.match(text) is not None


def shown(url: str) -> str:
    """The URL without what may be secret in it: user, password and query."""
    return re.sub(r"//[^/@]*@", "//", url).partition("?")[0]


def refuse_writing(name: str | Path) -> None:
    """Raise OutputError for a URL, and for the path of its local file: they are only read."""
    url = LOCAL.get(os.fspath(name), str(name))
    if is_url(url):
        raise OutputError(f"{visible(shown(url), None)} is a URL, which is only read; write a file with -o OUT")
