"""``onnxjson find``: the places of models that match a pattern, or why none does."""

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from onnxjson.cli import failures, options, output, reports
from onnxjson.cli.paths import Words, path_of
from onnxjson.model.display import counted, listed, suggest, visible
from onnxjson.model.errors import MissingInputError, OnnxJsonError
from onnxjson.model.index import NodeRef, index_of
from onnxjson.patterns.finding import Match
from onnxjson.patterns.grammar import parse
from onnxjson.patterns.mismatches import imported_versions, mistakes
from onnxjson.patterns.misses import Miss, nearest_misses
from onnxjson.patterns.nodes import TOLERANCE
from onnxjson.patterns.rule_files import SHIPPED, Rule, read_rules
from onnxjson.patterns.searching import absent_operators, find
from onnxjson.patterns.selectors import select_nodes
from onnxjson.storage import files

_MISSES: Final = 5
"""Nearest misses that are shown of each model."""

_ALL: Final = "*"
_BUILTIN: Final = "builtin"
FUSIONS: Final = {
    "attention": ("attention",), "gelu": ("gelu-", "quick-gelu", "bias-gelu"), "layernorm": ("layer-norm", "rms-norm"),
    "skiplayernorm": ("skip-layer-norm",), "rotaryembedding": ("rotary-",), "matmuladd": ("matmul-add",),
    "convbatchnorm": ("conv-",),
}  # fmt: skip
"""Fusions of optimizers, and the beginnings of the names of the rules with what they look for."""

_FUSING: Final = ("onnxruntime", "transformers", "onnxscript", "onnxoptimizer", "onnxsim", "onnxslim")
"""The passes that fuse nodes."""

_SHARE: Final = click.FloatRange(0, 1)


class _Found(NamedTuple):
    """What a rule or the pattern of the command line finds in one model."""

    path: Path
    rule: Rule
    matches: list[Match]
    misses: list[Miss]
    absent: list[str]
    """With --why: operators of the pattern that the model does not have."""


@options.command("find")
@click.argument("words", metavar="MODEL... PATTERN", nargs=-1, type=Words())
@options.option(
    "--why [SELECTOR]",
    "Show the nearest misses; with SELECTOR, only those at nodes that it selects.",
    is_flag=False,
    flag_value=_ALL,
)
@options.option("--count", "Print only the number of matches in each model; with --rules, of each rule.", "only_count")
@options.option("--overlapping", "Also list matches that share nodes with earlier ones.")
@options.option(
    "--rules [RULES]",
    "Use rules, without PATTERN: builtin, those of the package (default), one of them by its name, or those of a file "
    "or folder.",
    is_flag=False,
    flag_value=_BUILTIN,
    type=str,
)
@options.option(
    "--relative N", "Maximum relative difference of numbers that count as equal.", type=_SHARE, default=TOLERANCE
)
@reports.view_options("text", "json")
@click.pass_context
def find_command(
    ctx: click.Context,
    words: tuple[str, ...],
    *,
    why: str | None,
    only_count: bool,
    overlapping: bool,
    rules: str | None,
    relative: float,
    view: reports.View,
) -> None:
    """Find what matches a pattern of operators.

    Searches the main graph, subgraphs and functions. A pattern is an operator with patterns for its inputs: $x is any
    value, ?w a constant, _ anything, and a number a constant with that value. Exits 1 if nothing matches.

    \b
    onnxjson find m.onnx 'Softmax(MatMul($q, Transpose<perm=[0,2,1,3]>($k)))'
    onnxjson find m.onnx 'MatMul($x, ?w) -> ...{0,3} -> Softmax' --json
    onnxjson find m.onnx 'Add(MatMul($x, ?w), ?b) where rank($w) = 2' --count
    onnxjson find m.onnx 'Mul($x, Sigmoid($x))' --why
    onnxjson find m.onnx --rules --count
    """
    paths, wanted, node = _sort_out(words, why, rules)
    code, by_rule, operators, opsets = 0, list[_Found](), set[str](), dict[str, int]()
    for path in output.numbered(paths):
        try:
            with output.working(f"searching {path}"):
                by_rule += _search(path, wanted, node, operators, opsets, overlapping=overlapping, tolerance=relative)
        except OnnxJsonError as error:
            failure = failures.leave_or_report(path, error)
            code = failure or code
    for rule in wanted if by_rule else ():
        for text in dict.fromkeys(mistakes(parse(rule.pattern_text), operators, is_rule=bool(rule.id), opsets=opsets)):
            output.warn(f"{rule.id}: {text}" if rule.id else text)
    if only_count:
        view.present(text=lambda: _counts(paths, by_rule), json=lambda: _count_objects(by_rule))
    else:
        view.present(text=lambda: _lines(by_rule, several=len(paths) > 1), json=lambda: list(_objects(by_rule)))
        number = sum(len(each.matches) for each in by_rule)
        if by_rule:
            searched = counted(len({each.path for each in by_rule}), "model")
            output.talk(f"{searched}: {number:,} match{'es' * (number != 1)}")
    ctx.exit(code or (0 if any(each.matches for each in by_rule) else 1))


