"""Rules: a pattern with a message, and perhaps a replacement, in a JSON file (``onnxjson-rule/1``).

A pattern may be blocks of nodes, written as in the format, with ``$names`` instead of values. A block becomes a call
where another block uses its output; outputs that no block uses are the values of the pattern.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from onnxjson.model.display import visible
from onnxjson.model.errors import DecodeError, FileError, MissingInputError, OnnxJsonError, SelectorError
from onnxjson.patterns.expression import (
    Anything,
    AttributeValue,
    Bound,
    Call,
    Elements,
    Number,
    Operator,
    Pattern,
    Text,
    ValuePattern,
)
from onnxjson.patterns.grammar import parse, parse_replacement


class Block(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node."""

    op_type: Annotated[str, Meta(min_length=1)]
    domain: str = ""
    input: Annotated[
        tuple[int | float | str | tuple[int | float, ...], ...] | None,
        Meta(
            description="$x is a value, ?w a constant, _ anything, a number or list a constant, ... any further ones."
        ),
    ] = None
    output: Annotated[tuple[str, ...], Meta(min_length=1, description="$y, or an empty text.")]
    attribute: Annotated[
        dict[str, int | float | str | tuple[int | float | str, ...]],
        Meta(description='Values as in the format; "$g" is a name, "*" any value.'),
    ] = {}


def pattern_text(blocks: Sequence[Block]) -> str:
    """Return the pattern of some blocks.

    Raises:
        SelectorError: two blocks make a value, or they make it from itself.
    """
    roots = tuple(_Blocks(blocks).roots())
    return str(Pattern(roots[0], (), roots[1:]))


def replacement_text(blocks: Sequence[Block]) -> str:
    """Return the replacement of some blocks; a value that no other block uses has the name of what it replaces.

    Raises:
        SelectorError: two blocks make a value, or they make it from itself.
    """
    return "; ".join(map(str, _Blocks(blocks, is_replacement=True).roots()))


class _Blocks:
    def __init__(self, blocks: Sequence[Block], *, is_replacement: bool = False) -> None:
        self._is_replacement = is_replacement
        self._makers: dict[str, tuple[Block, int]] = {}
        self._open: list[str] = []
        for block in blocks:
            for slot, name in enumerate(block.output):
                if name and (not name.startswith("$") or name in self._makers):
                    problem = "has no $" if not name.startswith("$") else "is made twice"
                    raise SelectorError(f'the output "{visible(name)}" of {visible(block.op_type)} {problem}')
                if name:
                    self._makers[name] = block, slot
        self._used = {each for block in blocks for each in block.input or () if isinstance(each, str)}

    def roots(self) -> Iterator[Call]:
        roots = [name for name in self._makers if name not in self._used]
        if not roots:
            raise SelectorError("every value is an input of another block; the last ones must not be")
        for name in roots:
            yield self._call(name)._replace(name=name[1:])

    def _call(self, name: str) -> Call:
        if name in self._open:
            raise SelectorError(f'"{visible(name)}" is computed from itself')
        self._open.append(name)
        block, slot = self._makers[name]
        inputs = None if block.input is None else [self._value(each) for each in block.input if each != "..."]
        is_open = block.input is not None and "..." in block.input
        self._open.pop()
        attributes = tuple([(key, _attribute(value)) for key, value in block.attribute.items()])
        operator = Operator(block.op_type, "" if block.domain == "ai.onnx" else block.domain)
        called = "" if self._is_replacement else name[1:]
        return Call((operator,), attributes, None if inputs is None else tuple(inputs), is_open, slot, called)

    def _value(self, written: float | str | tuple[float, ...]) -> ValuePattern:
        if isinstance(written, tuple):
            return Elements(written)
        if not isinstance(written, str):
            return Number(written)
        if written in self._makers:
            return self._call(written)
        if written[:1] in ("$", "?") and written[1:].isidentifier():
            return Bound(written[1:], written[0] == "?")
        if written in ("", "_"):
            return Anything()
        raise SelectorError(f'the input "{visible(written)}" is none of $name, ?name, _ and ...')


