"""Which pass breaks a model, and which part of it: what each gave is run beside the model that was given.

::

    with Checks(model, Plan()) as checks:
        culprit = checks.first_wrong(made)
        if culprit is not None:
            print(culprit.made.name, checks.part(pipeline, culprit.made))
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from onnxjson import serde
from onnxjson.document import Model
from onnxjson.edits.applying import run as run_edits
from onnxjson.edits.declaration import name_of
from onnxjson.edits.script import Script
from onnxjson.errors import EvaluationError, OnnxJsonError, WireError
from onnxjson.passes.edits import ScriptPass
from onnxjson.passes.pipeline import Made, Pipeline
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.verification import Plan, Verifier
from onnxjson.worker import Worker


class Culprit(NamedTuple):
    """The pass from which on a model does not compute the same."""

    made: Made
    reason: str
    """What was found, as the end of a sentence."""


class WrongPart(NamedTuple):
    """The part of a pass without which, and without those after it, the model still computes the same."""

    name: str | None
    """None where the pass has no parts that can be told apart."""
    parts: int
    """How many there are."""
    evaluations: int
    """How many models were run to find it."""


class Checks:
    """Runs models beside the first one; use it in a ``with`` statement.

    Args:
        first: the model that is right; every tensor must stand in it.
        plan: what to try.
    """

    def __init__(self, first: Model, plan: Plan) -> None:
        self._first = first
        self._plan = plan
        self._worker = Worker()
        self.evaluations = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def reason(self, model: Model, base: Model | None = None) -> str:
        """Why a model does not compute what another does, as the end of a sentence; "" where it does.

        Args:
            model: what to check.
            base: what is right; the first model if it is None.

        Raises:
            EvaluationError: the model that is right does not run.
            FeedError: no values can be made up for its inputs.
        """
        self.evaluations += 1
        with Verifier(TwoModels(base or self._first, model), self._plan, worker=self._worker) as verifier:
            try:
                found = verifier.result()
            except EvaluationError as error:
                if error.side == 0:
                    raise
                return f"does not run any more: {error}"
        if found.equal:
            return ""
        missing = [each.name for each in found.outputs if each.target_name is None]
        if missing:
            return f'has no output "{missing[0]}" any more'
        problems = [run.problem for run in found.runs if run.problem]
        worst = max((each for each in found.outputs if each.failed), key=lambda each: each.failed, default=None)
        why = f": {problems[0]}" if problems else ""
        if worst is not None and worst.worst is not None and not problems:
            largest = worst.worst.largest_absolute
            why = f': "{worst.name}" differs' + ("" if largest is None else f" by up to {largest:.3g}")
            why = why if worst.worst.problem is None else f': "{worst.name}" has {worst.worst.problem}'
        return f"computes something else, {found.failed} of {len(found.runs)} runs failed{why}"

    def first_wrong(self, made: Sequence[Made]) -> Culprit | None:
        """The first pass after which the model does not compute the same; None where the last one's result does.

        Raises:
            EvaluationError, FeedError: see `reason`.
        """
        changed = [each for each in made if each.is_changed]
        if not changed:
            return None
        last = self.reason(changed[-1].after.model)
        if not last:
            return None
        for each in changed[:-1]:
            reason = self.reason(each.after.model)
            if reason:
                return Culprit(each, reason)
        return Culprit(changed[-1], last)

    def part(self, pipeline: Pipeline, made: Made, model_folder: Path | None = None) -> WrongPart:
        """The part that breaks the model, found by halving.

        Raises:
            PassError: the optimizer failed when it was asked for its parts.
            EvaluationError, FeedError: see `reason`.
        """
        before = self.evaluations
        parts = _parts(pipeline, made, model_folder)
        low, high = 0, len(parts)  # with `low` parts it is right, with `high` it is wrong
        if not parts or not self.reason(parts[-1][1](), made.before.model):
            return WrongPart(None, len(parts), self.evaluations - before)
        while high - low > 1:
            middle = (low + high) // 2
            if self.reason(parts[middle - 1][1](), made.before.model):
                high = middle
            else:
                low = middle
        return WrongPart(parts[high - 1][0], len(parts), self.evaluations - before)


_Part = tuple[str, Callable[[], Model]]
"""What it is called, and what makes the model after it."""


def _parts(pipeline: Pipeline, made: Made, model_folder: Path | None) -> list[_Part]:
    subject = made.step.subject
    if isinstance(subject, ScriptPass):
        return _edits(Script.load(subject.file), made.before.model, model_folder)

    def parsed(data: bytes) -> Callable[[], Model]:
        def model() -> Model:
            try:
                return serde.parse(data).model
            except (WireError, IndexError) as error:
                raise OnnxJsonError(f"a part of {made.name} gives no model: {error}") from error

        return model

    return [(each.name, parsed(each.model)) for each in pipeline.parts(made)]


def _edits(script: Script, model: Model, model_folder: Path | None) -> list[_Part]:
    def after(count: int) -> Callable[[], Model]:
        return lambda: run_edits(model, Script(script.edits[:count], script.folder), model_folder=model_folder).model

    return [(f"{number}: {name_of(edit)}", after(number)) for number, edit in enumerate(script.edits, 1)]
