"""Rules: a pattern with a message, and perhaps a replacement, in a JSON file (``onnxjson-rule/1``)."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from onnxjson.model.display import visible
from onnxjson.model.errors import DecodeError, FileError, MissingInputError, OnnxJsonError
from onnxjson.patterns.blocks import Block, pattern_text, replacement_text
from onnxjson.patterns.grammar import parse, parse_replacement

FORMAT = "onnxjson-rule/1"

SHIPPED = Path(__file__).parent / "rules"
"""The folder of the rules that the package contains."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule."""

    format: Literal["onnxjson-rule/1"] = "onnxjson-rule/1"
    id: Annotated[str, Meta(description="A short name, such as gelu-erf.")]
    message: Annotated[str, Meta(description="What a match means, in one sentence.")]
    severity: Literal["error", "warning", "info"] = "info"
    pattern: Annotated[
        str | tuple[Block, ...], Meta(description="The pattern, see `onnxjson find`, or blocks of nodes.")
    ]
    where: Annotated[str, Meta(description="Conditions, as after where in a pattern.")] = ""
    replacement: Annotated[
        str | tuple[Block, ...] | None, Meta(description="What `replace-pattern` replaces a match with.")
    ] = None
    note: Annotated[str, Meta(description="When the rule applies, and when it does not.")] = ""
    url: Annotated[str, Meta(description="Where the pattern comes from.")] = ""

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
    found = [_read(each) for each in sorted(path.glob("*.json"))] if path.is_dir() else [_read(path)]
    if not found:
        raise MissingInputError(f"'{visible(str(path), None)}' has no rules: no file in it ends in .json")
    for name, count in Counter(rule.id for rule in found).items():
        if count > 1:
            called = visible(str(path), None)
            raise DecodeError(f"{called}: {count} rules have the id '{visible(name)}'; rename them")
    return found


def rule_bytes(rule: Rule) -> bytes:
    """Return the text of a rule, as it is stored."""
    return msgspec.json.format(msgspec.json.encode(rule)) + b"\n"


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
