"""Policies, ``onnxjson-policy/1``: which rules run with which severity, what is ignored and why, and budgets.

::

    format = "onnxjson-policy/1"

    [rules]
    ignore = ["naming"]              # families, codes, or starts of codes such as ONJ7
    error = ["types", "ONJ203"]

    [paths."models/old/*"]           # instead of [rules] for these files
    select = ["security"]

    [[ignored]]
    code = "ONJ101"
    where = "/debug/*"               # a selector
    reason = "nodes for the profiler"

    [budgets]
    nodes = "<= 400"
    bytes = "<= base * 1.02"

    [dims]                           # sizes of dimensions, for macs, flops and activations
    batch = 1

A file is TOML or JSON; in pyproject.toml the policy is the table ``[tool.onnxjson]``.
"""

import json
import tomllib
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import msgspec

from onnxjson.checking.budgets import LISTS, NUMBERS, Budget, parse_budget
from onnxjson.checking.catalogue import RULES, family_of
from onnxjson.checking.linting import FAMILIES, Rule, chosen
from onnxjson.model.display import suggest, visible
from onnxjson.model.errors import DecodeError, Severity
from onnxjson.storage.identity import open_source

FORMAT: Final = "onnxjson-policy/1"

_PROJECT: Final = "pyproject.toml"

_CODES: Final = [rule.code for rule in RULES]

_LARGEST: Final = 1 << 20
"""Maximum size of a policy, in bytes."""


class RuleTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules by family, code or start of a code; later tables take precedence."""

    select: tuple[str, ...] = ("all",)
    ignore: tuple[str, ...] = ()
    warning: tuple[str, ...] = ()
    error: tuple[str, ...] = ()


class Ignored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Findings that are known and accepted."""

    code: str
    reason: str
    where: str = ""
    """A selector of nodes; "" for the whole model."""
    path: str = "*"
    """Pattern of the files."""


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules, accepted findings and budgets of a team."""

    format: str = FORMAT
    rules: RuleTable = RuleTable()
    paths: dict[str, RuleTable] = {}
    ignored: tuple[Ignored, ...] = ()
    budgets: dict[str, str | int | tuple[str, ...]] = {}
    dims: dict[str, int] = {}
    """Sizes of dimensions by name, for the budgets of cost."""

    def table(self, path: str) -> RuleTable:
        """Return the rules for a file: those of the last pattern that fits."""
        fitting = [table for pattern, table in self.paths.items() if fnmatchcase(path, pattern)]
        return fitting[-1] if fitting else self.rules

    def rules_for(self, path: str) -> list[Rule]:
        """Return the rules that run on a file."""
        table = self.table(path)
        wanted = chosen(RULES, (*table.select, *table.warning, *table.error))
        return [each for each in wanted if self.severity(path, each.code, "warning") is not None]

    def severity(self, path: str, code: str, severity: Severity) -> Severity | None:
        """Return the severity of a finding on a file; None if it is ignored. A code takes precedence over a family."""
        table = self.table(path)
        if _names(table.ignore, code) and code not in (*table.warning, *table.error):
            return None
        return "error" if _names(table.error, code) else "warning" if _names(table.warning, code) else severity

    def parsed_budgets(self) -> list[Budget]:
        """Return the budgets."""
        return [parse_budget(name, text) for name, text in self.budgets.items()]


def _names(words: Collection[str], code: str) -> bool:
    starts = tuple([word for word in words if word.startswith("ONJ")])
    return not {code, family_of(code), "all"}.isdisjoint(words) or code.startswith(starts)


def load_policy(path: Path) -> Policy:
    """Read a policy.

    Raises:
        DecodeError: it is not a policy; the message names the key.
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
    """
    shown = visible(str(path), None)
    source = open_source(path)
    if source.size > _LARGEST:
        raise DecodeError(f"{shown} has {source.size:,} bytes; a policy has at most {_LARGEST:,}")
    data = source.read_at(0, source.size)
    try:
        text = data.decode()
        tree: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError(
            f"{shown} is not {'JSON' if path.suffix == '.json' else 'TOML'}: {visible(str(error))}"
        ) from None
    if path.name == _PROJECT:
        tool = tree.get("tool")
        table = tool.get("onnxjson") if isinstance(tool, dict) else None
        if not isinstance(table, dict):
            raise DecodeError(f"{shown} has no table [tool.onnxjson]")
        tree = {"format": FORMAT, **table}
    return read_policy(tree, shown)


def read_policy(tree: object, source: str = "the policy") -> Policy:
    """Check a parsed policy.

    Raises:
        DecodeError: it is not a policy.
    """
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        raise DecodeError(f'{source} is not a policy; it begins with format = "{FORMAT}"')
    try:
        policy = msgspec.convert(tree, Policy)
    except msgspec.ValidationError as error:
        raise DecodeError(f"{source}: {visible(str(error), None)}") from None
    for table in (policy.rules, *policy.paths.values()):
        check_words((*table.select, *table.ignore, *table.warning, *table.error), source)
    for each in policy.ignored:
        if each.code not in _CODES and not ("-" in each.code and each.code.islower()):
            raise DecodeError(f'{source}: ignored: "{visible(each.code)}" is not the code of a finding')
        if not each.reason.strip():
            raise DecodeError(f"{source}: ignored: {each.code} has no reason")
    for name, size in policy.dims.items():
        if size < 1:
            raise DecodeError(f'{source}: the dimension "{visible(name)}" has the size {size}; sizes are at least 1')
    for name, text in policy.budgets.items():
        if name not in NUMBERS and name not in LISTS:
            hint = suggest(name, (*NUMBERS, *LISTS)) or f"budgets are {', '.join((*NUMBERS, *LISTS))}"
            raise DecodeError(f'{source}: there is no budget "{visible(name)}"; {hint}')
        try:
            parse_budget(name, text)
        except ValueError as error:
            raise DecodeError(f"{source}: {error}") from None
    return policy


def check_words(words: Collection[str], source: str) -> None:
    """Raise `DecodeError` unless each word names rules: a family, a code or the start of one, a code of ``check``."""
    for word in words:
        of_rules = word in ("all", *FAMILIES) or (len(word) > 3 and any([code.startswith(word) for code in _CODES]))
        if not of_rules and not (word.islower() and "-" in word):
            hint = suggest(word, [*FAMILIES, *_CODES]) or f"families are {', '.join(FAMILIES)}"
            raise DecodeError(f'{source}: "{visible(word)}" is not a rule; {hint}')
