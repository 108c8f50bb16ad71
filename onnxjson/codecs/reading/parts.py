"""Big texts that are not canonical as a whole, such as texts edited by hand: only what differs is read exactly.

The text of an element depends on nothing else, and in the canonical layout each element of the main graph starts on a
line with four spaces. So runs of consecutive elements are read by `fast`, which accepts nothing but canonical texts,
and a short element stands in for each run while the exact reader reads the rest. A mistake in 100,000 nodes is found
about as fast as in ten.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec

from onnxjson.codecs.canonical_values import is_utf8, owner_name
from onnxjson.codecs.reading import exact_reader, fast
from onnxjson.model.conflicts import Conflict
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError, Finding
from onnxjson.model.payloads import Payload

_FROM: Final = 1 << 18
"""Bytes of a text from which it is divided."""

_RUN: Final = 512
"""Maximum number of elements in a run."""

_MOST_TRIES: Final = 2000
"""Runs that are read before the text is read as a whole, since hardly any element is canonical."""

_START: Final = b"\n    {"
_LINE: Final = b"\n    ["
_MARK: Final = "@run:"
_DOCUMENT: Final = b'{\n"format": "onnxjson/1",\n"graph": {\n  "%b": [\n    {%b\n  ]\n}\n}\n'
_STAND_INS: Final = {
    "node": b'"op_type": "%b", "output": ["%b"]},',
    "initializer": b'"name": "%b", "type": "float32[0]", "values": []},',
    "value_info": b'"name": "%b"},',
}
_KINDS: Final = ("node", "initializer", "input", "output", "value_info")
_OF_THE_WHOLE: Final = ("unknown-owner", "ambiguous-owner", "metadata-twice", "dropped-metadata")
"""Codes of findings that depend on other elements."""

_decode_line: Final = msgspec.json.Decoder(tuple[str, str, str, str]).decode


def read(
    text: bytes, *, file: str, drop_orphans: bool, cuts: Mapping[str, Payload], conflicts: list[Conflict]
) -> tuple[Model, tuple[Finding, ...]]:
    """Read the model in a text; see `exact_reader.read`."""
    if len(text) >= _FROM and _MARK.encode() not in text and is_utf8(text):
        parts = _Parts(text, cuts)
        marked: list[Conflict] = []
        try:
            if parts.runs:
                model, findings = exact_reader.read(
                    parts.text, file=file, drop_orphans=drop_orphans, cuts=cuts, conflicts=marked, moved=parts.moved
                )
                complete_model = parts.put_back(model)
                if complete_model is not None:
                    conflicts += marked
                    return complete_model, findings
        except DecodeError as error:
            if not any(each.code in _OF_THE_WHOLE for each in error.findings):
                raise
    return exact_reader.read(text, file=file, drop_orphans=drop_orphans, cuts=cuts, conflicts=conflicts)


def _kind_of(element: bytes) -> str:
    """The list that an element may be read in, by the text after its bracket; "" for one that has to be kept."""
    if not element.endswith(b"},"):
        return ""
    if element.startswith(b'"op_type": '):
        return "node"
    return "initializer" if b'"values": ' in element or b'"base64": ' in element else "value_info"


class _Parts:
    """A text whose runs of canonical elements are replaced by stand-ins."""

    def __init__(self, text: bytes, cuts: Mapping[str, Payload]) -> None:
        self.runs: dict[str, Sequence[Any]] = {}
        """The records of each run by the name of its stand-in."""
        self._cuts = cuts
        self._tries = _MOST_TRIES
        self._kept: list[bytes] = []
        self._line = self._kept_line = 1
        self.moved: list[tuple[int, int]] = []
        """Lines of the shorter text, and how much further down they and those after them are in the whole one."""
        self._owners: set[tuple[str, str | None]] = set()
        self._has_lines = False
        head, *elements = text.split(_START)
        self._keep(head)
        for kind, run in groupby(elements, _kind_of):
            members = list(run)
            for start in range(0, len(members), _RUN):
                self._add(kind, members[start : start + _RUN])
        self.text = _START.join(self._kept)

    def _add(self, kind: str, run: list[bytes]) -> None:
        model = None
        if kind and self._tries > 0:
            self._tries -= 1
            model = fast.read(_DOCUMENT % (kind.encode(), _START.join(run)[:-1]), self._cuts)
        if model is not None and model.graph is not None:
            name = f"{_MARK}{len(self.runs)}"
            records = self.runs[name] = getattr(model.graph, kind)
            kinds = _KINDS[2:] if kind == "value_info" else (kind,)
            self._owners.update([(each, owner_name(kind, record)) for record in records for each in kinds])
            lines = sum([element.count(b"\n") + 1 for element in run])
            stand_in = _STAND_INS[kind]
            self._keep(stand_in.replace(b"%b", name.encode()), lines)
        elif kind and len(run) > 1:
            middle = len(run) // 2
            self._add(kind, run[:middle])
            self._add(kind, run[middle:])
        else:
            for element in run:
                self._keep_with_lines(element)

    def _keep(self, piece: bytes, lines: int | None = None) -> None:
        """Keep a piece that is so many lines in the whole text; by default as many as it has."""
        self._kept.append(piece)
        count = piece.count(b"\n") + 1
        self.moved.append((self._kept_line, self._line - self._kept_line))
        self._kept_line += count
        self._line += count if lines is None else lines

    def _keep_with_lines(self, element: bytes) -> None:
        """Keep an element and what follows it, except lines of `element_metadata` whose owner is in a run."""
        if _LINE not in element:
            self._keep(element)
            return
        head, *lines = element.split(_LINE)
        start = len(self._kept)
        self._keep(head)
        for line in lines:
            own, end, rest = line.partition(b"\n  ]")
            if self._is_owned(own):
                self._has_lines = True
                self._line += 1
                self.moved.append((self._kept_line, self._line - self._kept_line))
                self._kept[-1] += end + rest
                self._kept_line += (end + rest).count(b"\n")
                self._line += (end + rest).count(b"\n")
            else:
                self._keep(line)
        self._kept[start:] = [_LINE.join(self._kept[start:])]

    def _is_owned(self, line: bytes) -> bool:
        try:
            kind, owner, _, _ = _decode_line(b"[" + line.removesuffix(b","))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return False
        return line.endswith((b",", b"]")) and (kind, owner) in self._owners

    def put_back(self, model: Model) -> Model | None:
        """The model with the runs in the places of their stand-ins; None if that is not all."""
        graph = model.graph
        if graph is None or self._has_lines:
            return None
        changed = {kind: tuple(self._members(getattr(graph, kind), kind)) for kind in _KINDS}
        if self.runs:
            return None
        return msgspec.structs.replace(model, graph=msgspec.structs.replace(graph, **changed))

    def _members(self, records: Sequence[Any], kind: str) -> list[Any]:
        members: list[Any] = []
        for record in records:
            name = record.op_type if kind == "node" else record.name
            members += self.runs.pop(name, ()) or (record,)
        return members
