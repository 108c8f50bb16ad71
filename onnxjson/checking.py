"""Findings: what is wrong with a document, where, and what would fit.

`Finding` is the one type for everything that a reader, a checker or native analysis has to say about a model. Codes are
stable; docs/findings.md lists them.
"""

from typing import Literal

import msgspec

from onnxjson.display import visible

Severity = Literal["error", "warning"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, or looks wrong."""

    severity: Severity
    code: str
    """Stable and documented, such as ``duplicate-key``."""
    address: str = ""
    """The element, as an address of the records, such as ``/graph/node/3/attribute/pads``; "" for the whole."""
    message: str
    """What was found, for a person; made visible, so safe to print."""
    hint: str = ""
    """What fits, or what to do."""
    file: str = ""
    line: int = 0
    """From 1; 0 where there is no text."""
    column: int = 0
    """From 1, in characters."""

    def __str__(self) -> str:
        file = visible(self.file, None)
        place = f"{file or 'text'}:{self.line}:{self.column}" if self.line else file
        head = f"{place}: " if place else ""
        where = "" if self.line or not self.address else f"{visible(self.address, None)}: "
        return f"{head}{where}{self.message}" + (f"; {self.hint}" if self.hint else "")
