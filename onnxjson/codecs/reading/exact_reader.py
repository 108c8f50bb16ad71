"""Documents read exactly: text -> value, or every finding with its line and column.

`read_document` reads any JSON format of this package: models, blocks of nodes, patches, scripts, recipes. For an
invalid text it raises `DecodeError` and nothing else. `locate` finds the elements of a model in a text: an
address follows the records, and the text has tags, short forms and side tables that the records do not have.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, TypeVar

import msgspec

from onnxjson.codecs.reading import tree as json_tree
from onnxjson.codecs.reading.context import ROOT, Context, Remark
from onnxjson.codecs.reading.model import looks_like_proto_json, read_model
from onnxjson.codecs.reading.named_values import ELEMENT_KINDS, FULL, TAGS
from onnxjson.codecs.reading.scan import Scan, scan
from onnxjson.codecs.reading.tokens import Mistake
from onnxjson.codecs.reading.tree import UNREADABLE, Key, Lines, Span, Tree, find, inside_string, skim
from onnxjson.model.conflicts import Conflict
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError, Finding, Severity
from onnxjson.model.messages import ATTRIBUTE_PAYLOADS
from onnxjson.model.payloads import Payload

T = TypeVar("T")

COMMENTS_CODE: Final = "comments-not-kept"
"""The code of the warning of `comment_warnings`."""

_FORMAT_COMES_FIRST = re.compile(rb'\s*\{\s*"format"\s*:')

_ERROR: Final[Severity] = "error"

_STRING_OR_COMMENT: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(?P<comment>//[^\n]*)', re.DOTALL)

_PAYLOAD_FIELDS = frozenset(ATTRIBUTE_PAYLOADS.values())
_ELEMENTS = ("values", "base64")

_LONG: Final = 1 << 16
"""Bytes of an object or a list from which its members are decoded only when a path leads through them."""


def read_document(
    text: bytes, read: Callable[[Tree, Context], T | None], context: Context, *, file: str = ""
) -> tuple[T, tuple[Finding, ...]]:
    """Parse a text and read its tree -> the value, and the warnings.

    Args:
        text: UTF-8, JSON with ``//`` comments and trailing commas.
        read: turns the tree into a value and reports to the context; returns None if it has no value.
        context: collects the remarks of `read`.
        file: the name of the text in findings.

    Raises:
        DecodeError: ``findings`` has all mistakes of the text and all reports, in the order of the text.
    """
    is_clean, tree = json_tree.parse(text)
    scanned = None if is_clean else scan(text)
    if scanned is not None:
        tree = scanned.tree
    value = None
    if scanned is None or (scanned.is_whole and tree is not UNREADABLE):
        try:
            value = read(tree, context)
        except RecursionError:
            message = "objects and lists nest too deep for the stack of the calling program"
            context.error(ROOT, "nesting-too-deep", message, "raise sys.setrecursionlimit")
    if value is not None and not context.remarks and not (scanned and scanned.mistakes):
        return value, ()
    scanned = scanned or _skimmed(text, [remark.place.path for remark in context.remarks])
    findings = collect_findings(scanned, context.remarks, file, context.moved)
    errors = [finding for finding in findings if finding.severity == "error"]
    if value is None or errors:
        raise DecodeError(summary(errors), findings)
    return value, findings


def read(
    text: bytes,
    *,
    file: str = "",
    drop_orphans: bool = False,
    cuts: Mapping[str, Payload] | None = None,
    conflicts: list[Conflict] | None = None,
    moved: Sequence[tuple[int, int]] = (),
) -> tuple[Model, tuple[Finding, ...]]:
    """Read the model in a document of the format onnxjson/1 -> the model, and the warnings; errors as `read_document`.

    With `drop_orphans`, lines of ``element_metadata`` without an owner are left out. `cuts` are the payloads that were
    cut out of the text, by their markers; merge conflicts are added to `conflicts`; `moved` is as for `Lines`.
    """
    context = Context(cuts=cuts, drop_orphans=drop_orphans)
    context.moved = moved
    model, findings = read_document(text, read_model, context, file=file)
    if conflicts is not None:
        conflicts += context.conflicts
    return model, findings


def is_proto_json(text: bytes) -> bool:
    """Whether a text is a ModelProto in protobuf's JSON, as far as it can be read."""
    if _FORMAT_COMES_FIRST.match(text):
        return False
    is_clean, tree = json_tree.parse(text)
    return looks_like_proto_json(tree if is_clean else scan(text).tree)


