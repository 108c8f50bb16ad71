"""The gate: every changed model of two revisions, judged by a policy, and the verdict about the change."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from onnxjson.checking.budgets import Verdict
from onnxjson.checking.cost import cost_of, known_dims
from onnxjson.checking.judging import Judged, budget_findings, findings_of, new_findings, verdicts_of
from onnxjson.checking.policy import Policy
from onnxjson.diffing.matching.alignment import Alignment
from onnxjson.model.errors import Finding

FORMAT: Final = "onnxjson-gate/1"

Status = Literal["added", "removed", "renamed", "changed"]


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


def with_cost(judged: Judged, policy: Policy) -> Judged:
    """Return a model with its cost, which reports show even without a budget."""
    dims = known_dims(policy.dims, judged.model)
    return replace(judged, cost=cost_of(judged.model, judged.folder, dims, details=False))


def judge_change(
    policy: Policy, result: ModelResult, checks: Sequence[Iterable[Finding]], alignment: Alignment | None
) -> ModelResult:
    """Return a result with findings and verdicts about the model of the head.

    Args:
        policy: the policy.
        result: the model in the base and in the head, with their cost.
        checks: findings of ``check`` about both.
        alignment: counterparts of their nodes; None for a new or a removed model.
    """
    before, after = result.before, result.after
    if after is None:
        return result
    found, ignored = findings_of(policy, after, checks[1])
    fresh = found
    if before is not None and alignment is not None:
        codes = {each.code for each in found}
        of_base, _ = findings_of(policy, replace(before, path=after.path), checks[0], codes)
        fresh = new_findings(found, of_base, alignment)
    verdicts = tuple(verdicts_of(policy, after, before))
    findings = (*fresh, *budget_findings(verdicts, after.path))
    known = len(found) - len(fresh)
    return result._replace(findings=findings, known=known, ignored=ignored, verdicts=verdicts)