def explain(name: str, paths: Sequence[Path], fusion: str, view: reports.View) -> int:
    """Show what the rules of a fusion of the pass `name` match, and the nearest misses; return the exit code."""
    if name.partition(":")[0] not in _FUSING:
        raise click.UsageError(f"the pass {name} fuses no nodes; these do: {', '.join(_FUSING)}")
    starts = FUSIONS.get(fusion.lower().replace("-", "").replace("alization", ""))
    if starts is None:
        raise click.UsageError(f"--fusion is one of {', '.join(FUSIONS)}, not {output.quoted(fusion)}")
    wanted = [rule for rule in read_rules(SHIPPED) if rule.id.startswith(starts)]
    by_rule: list[_Found] = []
    for path in output.numbered(paths):
        with output.working(f"searching {path}"):
            by_rule += _search(path, wanted, _ALL, set(), {}, overlapping=True, tolerance=TOLERANCE)
    view.present(text=lambda: _lines(by_rule, several=len(paths) > 1), json=lambda: list(_objects(by_rule)))
    return 0 if any(each.matches for each in by_rule) else 1


def _sort_out(words: Sequence[str], why: str | None, rules: str | None) -> tuple[list[Path], list[Rule], str | None]:
    """Return models, rules and the node of --why; the word after --why or --rules may be one of the others."""
    given = list(words)
    if rules is not None and rules.endswith((".onnx", ".onnx.json")):
        given, rules = [rules, *given], _BUILTIN
    if why not in (None, _ALL):
        if os.path.isfile(why):
            given, why = [why, *given], _ALL
        elif rules is None and (len(given) < 2 or os.path.isfile(given[-1])):
            given, why = [*given, why], _ALL
    if rules is not None:
        shipped = read_rules(SHIPPED) if rules == _BUILTIN or not os.path.lexists(rules) else []
        wanted = [each for each in shipped if rules in (_BUILTIN, each.id)]
        if shipped and not wanted and not {os.sep, "."} & {*rules}:
            hint = (
                suggest(rules, [each.id for each in shipped]) or "write --rules alone to use all rules of the package"
            )
            raise MissingInputError(f"no rule or file is called {output.quoted(rules)}", hint=hint)
        wanted = wanted or read_rules(Path(rules))
    elif len(given) < 2 or os.path.isfile(given[-1]):
        raise click.UsageError("name at least one model, then the pattern in quotes: onnxjson find m.onnx 'Relu($x)'")
    else:
        pattern = given.pop()
        if pattern.isalpha() and (ids := sorted(each.stem for each in SHIPPED.glob(f"*{pattern.lower()}*.json"))):
            said = f"to find computations of several operators, write --rules {listed(ids, 4, ' or --rules ')}"
            output.talk(f"{said}; onnxjson show {visible(shlex.quote(given[0]), None)} --outline names its blocks")
        wanted = [Rule(id="", message="", pattern=pattern)]
        parse(wanted[0].pattern_text)
    if not given:
        raise click.UsageError("name at least one model")
    return [path_of(word) for word in given], wanted, why