def _skimmed(text: bytes, paths: Iterable[Sequence[Key]]) -> Scan:
    """Return the result of `scan` for a text without mistakes, as far as some paths need it."""
    decoded = text.decode("utf-8")
    return Scan(decoded, root=skim(decoded, paths))


def summary(errors: Sequence[Finding]) -> str:
    """One line for many findings: the first, and the number of the others."""
    more = len(errors) - 1
    return str(errors[0]) + (f" (and {more:,} more)" if more else "")


def collect_findings(
    scanned: Scan, remarks: Sequence[Remark], file: str, moved: Sequence[tuple[int, int]] = ()
) -> tuple[Finding, ...]:
    """The mistakes of a scanned text and the remarks about its tree as findings, in the order of the text."""
    lines = Lines(scanned.text, moved)
    placed = [(each.offset, _message(each, lines), each.code, each.hint, _ERROR) for each in scanned.mistakes]
    for each in remarks:
        offset = _offset_of(scanned.text, scanned.root, each)
        placed.append((offset, each.message, each.code, each.hint, each.severity))
    placed.sort(key=itemgetter(0))
    findings = []
    for offset, message, code, hint, severity in placed:
        line, column = lines.place(offset)
        findings.append(
            Finding(severity=severity, code=code, message=message, hint=hint, file=file, line=line, column=column)
        )
    return tuple(findings)


def _message(mistake: Mistake, lines: Lines) -> str:
    if mistake.first is None:
        return mistake.message
    return "{} (line {}, column {})".format(mistake.message, *lines.place(mistake.first))


def _offset_of(text: str, root: Span | int, remark: Remark) -> int:
    offset = find(root, remark.place.path, on_key=remark.on_key)
    if remark.character is not None and text[offset : offset + 1] == '"':
        return inside_string(text, offset, remark.character)
    return offset


def comment_warnings(text: bytes, file: str) -> tuple[Finding, ...]:
    """A warning at the first comment of a text that was read without errors; nothing if it has none."""
    if b"//" not in text:
        return ()
    decoded = text.decode("utf-8")
    starts = [match.start() for match in _STRING_OR_COMMENT.finditer(decoded) if match["comment"]]
    if not starts:
        return ()
    line, column = Lines(decoded).place(starts[0])
    count = f"{len(starts):,} comments" if len(starts) > 1 else "a comment"
    message = f"the text has {count}; a text or model that is written from it does not keep comments"
    return (Finding(severity="warning", code=COMMENTS_CODE, message=message, file=file, line=line, column=column),)


