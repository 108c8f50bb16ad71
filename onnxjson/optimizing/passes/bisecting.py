"""Search for the pass that breaks a model, and for its part: each result runs next to the original model."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from onnxjson.codecs import serde
from onnxjson.editing.applying import run as run_edits
from onnxjson.editing.declaration import name_of
from onnxjson.editing.script import Script
from onnxjson.model.document import Model
from onnxjson.model.errors import EvaluationError, OnnxJsonError, WireError
from onnxjson.optimizing.passes.pipeline import PassResult, Pipeline
from onnxjson.optimizing.passes.user import ScriptPass
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.verification import Plan, Verifier
from onnxjson.running.worker import Worker


class Culprit(NamedTuple):
    """First pass after which a model does not compute the same."""

    made: PassResult
    reason: str
    """Difference found, as the end of a sentence."""


class WrongPart(NamedTuple):
    """First part of a pass after which the model does not compute the same."""

    name: str | None
    """Name of the part; None if the pass has no separate parts."""
    parts: int
    evaluations: int
    """Number of models that were run to find it."""


class Checks:
    """Comparison of models with the first one; use it in a ``with`` statement.

    `path` is the file of the first, next to which their external data is.
    """

    def __init__(self, first: Model, plan: Plan, path: Path | None = None) -> None:
        self._paths = path, path
        self._first = first
        self._plan = plan
        self._worker = Worker()
        self.evaluations = 0
        self.doubt = ""
        """Outputs of the last model that could not be compared; see `Verification.doubt`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def reason(self, model: Model, base: Model | None = None) -> str:
        """Return how the results of a model differ from those of another, as the end of a sentence; "" if they do not.

        `doubt` tells whether all outputs were compared.

        Raises:
            EvaluationError: the correct model does not run.
        """
        self.evaluations += 1
        with Verifier(TwoModels(base or self._first, model, self._paths), self._plan, worker=self._worker) as verifier:
            try:
                verification = verifier.result()
            except EvaluationError as error:
                if error.side == 0:
                    raise
                return f"no longer runs: {error}"
        self.doubt = verification.doubt
        if verification.equal or verification.doubt:
            return ""
        missing = [each.name for each in verification.outputs if each.target_name is None]
        if missing:
            return f'no longer has the output "{missing[0]}"'
        problems = [run.problem for run in verification.runs if run.problem]
        worst = max((each for each in verification.outputs if each.failed), key=lambda each: each.failed, default=None)
        why = f": {problems[0]}" if problems else ""
        if worst is not None and worst.worst is not None and not problems:
            largest = worst.worst.largest_absolute
            why = f': "{worst.name}" differs' + ("" if largest is None else f" by up to {largest:.3g}")
            why = why if worst.worst.problem is None else f': "{worst.name}" has {worst.worst.problem}'
        return f"computes other results: outputs differ in {verification.failed} of {len(verification.runs)} runs{why}"

    def first_wrong(self, results: Sequence[PassResult]) -> Culprit | None:
        """Return the first pass after which the model does not compute the same; None if the last result does."""
        changed = [passed for passed in results if passed.is_changed]
        if not changed:
            return None
        last = self.reason(changed[-1].after.model)
        if not last:
            return None
        for passed in changed[:-1]:
            reason = self.reason(passed.after.model)
            if reason:
                return Culprit(passed, reason)
        return Culprit(changed[-1], last)

    def part(self, pipeline: Pipeline, passed: PassResult, model_folder: Path | None = None) -> WrongPart:
        """Return the part that breaks the model, found by bisection."""
        before = self.evaluations
        parts = _parts(pipeline, passed, model_folder)
        low, high = 0, len(parts)  # correct with `low` parts, wrong with `high` parts
        if not parts or not self.reason(_parsed(parts[-1][1], passed.name), passed.before.model):
            return WrongPart(None, len(parts), self.evaluations - before)
        while high - low > 1:
            middle = (low + high) // 2
            if self.reason(_parsed(parts[middle - 1][1], passed.name), passed.before.model):
                high = middle
            else:
                low = middle
        return WrongPart(parts[high - 1][0], len(parts), self.evaluations - before)


def _parts(pipeline: Pipeline, passed: PassResult, model_folder: Path | None) -> list[tuple[str, Model | bytes]]:
    """Return the names of the parts of a pass, and the model after each."""
    subject = passed.step.subject
    if not isinstance(subject, ScriptPass):
        return [(each.name, each.model) for each in pipeline.parts(passed)]
    script, model = Script.load(subject.file), passed.before.model
    parts: list[tuple[str, Model | bytes]] = []
    for number, edit in enumerate(script.edits, 1):
        model = run_edits(model, Script((edit,), script.folder), model_folder=model_folder).model
        parts.append((f"{number}: {name_of(edit)}", model))
    return parts


def _parsed(model: Model | bytes, name: str) -> Model:
    try:
        return model if isinstance(model, Model) else serde.parse(model).model
    except (WireError, IndexError) as error:
        raise OnnxJsonError(f"a part of {name} does not return a model: {error}") from error
