"""What is wrong with a file, for the commands that say so: findings with their file, line and column."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from onnxjson.checking import Finding

if TYPE_CHECKING:
    from onnxjson.files import Loaded


def of_structure(path: Path, loaded: "Loaded") -> list[Finding]:
    """What `onnxjson.structure` finds in the model, each with its place in the text where the file is one."""
    from onnxjson.structure import check_structure

    return located(path, loaded, list(check_structure(loaded.model)))


def located(path: Path, loaded: "Loaded", found: list[Finding]) -> list[Finding]:
    """`found` with the file's name, and line and column of each address where the file is our text.

    Raises:
        OSError: the text cannot be read again.
    """
    places: dict[str, tuple[int, int]] = {}
    addresses = [finding.address for finding in found if finding.address and not finding.line]
    if addresses and loaded.format == "json":
        from onnxjson.structure import locate

        places = dict(locate(path.read_text(encoding="utf-8"), addresses))
    located_findings = []
    for finding in found:
        line, column = places.get(finding.address, (finding.line, finding.column))
        located_findings.append(msgspec.structs.replace(finding, file=str(path), line=line, column=column))
    return located_findings