def _attribute(value: float | str | tuple[float | str, ...]) -> AttributeValue:
    if isinstance(value, tuple):
        return Elements(tuple([None if each == "*" else each for each in value]))
    if not isinstance(value, str):
        return Number(value)
    if value == "*":
        return Anything()
    return Bound(value[1:]) if value.startswith("$") and value[1:].isidentifier() else Text(value)


FORMAT = "onnxjson-rule/1"

SHIPPED = Path(__file__).parent / "rules"
"""The folder of the rules that the package contains."""


class NamedBlock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an outline shows instead of the nodes of a match."""

    name: Annotated[str, Meta(description='Name of the block, such as LayerNorm; "" if it changes nothing.')]
    operands: Annotated[tuple[str, ...], Meta(description="Names of the pattern that are operands of the block.")] = (
        "x",
    )
    computed: Annotated[
        tuple[str, ...], Meta(description="Further operands, which are shown if they depend on data.")
    ] = ()
    keywords: Annotated[
        dict[str, str], Meta(description='Its keywords with the names of their numbers, or their texts; "": a mark.')
    ] = {}


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule."""

    format: Literal["onnxjson-rule/1"] = "onnxjson-rule/1"
    id: Annotated[str, Meta(description="Short name of the rule, such as gelu-erf.")]
    message: Annotated[str, Meta(description="What a match means, in one sentence.")]
    severity: Literal["error", "warning", "info"] = "info"
    pattern: Annotated[
        str | tuple[Block, ...], Meta(description="The pattern, see `onnxjson find`, or blocks of nodes.")
    ]
    where: Annotated[str, Meta(description="Conditions, as after `where` in a pattern.")] = ""
    replacement: Annotated[
        str | tuple[Block, ...] | None, Meta(description="Replacement of a match, for `replace-pattern`.")
    ] = None
    block: Annotated[NamedBlock | None, Meta(description="How `show --outline` writes a match.")] = None
    note: Annotated[str, Meta(description="When the rule applies, and when it does not.")] = ""
    url: Annotated[str, Meta(description="Source of the pattern.")] = ""

    @property
    def pattern_text(self) -> str:
        """The pattern with its conditions, as `onnxjson find` reads it."""
        text = self.pattern if isinstance(self.pattern, str) else pattern_text(self.pattern)
        return f"{text} where {self.where}" if self.where else text

    @property
    def replacement_text(self) -> str | None:
        """The replacement, as `replace-pattern` reads it."""
        made = self.replacement
        return made if made is None or isinstance(made, str) else replacement_text(made)


def read_rules(path: Path) -> list[Rule]:
    """Return the rules of a file, or of all .json files in a folder in the order of their names.

    Raises:
        MissingInputError: there is no such file, or the folder has no rules.
        DecodeError: a file is not a rule, its pattern is misspelled, or two rules have the same id.
        FileError: the system could not read it.
    """
    if not path.exists():
        raise MissingInputError(f"'{visible(str(path), None)}' does not exist")
    rules = [_read(each) for each in sorted(path.glob("*.json"))] if path.is_dir() else [_read(path)]
    if not rules:
        raise MissingInputError(f"'{visible(str(path), None)}' has no rules: no file in it ends in .json")
    for name, count in Counter(rule.id for rule in rules).items():
        if count > 1:
            called = visible(str(path), None)
            raise DecodeError(f"{called}: {count} rules have the id '{visible(name)}'; rename them")
    return rules


def _read(path: Path) -> Rule:
    called = visible(str(path), None)
    try:
        rule = msgspec.json.decode(path.read_bytes(), type=Rule)
        parse(rule.pattern_text)
        if rule.replacement_text is not None:
            parse_replacement(rule.replacement_text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(f"{called}: not a rule ({FORMAT}): {visible(str(error), 200)}") from error
    except OnnxJsonError as error:
        raise DecodeError(f"{called}: {error}") from error
    except OSError as error:
        raise FileError(f"{called}: cannot be read: {error.strerror}") from error
    return rule
