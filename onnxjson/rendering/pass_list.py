"""The list of passes, and what one of them takes, for a person."""

from collections.abc import Sequence

from onnxjson.edits.values import write_value
from onnxjson.passes.listing import Entry, Option
from onnxjson.rendering.tables import padded, wrapped


def overview(entries: Sequence[Entry], width: int) -> list[str]:
    """All passes, a line each; parts and edits are counted, with the way to see them."""
    lines = ["Passes"]
    passes = [entry for entry in entries if entry.kind in ("pass", "plugin")]
    column = max(len(entry.name) for entry in passes) + 4
    for entry in passes:
        lines += _beside(entry.name, entry.summary, column, width)
        parts = [each for each in entries if each.kind == "part" and each.name.startswith(f"{entry.name}:")]
        if parts:
            lines += _beside("", f"{len(parts)} parts: `onnxjson passes {entry.name}` lists them", column, width)
        if entry.problem is not None:
            lines += _beside("", f"not here: {entry.problem}", column, width)
    edits = [entry for entry in entries if entry.kind == "edit"]
    lines.append("")
    for text in (
        f"Edits, {len(edits)} of them, are passes too; `onnxjson rewrite --list` shows them.",
        "A rewrite script (.json) or a Python file with optimize(model) (.py) is a pass as well.",
        "`onnxjson passes NAME` says what a pass takes.",
    ):
        lines += wrapped(text, width, indent=0)
    return lines


def details(entry: Entry, parts: Sequence[Entry], width: int) -> list[str]:
    """What one pass does and takes, and what it consists of."""
    lines = wrapped(entry.name, width, indent=0)
    lines += wrapped(entry.summary, width)
    if entry.more:
        lines += wrapped(entry.more, width)
    if entry.problem is not None:
        lines += ["", *wrapped(f"Not here: {entry.problem}", width, whole_words=True)]
    if entry.options:
        lines += ["", "Options"]
        column = min(max(len(each.name) for each in entry.options) + 4, 26)
        for each in entry.options:
            lines += _beside(each.name, _about(each), column, width)
    if parts:
        lines += ["", f"Parts, as {entry.name}:PART"]
        names = [part.name.removeprefix(f"{entry.name}:") for part in parts]
        column = max(map(len, names)) + 4
        for name, part in zip(names, parts, strict=True):
            lines += _beside(name, part.summary, column, width)
    return [*lines, "", "Example", f"  onnxjson optimize m.onnx -p {_example(entry)} -o new.onnx"]


def _beside(name: str, text: str, column: int, width: int) -> list[str]:
    """A name, and beside it a text in as many lines as it takes."""
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
    """The pass as it may stand after -p, with one option that has a value of its own."""
    required = [each for each in entry.options if each.required]
    flags = [each for each in entry.options if isinstance(each.default, bool)]
    if required:
        return f"'{entry.name}{{{','.join([f'{each.name}=...' for each in required])}}}'"
    if flags:
        return f"'{entry.name}{{{flags[0].name}={'false' if flags[0].default else 'true'}}}'"
    return entry.name
