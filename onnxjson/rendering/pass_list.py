"""Passes as lines of text: the list of all, one in detail, and the result of a run."""

from collections.abc import Sequence
from typing import Final

from onnxjson.editing.values import write_value
from onnxjson.model.display import is_whole, visible
from onnxjson.model.document import Node
from onnxjson.model.walking import walk
from onnxjson.optimizing.passes.catalogue import Entry, Option
from onnxjson.optimizing.passes.pipeline import PassResult
from onnxjson.rendering.tables import padded, wrapped
from onnxjson.rendering.trace_text import bytes_change, growth, nodes_change
from onnxjson.rendering.values import picked

_LONGEST: Final = 200


def overview(entries: Sequence[Entry], width: int) -> list[str]:
    """Return a line for each pass; parts and edits are counted, with the command that lists them."""
    lines = ["Passes"]
    passes = [entry for entry in entries if entry.kind in ("pass", "plugin")]
    column = max(len(entry.name) for entry in passes) + 4
    for entry in passes:
        lines += _aligned(entry.name, entry.summary, column, width)
        parts = [each for each in entries if each.kind == "part" and each.name.startswith(f"{entry.name}:")]
        if parts:
            lines += _aligned("", f"{len(parts)} parts: `onnxjson passes {entry.name}` lists them", column, width)
        if entry.problem is not None:
            lines += _aligned("", f"not available: {entry.problem}", column, width)
    edits = [entry for entry in entries if entry.kind == "edit"]
    texts = (
        f"All {len(edits)} edits are also passes; `onnxjson rewrite --list` shows them.\n"
        "A rewrite script (.json) or a Python file with optimize(model) (.py) is a pass as well.\n"
        "`onnxjson passes NAME` shows the options of a pass."
    )
    return [*lines, "", *wrapped(texts, width, indent=0)]


def details(entry: Entry, parts: Sequence[Entry], width: int) -> list[str]:
    """Return the description, options and parts of one pass."""
    lines = wrapped(entry.name, width, indent=0)
    lines += wrapped(entry.summary, width)
    if entry.more:
        lines += wrapped(entry.more, width)
    if entry.problem is not None:
        lines += ["", *wrapped(f"Not available: {entry.problem}", width, whole_words=True)]
    if entry.options:
        lines += ["", "Options"]
        column = min(max(len(each.name) for each in entry.options) + 4, 26)
        for each in entry.options:
            lines += _aligned(each.name, _about(each), column, width)
    if parts:
        lines += ["", f"Parts, as {entry.name}:PART"]
        names = [part.name.removeprefix(f"{entry.name}:") for part in parts]
        column = max(map(len, names)) + 4
        for name, part in zip(names, parts, strict=True):
            lines += _aligned(name, part.summary, column, width)
    return [*lines, "", "Example", f"  onnxjson optimize m.onnx -p {_example(entry)} -o new.onnx"]


def _aligned(name: str, text: str, column: int, width: int) -> list[str]:
    texts = [line.strip() for line in wrapped(text, width - column, indent=0, whole_words=True)] or [""]
    if len(name) + 4 > column:
        return [f"  {name}", *[" " * column + line for line in texts]]
    return [padded(f"  {name}", column) + texts[0], *[" " * column + line for line in texts[1:]]]


def _about(option: Option) -> str:
    more = []
    if option.required:
        more.append("required")
    elif option.default not in (None, [], {}, ""):
        more.append(f"default: {write_value(option.default)}")
    fits = option.type
    return f"{option.description} {fits[:1].upper()}{fits[1:]}{f' ({chr(59).join(more)})' if more else ''}."


def _example(entry: Entry) -> str:
    """Return an example of the pass for -p, with one option changed."""
    required = [each for each in entry.options if each.required]
    flags = [each for each in entry.options if isinstance(each.default, bool)]
    if required:
        return f"'{entry.name}{{{','.join([f'{each.name}=...' for each in required])}}}'"
    if flags:
        return f"'{entry.name}{{{flags[0].name}={'false' if flags[0].default else 'true'}}}'"
    return entry.name


def summary(passed: PassResult) -> dict[str, object]:
    """Return the result of a pass as data, with sizes before and after."""
    stages = passed.before, passed.after
    return {
        "pass": passed.name,
        "changed": passed.is_changed,
        "nodes": [sum(1 for _ in walk(stage.model, Node)) for stage in stages],
        "bytes": [stage.size for stage in stages],
        **picked(passed, "seconds rounds notes"),
        "failure": None if passed.failure is None else str(passed.failure),
    }


def lines(passed: PassResult) -> list[str]:
    """Return a line with the numbers of a pass, and one for each note.

    ::

        onnxsim: 44 -> 40 nodes, 112.4 kB -> 40.9 kB, 0.5 s
          44 remaining nodes lost their metadata
    """
    if passed.failure is not None:
        return [f"skipped: {passed.failure}"]
    rounds = f", {passed.rounds} rounds" if passed.rounds > 1 else ""
    before, after = passed.before.size, passed.after.size
    nodes = nodes_change(*[sum(1 for _ in walk(stage.model, Node)) for stage in (passed.before, passed.after)])
    numbers = f"{nodes}, {bytes_change(before, after)}, {passed.seconds:.1f} s{rounds}"
    lines = [f"{visible(passed.name, _LONGEST)}: {numbers if passed.is_changed else 'changed nothing'}"]
    for note in (*growth(before, after), *passed.notes):  # already visible
        lines.append(f"  {note if len(note) <= _LONGEST or is_whole() else f'{note[: _LONGEST - 1]}…'}")
    return lines
