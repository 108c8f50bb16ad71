"""Did you mean ...? The names that are most like one that does not exist."""

import difflib
from collections.abc import Collection

from onnxjson.display import visible

MOST_COMPARED = 2000
"""Names that are compared letter by letter; of more, only those that begin or end alike."""

_LONGEST = 200
_ENDS = 4


def suggest(name: str, names: Collection[str]) -> str:
    """``did you mean "a" or "b"?`` with up to three names, most alike first; "" where none is like it.

    ``opType``, ``OP_TYPE`` and ``op_type`` count as alike.
    """
    wanted = _plain(name)
    spelled: dict[str, str] = {}
    for each in _comparable(name, names):
        spelled.setdefault(_plain(each), each)
    near = difflib.get_close_matches(wanted, spelled, n=3, cutoff=0.65)
    if not near:
        return ""
    return "did you mean " + " or ".join(f'"{visible(spelled[each])}"' for each in near) + "?"


def _comparable(name: str, names: Collection[str]) -> Collection[str]:
    if len(names) <= MOST_COMPARED:
        return names
    start, end = name[:_ENDS], name[-_ENDS:]
    alike = [each for each in names if each.startswith(start) or each.endswith(end)]
    alike.sort(key=lambda each: abs(len(each) - len(name)))
    return alike[:MOST_COMPARED]


def _plain(name: str) -> str:
    return name[:_LONGEST].lower().replace("_", "")
