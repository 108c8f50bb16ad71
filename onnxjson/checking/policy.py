"""Policies and budgets: which rules run with which severity, what is ignored and why, and limits on numbers of a model.

A budget is absolute or against a base, or a list of what a model may use. ``onnxjson-policy/1``::

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
import re
import tomllib
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from onnxjson.checking.catalogue import RULES, family_of
from onnxjson.checking.linting import FAMILIES, Rule, chosen
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError, Severity
from onnxjson.model.index import index_of
from onnxjson.model.operators import plain_domain
from onnxjson.storage.identity import open_source

NUMBERS: Final[Mapping[str, str]] = {
    "bytes": "bytes of the file",
    "weight_bytes": "bytes of weights",
    "parameters": "parameters",
    "nodes": "nodes",
    "macs": "MACs",
    "flops": "FLOPs",
    "activation_bytes": "bytes of activations",
    "peak_activation_bytes": "bytes of activations at the peak",
    "ir_version": "IR version",
    "opset": "version of ai.onnx",
    "latency": "time of one run, in seconds",
    "difference": "largest difference of an output from that of the base",
}
"""Budgets that are numbers, and what they limit."""

LISTS: Final[Mapping[str, str]] = {"domains": "domain", "operators": "operator"}
"""Budgets that list what is allowed; operators may have wildcards."""

OF_COST: Final = frozenset({"macs", "flops", "activation_bytes", "peak_activation_bytes"})
OF_RUNS: Final = frozenset({"latency", "difference"})
"""Budgets for which models have to run."""

Value = int | float | str | None
"""A number; a formula; None if it is not known."""

Status = Literal["ok", "over", "unknown"]

_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]{1,2})?)\s*([kKMGTP]i?)?"
_BUDGET: Final = re.compile(rf"\s*(<=|<)?\s*(?:(base)(?:\s*([*+-])\s*{_NUMBER})?|{_NUMBER})\s*", re.ASCII)
_POWERS: Final = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}

FORMAT: Final = "onnxjson-policy/1"

_PROJECT: Final = "pyproject.toml"

_CODES: Final = [rule.code for rule in RULES]

_LARGEST: Final = 1 << 20
"""Maximum size of a policy, in bytes."""


class Budget(msgspec.Struct, frozen=True):
    """One limit."""

    name: str
    text: str
    allowed: tuple[str, ...] = ()
    """For lists: what a model may use."""
    is_strict: bool = False
    """Whether the limit itself exceeds the budget."""
    is_relative: bool = False
    factor: Fraction = Fraction(0)
    """Factor for the value of the base."""
    summand: Fraction = Fraction(0)


class Verdict(msgspec.Struct, frozen=True):
    """The outcome of one budget."""

    name: str
    limit: str
    status: Status
    value: Value | tuple[str, ...]
    base: Value
    message: str
    """One sentence, made visible."""


def parse_budget(name: str, text: str | int | tuple[str, ...]) -> Budget:
    """Parse a limit: ``<= 400``, ``<= 4.2G``, ``<= base * 1.02``, ``< base + 10k``, or a list of names.

    Raises:
        ValueError: it is neither.
    """
    if (name in LISTS) != isinstance(text, tuple):
        raise ValueError(f"the budget {name} is {'a list of names' if name in LISTS else 'a limit, such as <= 400'}")
    if isinstance(text, tuple):
        return Budget(name, ", ".join(text), text)
    match = _BUDGET.fullmatch(str(text))
    if match is None:
        raise ValueError(
            f'the budget {name} is "{visible(str(text))}"; write a limit such as <= 400, <= 4.2G, <= base * 1.02'
        )
    relation, base, operation, number, unit, absolute, its_unit = match.groups()
    amount = _amount(absolute, its_unit) if base is None else _amount(number or "0", unit)
    return Budget(
        name,
        str(text).strip(),
        is_strict=relation == "<",
        is_relative=base is not None,
        factor=Fraction(0) if base is None else amount if operation == "*" else Fraction(1),
        summand=Fraction(0) if operation == "*" else -amount if operation == "-" else amount,
    )


def _amount(number: str, unit: str | None) -> Fraction:
    scale = (1024 if unit.endswith("i") else 1000) ** _POWERS[unit[0]] if unit else 1
    return Fraction(number) * scale


def judge_budget(
    budget: Budget,
    model: Model,
    values: Mapping[str, Value],
    base: Mapping[str, Value] | None,
    partial: tuple[Collection[str], Collection[str]] = ((), ()),
) -> Verdict:
    """Compare a model with a limit: `values` are its numbers, `base` those of the base.

    `partial` names the numbers that may be higher than computed, of the model and of the base.
    """
    if budget.name in LISTS:
        return _judge_list(budget, model)
    value = values.get(budget.name)
    before = None if base is None else base.get(budget.name)
    what = NUMBERS[budget.name]

    def verdict(status: Status, message: str) -> Verdict:
        return Verdict(budget.name, budget.text, status, value, before, message)

    if budget.is_relative and not isinstance(before, int | float):
        reason = "there is no base; name one with --base" if base is None else f"that of the base is {_text(before)}"
        return verdict("unknown", f"{what}: {reason}; the budget is {budget.text}{_advice(before)}")
    if not isinstance(value, int | float):
        return verdict("unknown", f"{what}: {_text(value)}; the budget is {budget.text}{_advice(value)}")
    limit = budget.factor * Fraction(before or 0) + budget.summand if budget.is_relative else budget.summand
    is_over = value >= limit if budget.is_strict else value > limit
    shown = f"{what}: {_text(value)}; the budget is {budget.text}"
    if budget.is_relative:
        shown += f" = {_text(_plain(limit))} (base: {_text(before)})"
    # More operations exceed the limit even more; in the base, they raise it.
    doubtful = partial[0] if not is_over else partial[1] if budget.is_relative else ()
    if budget.name in doubtful:
        return verdict("unknown", f"{shown}; not all operators could be counted, show --cost lists them")
    return verdict("over" if is_over else "ok", shown)


def _advice(value: Value) -> str:
    names = re.findall(r"[^\W\d]\w*", value) if isinstance(value, str) else []
    return f"; [dims] of the policy sets sizes, such as {visible(names[0])} = 1" if names else ""


def _plain(limit: Fraction) -> int | float:
    return int(limit) if limit.denominator == 1 else float(limit)


def _text(value: Value) -> str:
    if value is None:
        return "not known"
    return visible(value) if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _judge_list(budget: Budget, model: Model) -> Verdict:
    index = index_of(model)
    operators = set(index.operator_counts())
    domains = {plain_domain(ref.node.domain) or "ai.onnx" for ref in index.nodes()}
    used = domains if budget.name == "domains" else operators
    wrong = tuple(sorted([name for name in used if not any([fnmatchcase(name, each) for each in budget.allowed])]))
    names = listed([visible(name) for name in wrong], 5)
    message = f"not allowed: {LISTS[budget.name]} {names}" if wrong else f"every {LISTS[budget.name]} is allowed"
    return Verdict(budget.name, budget.text, "over" if wrong else "ok", wrong, None, message)


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
        raise DecodeError(f"{source}: {_explained(visible(str(error), None), tree)}") from None
    for table in (policy.rules, *policy.paths.values()):
        check_words((*table.select, *table.ignore, *table.warning, *table.error), source)
    for ignored in policy.ignored:
        if ignored.code not in _CODES and not ("-" in ignored.code and ignored.code.islower()):
            raise DecodeError(f'{source}: ignored: "{visible(ignored.code)}" is not the code of a finding')
        if not ignored.reason.strip():
            raise DecodeError(f"{source}: ignored: {ignored.code} has no reason")
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


def chosen_policy(file: Path | None, select: str | None) -> Policy | None:
    """Return the policy of a file, with the rules of `select` (names with commas) instead of its own; None for neither.

    Raises:
        DecodeError: the file is no policy, or a name is that of no rule.
        FileError: the system could not read it.
    """
    if file is None and select is None:
        return None
    policy = Policy() if file is None else load_policy(file)
    if select is None:
        return policy
    words = tuple([each.strip() for each in select.split(",") if each.strip()])
    check_words(words, "--select")
    return msgspec.structs.replace(policy, rules=RuleTable(select=words), paths={})


_KINDS: Final = {"array": "a list", "str": "a string", "int": "an integer", "float": "a number", "object": "a table"}


def _explained(message: str, tree: Any) -> str:
    """What is wrong with a policy, and what to write, from the message of its decoder."""
    problem, _, place = message.partition(" - at ")
    keys = [int(key) if key.isdecimal() else key for key in re.findall(r"\w+", place.replace("...", ""))]
    where, last = place.strip("`").removeprefix("$.").removesuffix("[...]"), keys[-1] if keys else ""
    word = next(iter(re.findall("`([^`]*)`", problem)), "")
    if problem.startswith("Object contains unknown field"):
        known = (RuleTable if "rules" in keys or "paths" in keys else Ignored if keys else Policy).__struct_fields__
        hint = suggest(word, known) or f"keys are {', '.join(known)}"
        return f'{where or "the policy"} has no key "{word}"; {hint}'
    if problem.startswith("Object missing required field"):
        return f'{where} needs the key "{word}"; add {word} = "..."'
    for key in keys:
        tree = tree[key] if isinstance(tree, list) or key in tree else tree
    hint = f"; write {last} = [{json.dumps(tree)}]" if word == "array" and isinstance(tree, str) else ""
    hint = f"; write numbers without quotes, such as N = 1, in [{where}]" if word == "int" else hint
    for name, meaning in _KINDS.items():
        problem = problem.replace(f"`{name}`", meaning)
    return f"{where}: {problem[:1].lower()}{problem[1:]}{hint}"


def check_words(words: Collection[str], source: str) -> None:
    """Raise `DecodeError` unless each word names rules: a family, a code or the start of one, a code of ``check``."""
    for word in words:
        of_rules = word in ("all", *FAMILIES) or (len(word) > 3 and any([code.startswith(word) for code in _CODES]))
        if not of_rules and not (word.islower() and "-" in word):
            hint = suggest(word, [*FAMILIES, *_CODES]) or f"families are {', '.join(FAMILIES)}"
            raise DecodeError(f'{source}: "{visible(word)}" is not a rule; {hint}')