def _search(
    path: Path,
    rules: Sequence[Rule],
    why: str | None,
    operators: set[str],
    opsets: dict[str, int],
    *,
    overlapping: bool,
    tolerance: float,
) -> Iterator[_Found]:
    loaded = files.load(path, weights_from=None, bind=False, conflicted=True)
    model, index = loaded.model, index_of(loaded.model)
    operators.update(index.operator_counts())
    opsets.update(imported_versions(model))
    at: Sequence[NodeRef] | None = None if why in (None, _ALL) else select_nodes(model, index, why)
    for rule in rules:
        matches = find(model, rule.pattern_text, overlapping=overlapping, tolerance=tolerance)
        misses = []
        if why is not None:
            misses = nearest_misses(
                model, rule.pattern_text, at=at, tolerance=tolerance, most=_MISSES, stopped=output.warn
            )
        absent = [] if why is None or matches else absent_operators(index, rule.pattern_text)
        yield _Found(path, rule, matches, misses, absent)


def _counts(paths: Sequence[Path], found: Sequence[_Found]) -> Iterator[str]:
    for counted_matches in _count_objects(found):
        model = "" if len(paths) == 1 else f"{visible(str(counted_matches['model']), None)}:"
        if "rule" not in counted_matches:
            yield f"{model}{counted_matches['count']}"
        elif counted_matches["count"]:
            yield f"{model}{counted_matches['count']:>6,}  {visible(str(counted_matches['rule']))}"


def _count_objects(by_rule: Sequence[_Found]) -> list[dict[str, object]]:
    return [
        {"model": str(each.path)} | ({"rule": each.rule.id} if each.rule.id else {}) | {"count": len(each.matches)}
        for each in by_rule
    ]


def _objects(by_rule: Sequence[_Found]) -> Iterator[dict[str, object]]:
    for of_rule in by_rule:
        head = {"model": str(of_rule.path)} | ({"rule": of_rule.rule.id} if of_rule.rule.id else {})
        for match in of_rule.matches:
            yield head | {"nodes": [ref.address for ref in match.nodes], "bindings": match.names}
        if of_rule.absent:
            yield head | {"absent": of_rule.absent}
        for miss in of_rule.misses:
            yield head | {
                "near": miss.root.address, "matched": miss.matched, "wanted": miss.wanted,
                "reasons": miss.reasons, "addresses": miss.addresses,
                "alike": [ref.address for ref in miss.alike],
            }  # fmt: skip


def _lines(by_rule: Sequence[_Found], *, several: bool) -> Iterator[str]:
    shown: Path | None = None
    for of_rule in by_rule:
        if not of_rule.matches and not of_rule.misses and not of_rule.absent:
            continue
        if several and of_rule.path != shown:
            yield f"{'' if shown is None else chr(10)}{visible(str(of_rule.path), None)}"
            shown = of_rule.path
        if of_rule.rule.id:
            yield f"{of_rule.rule.severity}[{visible(of_rule.rule.id)}]: {visible(of_rule.rule.message, None)}"
        for match in of_rule.matches:
            yield _called(match.root) + "".join(
                [f"  {name} = {visible(str(value))}" for name, value in match.names.items()]
            )
        if of_rule.absent:
            yield f"the model has no {listed(of_rule.absent, word='and')}"
        if of_rule.misses:
            yield "nearest misses"
        for miss in of_rule.misses:
            yield from miss.reasons
            alike = f", and {counted(len(miss.alike), 'place')} like it" if miss.alike else ""
            yield f"    {_called(miss.root)}  {miss.matched} of {counted(miss.wanted, 'operator')} found{alike}"


def _called(ref: NodeRef) -> str:
    name = f" {visible(ref.node.name)}" if ref.node.name else ""
    return f"{visible(ref.address, 200)}  {visible(ref.node.op_type or '')}{name}"
