"""Judge models by a policy: rules, budgets, what is ignored, what the base already has; the gate for a whole change."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple

from msgspec import structs

from onnxjson.checking.cost import Cost, cost_of, known_dims
from onnxjson.checking.linting import Rule, Subject, lint
from onnxjson.checking.outputs import Outputs, compare_outputs
from onnxjson.checking.policy import OF_COST, OF_RUNS, Policy, Value, Verdict, judge_budget
from onnxjson.diffing.difference import diff_models
from onnxjson.diffing.interface_changes import InterfaceChange, interface_changes
from onnxjson.diffing.matching.alignment import Alignment
from onnxjson.model.document import Model
from onnxjson.model.errors import Finding, NoMatchError, OnnxJsonError, Severity
from onnxjson.model.index import Index, index_of
from onnxjson.model.operators import plain_domain
from onnxjson.model.weights import held_constants, weight_totals
from onnxjson.patterns.names import TensorRef
from onnxjson.patterns.selectors import select

IGNORE: Final = "onnxjson.ignore"
"""Metadata key with which a node ignores rules; a value is ``ONJ101: nodes for the profiler``."""

_REPEAT: Final = 20
"""Number of timed runs; the latency is their median."""

_SECONDS: Final = 120.0
"""Time limit for the runs of one model."""

BUDGET: Final = "budget"
"""Start of the codes of findings about budgets, such as ``budget:macs``."""

BREAKING: Final = "interface-breaking"
COMPATIBLE: Final = "interface-compatible"
DIFFERENT: Final = "outputs-differ"
"""Codes of the findings about a change, which a policy may ignore or raise to errors."""

FORMAT: Final = "onnxjson-gate/1"

Status = Literal["added", "removed", "renamed", "changed"]

_COUNT: Final = re.compile(r"^[0-9,]+ | \([0-9]+ texts\)$")


@dataclass(frozen=True)
class Judged:
    """A model and its numbers."""

    path: str
    """The name of its file, as policies and reports have it."""
    model: Model
    folder: Path | None
    """The folder of its external data."""
    file_bytes: int
    cost: Cost | None
    measured: Mapping[str, Value] = field(default_factory=dict)
    """Latency and difference, if they were measured."""

    @cached_property
    def values(self) -> dict[str, Value]:
        """The numbers that budgets limit."""
        index = index_of(self.model)
        totals = weight_totals(held_constants(index))
        opsets = {plain_domain(each.domain): each.version for each in reversed(self.model.opset_import)}
        numbers: dict[str, Value] = {
            "bytes": self.file_bytes, "weight_bytes": totals.weight_bytes, "parameters": totals.parameters,
            "nodes": len(index.node_refs), "ir_version": self.model.ir_version, "opset": opsets.get(""),
        }  # fmt: skip
        of_cost = {} if self.cost is None else {name: getattr(self.cost, name) for name in OF_COST}
        return numbers | of_cost | dict(self.measured)

    def without_model(self) -> "Judged":
        """Return the numbers alone, for a report."""
        made = replace(self, model=Model(), folder=None)
        made.__dict__["values"] = self.values
        return made


def judged(
    policy: Policy, path: str, model: Model, folder: Path | None, file_bytes: int, *, with_cost: bool = False
) -> Judged:
    """Return a model with its cost, if that is wanted or a budget needs it; see `measure` for other budgets."""
    needs_cost = with_cost or bool(OF_COST & policy.budgets.keys())
    dims = known_dims(policy.dims, model)
    return Judged(path, model, folder, file_bytes, cost_of(model, folder, dims, details=False) if needs_cost else None)


def measure(
    policy: Policy, judged: Judged, file: Path, base: Path | None, outputs: Outputs | None = None
) -> tuple[Judged, list[str]]:
    """Run a model for the budgets that need it; return it with the results, and why something could not be measured.

    Without such a budget nothing runs. `file` is that of the model, `base` that of the base, for the difference unless
    `outputs` has it.
    """
    if not OF_RUNS & policy.budgets.keys():
        return judged, []
    from statistics import median

    from onnxjson.running.model_run import run

    measured: dict[str, Value] = {}
    problems: list[str] = []
    dims = known_dims(policy.dims, judged.model)
    try:
        if "latency" in policy.budgets:
            times = run(file, dims=dims, repeat=_REPEAT, timeout=_SECONDS).times
            measured["latency"] = median(times) if times else None
    except OnnxJsonError as error:
        problems.append(str(error))
    if "difference" in policy.budgets and base is not None:
        outputs = outputs or compare_outputs(base, file, dims, _SECONDS)
        measured["difference"] = outputs.largest
        problems += [outputs.text] if outputs.largest is None else []
    return replace(judged, measured=measured), problems


def change_findings(
    policy: Policy, path: str, interface: Sequence[InterfaceChange], outputs: Outputs | None = None
) -> list[Finding]:
    """Return the findings about a change: of the interface, and that outputs differ; warnings unless a policy says."""
    said = [(BREAKING if each.is_breaking else COMPATIBLE, each.text) for each in interface]
    if outputs is not None and outputs.verdict in ("different", "inconclusive"):
        said.append((DIFFERENT, outputs.text))
    severities = [(code, text, policy.severity(path, code, "warning")) for code, text in said]
    ignored = {each.code for each in policy.ignored if fnmatchcase(path, each.path) and not each.where}
    return [
        Finding(severity=severity, code=code, message=text, file=path)
        for code, text, severity in severities
        if severity is not None and code not in ignored
    ]


def findings_of(
    policy: Policy, judged: Judged, others: Iterable[Finding] = (), codes: Collection[str] | None = None
) -> tuple[list[Finding], int]:
    """Run the rules of a policy on a model; return the findings and the number of those ignored with a reason.

    The policy also applies to `others`, the findings of ``check``. With `codes`, only these rules run.
    """
    subject = Subject(judged.model, judged.folder)
    rules = [each for each in policy.rules_for(judged.path) if codes is None or each.code in codes]
    severe: list[Finding] = []
    for finding in (*others, *lint(subject, rules)):
        severity = policy.severity(judged.path, finding.code, finding.severity)
        if severity is not None:
            severe.append(structs.replace(finding, severity=severity, file=finding.file or judged.path))
    accepted = _Accepted(policy, judged.path, subject)
    kept = [each for each in severe if not accepted.has(each)]
    return kept, len(severe) - len(kept)


class _Accepted:
    """Findings that are ignored with a reason, in the policy or in the metadata of a node."""

    def __init__(self, policy: Policy, path: str, subject: Subject) -> None:
        self._whole: set[str] = set()
        self._places: dict[str, set[str]] = {}
        for ignored in policy.ignored:
            if not fnmatchcase(path, ignored.path):
                continue
            if not ignored.where:
                self._whole.add(ignored.code)
                continue
            try:
                places = select(subject.model, subject.index, ignored.where)
            except NoMatchError:
                continue
            for place in () if isinstance(places, TensorRef) else places:
                self._places.setdefault(place.address, set()).add(ignored.code)
        for ref in subject.index.nodes():
            for entry in ref.node.metadata_props:
                if entry.key == IGNORE and entry.value:
                    codes, _, reason = entry.value.partition(":")
                    if reason.strip():
                        self._places.setdefault(ref.address, set()).update(codes.replace(",", " ").split())

    def has(self, finding: Finding) -> bool:
        if finding.code in self._whole:
            return True
        parts = finding.address.split("/")
        prefixes = ("/".join(parts[:end]) for end in range(len(parts), 0, -1)) if self._places else ()
        return any([finding.code in self._places.get(prefix, ()) for prefix in prefixes])


def align_layouts(base: Model, target: Model) -> Alignment:
    """Match the nodes of two models by structure, without reading weights."""
    return diff_models(base, target, weights="skip").alignment


def new_findings(findings: Sequence[Finding], before: Iterable[Finding], alignment: Alignment) -> list[Finding]:
    """Return the findings of the target that the base, with the findings `before`, does not have there."""
    known = {(each.code, _key(each, alignment.base)): _texts(each) for each in before}
    counterparts = {target: base for base, target in alignment.node_pairs()}
    names = {pair.target.address: {new: old for old, new in pair.values.items()} for pair in alignment.graphs}
    keys = [(each.code, _key(each, alignment.target, counterparts, names)) for each in findings]
    return [each for each, key in zip(findings, keys, strict=True) if _texts(each) > known.get(key, -1)]


def _texts(finding: Finding) -> int:
    """Return the number of texts that a finding is about, so that one more secret is a new finding; 0 for others."""
    counted = re.search(r" \(([0-9]+) texts\)$", finding.message)
    return int(counted[1]) if counted else 0


def _key(
    finding: Finding,
    index: Index,
    counterparts: Mapping[str, str] | None = None,
    names: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """Return the element of a finding as in the base: a node by its counterpart, a value or tensor by its name.

    Findings about graphs and models are the same if their messages are, except for the number of what they count.
    """
    parts = finding.address.split("/")
    for end in range(len(parts), 2, -1):
        address, scope = "/".join(parts[:end]), index.scope("/".join(parts[: end - 2]))
        if scope is None or not parts[end - 1].isdigit():
            continue
        if parts[end - 2] == "node":
            before = address if counterparts is None else counterparts.get(address, f"new {address}")
            return "/".join([before, *parts[end:]])
        elements = getattr(scope.graph, parts[end - 2], ())
        name = getattr(elements[int(parts[end - 1])], "name", None) or "" if int(parts[end - 1]) < len(elements) else ""
        return f"{parts[end - 2]} {(names or {}).get(scope.address, {}).get(name, name)}"
    return _COUNT.sub("", finding.message)


def verdicts_of(policy: Policy, judged: Judged, base: Judged | None) -> list[Verdict]:
    """Compare a model with the budgets of a policy."""
    costs = (judged.cost, None if base is None else base.cost)
    partial = ([] if costs[0] is None else costs[0].partial, [] if costs[1] is None else costs[1].partial)
    values, before = judged.values, None if base is None else base.values
    return [judge_budget(each, judged.model, values, before, partial) for each in policy.parsed_budgets()]


def budget_findings(verdicts: Iterable[Verdict], path: str) -> list[Finding]:
    """Return a finding for each budget that is exceeded (an error) or cannot be decided (a warning)."""
    severities: dict[str, Severity] = {"over": "error", "unknown": "warning"}
    return [
        Finding(severity=severities[each.status], code=f"{BUDGET}:{each.name}", message=each.message, file=path)
        for each in verdicts
        if each.status in severities
    ]


def fixes_of(rules: Sequence[Rule], found: Iterable[Finding]) -> list[Mapping[str, object]]:
    """Return the edits that correct findings, each once, in the order of the rules."""
    codes = {each.code for each in found}
    edits: list[Mapping[str, object]] = []
    for rule in rules:
        if rule.code in codes and rule.fix is not None and rule.fix not in edits:
            edits.append(rule.fix)
    return edits


class ModelResult(NamedTuple):
    """Result of the gate for one model."""

    name: str
    status: Status
    before: Judged | None
    after: Judged | None
    findings: tuple[Finding, ...] = ()
    """New findings, and budgets that are exceeded or cannot be checked."""
    known: int = 0
    """Number of findings that the base has, too."""
    ignored: int = 0
    verdicts: tuple[Verdict, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be compared, made visible."""
    interface: tuple[InterfaceChange, ...] = ()
    outputs: Outputs | None = None
    """None if only one side has the model."""

    @property
    def passes(self) -> bool:
        """Whether no finding is an error."""
        return all([each.severity != "error" for each in self.findings])