def locate(text: bytes, addresses: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Line and column, from 1, of each address; of the enclosing value where the text has no such place."""
    return positions(text, lambda tree: {address: path_of(tree, address) for address in addresses}, was_read=True)


def positions(
    text: bytes, paths_in: Callable[[Tree], Mapping[str, Sequence[Key]]], *, was_read: bool = False
) -> dict[str, tuple[int, int]]:
    """Line and column, from 1, of the paths that `paths_in` finds in the tree of a text, by their names.

    A text that was read as a model has no equal keys, so that a faster parser has the same tree.
    """
    paths = scanned = None
    with suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        paths = paths_in(_opened(msgspec.Raw(text))) if was_read else None
    if paths is None:
        is_clean, tree = json_tree.parse(text)
        scanned = None if is_clean else scan(text)
        paths = paths_in(tree if scanned is None else scanned.tree)
    located = scanned or _skimmed(text, paths.values())
    offsets = {name: find(located.root, path) for name, path in paths.items()}
    lines = Lines(located.text[: max(offsets.values(), default=0)])
    return {name: lines.place(offset) for name, offset in offsets.items()}


def _opened(value: Tree) -> Tree:
    """Decode a value that is not decoded yet; of a long object or list, not its members, since few of them matter."""
    if not isinstance(value, msgspec.Raw):
        return value
    shape = {b"{": dict[str, msgspec.Raw], b"[": list[msgspec.Raw]}.get(bytes(memoryview(value)[:1]))
    if shape is None or len(memoryview(value)) < _LONG:
        return _plain(value)
    members: Tree = msgspec.json.decode(value, type=shape)
    return members


def _plain(value: Tree) -> Tree:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def path_of(tree: Tree, address: str) -> tuple[Key, ...]:
    """The path to an address in the tree of a text, as far as the tree has it."""
    segments = [segment.replace("~1", "/").replace("~0", "~") for segment in address.split("/")[1:]]
    walk = _Walk(tree)
    for segment in segments:
        if not walk.step(segment):
            break
    return tuple(walk.path)


@dataclass(slots=True)
class _Walk:
    """A walk from the top of a tree downwards."""

    tree: Tree
    path: list[Key] = field(default_factory=list)
    holder: "tuple[Tree, list[Key]] | None" = None
    """The enclosing graph or function, and its path."""
    kind: str = ""
    """The list of the holder that was entered last."""
    element: Tree = None

    def step(self, segment: str) -> bool:
        """Follow one segment of an address; False if the text has nothing closer."""
        if isinstance(self.tree, list):
            return self._into_list(segment)
        if not isinstance(self.tree, dict):
            return False
        if segment in self.tree:
            if segment in ELEMENT_KINDS:
                self.holder, self.kind = (self.tree, list(self.path)), segment
            return self._go(segment)
        tag = next((key for key in self.tree if key in TAGS or key == FULL), None)
        if tag is not None:
            self._go(tag)
            return self.step(segment) if tag == FULL else True
        if segment in _PAYLOAD_FIELDS:
            return True
        if segment in ("dims", "data_type"):
            return "type" in self.tree and self._go("type")
        if segment.endswith("_data"):
            return any(key in self.tree and self._go(key) for key in _ELEMENTS)
        if segment == "metadata_props" and self.tree is self.element:
            return self._into_side_table()
        index = _index(segment)
        return index is not None and index < len(self.tree) and self._go(list(self.tree)[index])

    def _go(self, key: Key) -> bool:
        self.path.append(key)
        opened = self.tree[key] = _opened(self.tree[key])  # type: ignore[index]
        self.tree = opened
        return True

    def _into_list(self, segment: str) -> bool:
        assert isinstance(self.tree, list)
        index = _index(segment)
        if index is None:
            index = next((at for at, item in enumerate(self.tree) if _is_named(item, segment)), None)
        if index is None and len(self.tree) == 2 and segment in ("key", "value"):
            index = int(segment == "value")
        if index is None or index >= len(self.tree):
            return False
        self._go(index)
        if self.path[-2:-1] == [self.kind]:
            self.element = self.tree
        return True

    def _into_side_table(self) -> bool:
        if self.holder is None or not isinstance(self.holder[0], dict):
            return False
        lines = _plain(self.holder[0].get("element_metadata"))
        owner = _owner_name(self.kind, self.element)
        if not isinstance(lines, list) or owner is None:
            return False
        lines = self.holder[0]["element_metadata"] = [_plain(line) for line in lines]
        positions = [at for at, line in enumerate(lines) if isinstance(line, list) and line[:2] == [self.kind, owner]]
        if not positions:
            return False
        self.path = [*self.holder[1], "element_metadata", positions[0]]
        self.tree = None
        return True


def _owner_name(kind: str, element: Tree) -> str | None:
    if not isinstance(element, dict):
        return None
    if kind != "node":
        name = _plain(element.get("name"))
        return name if isinstance(name, str) else None
    outputs = _plain(element.get("output"))
    names = outputs if isinstance(outputs, list) else []
    return next((name for name in names if isinstance(name, str) and name), None)


def _is_named(item: Tree, name: str) -> bool:
    tree = _plain(item)
    return isinstance(tree, dict) and _plain(tree.get("name")) == name


def _index(segment: str) -> int | None:
    digits = segment.removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 12 else None
