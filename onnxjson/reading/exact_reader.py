"""The whole of the exact reader: text -> model, or every finding with its line and column.

Whatever may be wrong with a text, nothing but `DecodeError` comes out of here.
"""

import itertools
import re
from collections.abc import Mapping, Sequence

from onnxjson.checking import Finding
from onnxjson.conflicts import Conflict
from onnxjson.document import Model
from onnxjson.errors import DecodeError
from onnxjson.payloads import Payload
from onnxjson.reading import tree as json_tree
from onnxjson.reading.context import ROOT, Context, Remark
from onnxjson.reading.model import looks_like_proto_json, read_model
from onnxjson.reading.positions import Lines, Span, find, inside_string
from onnxjson.reading.scan import Scan, scan
from onnxjson.reading.skimming import skim
from onnxjson.reading.tokens import Mistake
from onnxjson.reading.tree import Tree

__all__ = ["is_proto_json", "locate", "looks_like_proto_json", "read", "summary"]


def read(
    text: bytes,
    *,
    file: str = "",
    drop_orphans: bool = False,
    cuts: Mapping[str, Payload] | None = None,
    conflicts: list[Conflict] | None = None,
) -> tuple[Model, tuple[Finding, ...]]:
    """The model that a text stands for, and the warnings about it.

    Args:
        text: a document of the format onnxjson/1.
        file: the name that findings give the text.
        drop_orphans: whether lines of ``element_metadata`` whose owner does not exist are left out with a warning.
        cuts: payloads whose base64 was taken out of the text, by the string that stands in its place.
        conflicts: gets the conflicts of a merge that stand in the text.

    Raises:
        DecodeError: the text is no such document; ``findings`` has all reasons, in the order of the text.
    """
    context = Context(cuts=cuts, drop_orphans=drop_orphans)
    is_clean, tree = json_tree.parse(text)
    scanned: Scan | None = None
    if not is_clean:
        scanned = scan(text)
        tree = scanned.tree
    model = None
    if scanned is None or (scanned.is_sound and tree is not json_tree.UNREADABLE):
        model = _decode(tree, context)
        if conflicts is not None:
            conflicts += context.conflicts
    if model is not None and not context.remarks and (scanned is None or not scanned.mistakes):
        return model, ()
    findings = locate(scanned or _skimmed(text, context.remarks), context.remarks, file)
    errors = [finding for finding in findings if finding.severity == "error"]
    if model is None or errors:
        raise DecodeError(summary(errors), findings)
    return model, findings


_FORMAT_COMES_FIRST = re.compile(rb'\s*\{\s*"format"\s*:')


def is_proto_json(text: bytes) -> bool:
    """Whether a text is a ModelProto as protobuf's JSON writes it, as far as it can be read."""
    if _FORMAT_COMES_FIRST.match(text):
        return False
    is_clean, tree = json_tree.parse(text)
    return looks_like_proto_json(tree if is_clean else scan(text).tree)


def _skimmed(text: bytes, remarks: Sequence[Remark]) -> Scan:
    """What `scan` gives for a text without mistakes, as far as the remarks need it."""
    decoded = text.decode("utf-8")
    return Scan(decoded, root=skim(decoded, [remark.place.path for remark in remarks]))


def _decode(tree: Tree, context: Context) -> Model | None:
    try:
        return read_model(tree, context)
    except RecursionError:
        message = "objects and lists nest too deep for the calling program's stack"
        context.error(ROOT, "nesting-too-deep", message, "raise sys.setrecursionlimit")
        return None


def summary(errors: Sequence[Finding]) -> str:
    """One line for many findings: the first, and how many there are besides."""
    more = len(errors) - 1
    return str(errors[0]) + (f" (and {more:,} more)" if more else "")


def locate(scanned: Scan, remarks: Sequence[Remark], file: str) -> tuple[Finding, ...]:
    """The findings of a scanned text and the remarks about its tree, in the order of the text."""
    lines = Lines(scanned.text)
    order = itertools.count()
    placed = [(mistake.offset, next(order), _of_mistake(mistake, lines, file)) for mistake in scanned.mistakes]
    for remark in remarks:
        offset = offset_of(scanned.text, scanned.root, remark)
        placed.append((offset, next(order), _of_remark(remark, lines.place(offset), file)))
    placed.sort(key=lambda each: each[:2])
    return tuple(finding for _, _, finding in placed)


def _of_mistake(mistake: Mistake, lines: Lines, file: str) -> Finding:
    message = mistake.message
    if mistake.first is not None:
        message += " (line {}, column {})".format(*lines.place(mistake.first))
    line, column = lines.place(mistake.offset)
    return Finding(
        severity="error", code=mistake.code, message=message, hint=mistake.hint, file=file, line=line, column=column
    )


def _of_remark(remark: Remark, place: tuple[int, int], file: str) -> Finding:
    return Finding(
        severity=remark.severity,
        code=remark.code,
        message=remark.message,
        hint=remark.hint,
        file=file,
        line=place[0],
        column=place[1],
    )


def offset_of(text: str, root: Span | int, remark: Remark) -> int:
    """The character that a remark is about."""
    offset = find(root, remark.place.path, on_key=remark.on_key)
    if remark.character is not None and text[offset : offset + 1] == '"':
        return inside_string(text, offset, remark.character)
    return offset