class GateResult(NamedTuple):
    """Result of the gate for a change."""

    base: str
    head: str
    models: tuple[ModelResult, ...]

    @property
    def passes(self) -> bool:
        """Whether all models pass."""
        return all([each.passes for each in self.models])

    @property
    def findings(self) -> list[Finding]:
        """All findings, model by model."""
        return [finding for each in self.models for finding in each.findings]


def judge_change(
    policy: Policy, result: ModelResult, checks: Sequence[Iterable[Finding]], alignment: Alignment | None
) -> ModelResult:
    """Return a result with findings and verdicts about the model of the head; `result` has the outputs already.

    `checks` are the findings of ``check`` about base and head; `alignment` is None for a new or a removed model.
    """
    before, after = result.before, result.after
    if after is None:
        return result
    of_head, ignored = findings_of(policy, after, checks[1])
    fresh = of_head
    if before is not None and alignment is not None:
        codes = {each.code for each in of_head}
        of_base, _ = findings_of(policy, replace(before, path=after.path), checks[0], codes)
        fresh = new_findings(of_head, of_base, alignment)
    interface = () if alignment is None else tuple(interface_changes(alignment))
    verdicts = tuple(verdicts_of(policy, after, before))
    of_change = change_findings(policy, after.path, interface, result.outputs)
    findings = (*of_change, *fresh, *budget_findings(verdicts, after.path))
    known = len(of_head) - len(fresh)
    return result._replace(findings=findings, known=known, ignored=ignored, verdicts=verdicts, interface=interface)
