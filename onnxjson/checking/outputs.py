"""The outputs of a changed model beside those of its base: equal, different, or why that is not known."""

import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

from onnxjson.diffing.events import Kind
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.running.comparisons import Comparison
from onnxjson.running.verdicts import Verification

_TINY: Final = 1e-9
"""Outputs below this are mostly the rest of a model whose values vanish."""


class Outputs(NamedTuple):
    """What is known about the outputs of a model beside those of its base."""

    verdict: Literal["equal", "different", "inconclusive", "not-compared"]
    """Inconclusive: they differ, but are so small that this says little; or they should differ, or were not run."""
    words: str
    """``equal within the tolerance in 3 runs with N = 1, largest difference 4e-07, 0.01 % of the largest value``."""
    detail: str = ""
    """Why, or which; visible."""
    largest: float | None = None
    """The largest absolute difference; None if that is not known."""

    @property
    def text(self) -> str:
        """One sentence, visible."""
        return f"outputs {self.words}" + (f": {self.detail}" if self.detail else "")


def compare_outputs(
    base: Path, file: Path, dims: Mapping[str, int], seconds: float, opened: Collection[str] = ()
) -> Outputs:
    """Run two models on the same random inputs, in a sandbox, for at most some seconds.

    Dimensions that are `opened` are fixed in the base: where that has 1, the other also has to run with 2.
    """
    from onnxjson.running.model_run import run
    from onnxjson.running.verification import verify

    begin = time.monotonic()
    try:
        result = verify(base, file, dims=dims, timeout=seconds)
    except OnnxJsonError as error:
        return Outputs("not-compared", "not compared", str(error))
    runs = counted(len(result.runs), "run")
    missing = [each.name for each in result.outputs if each.target_name is None]
    others = [each for each in result.outputs if each.target_name is not None]
    failed = max([each.failed for each in others], default=0) if missing else result.failed
    is_equal = result.equal or (
        bool(missing and others) and not failed and all([each.compared == len(result.runs) for each in others])
    )
    worst = [None if each.worst is None else _largest(each.worst) for each in result.outputs]
    known = [each for each in worst if each is not None]
    is_complete = len(known) == len(worst) and not result.uncompared
    is_complete = is_complete and all([each.verdict != "failed" for each in result.runs])
    largest = max(known, default=0.0) if is_complete else None
    if is_equal:
        words = f"{_equality(result)} in {runs}{_sizes(result)}{_furthest(result)}"
        if missing:
            lost = listed([f'"{visible(name)}"' for name in missing], 3)
            return Outputs("not-compared", f"the others are {words}", f"the head has no {lost}")
        more = {name: 2 for name, tried in result.sizes.items() if tried == [1] and name in opened and name not in dims}
        left = seconds - (time.monotonic() - begin)
        if not more or left <= 0:
            return Outputs("equal", words, largest=largest)
        sizes = listed([f"{visible(name, 30)} = 2" for name in more], 2)
        try:
            run(file, dims={**dims, **more}, timeout=left)
        except OnnxJsonError as error:
            return Outputs("inconclusive", f"{words}, but the head did not run with {sizes}", str(error), largest)
        return Outputs("equal", f"{words}; the head also runs with {sizes}", largest=largest)
    if any([each.failed for each in result.outputs]):
        names = [
            f'"{visible(each.name)}"' + ("" if size is None else f" by up to {_amount(size, each.worst)}")
            for each, size in zip(result.outputs, worst, strict=True)
            if each.failed
        ]
        scales, sizes = _scales(result), _sizes(result)
        if len(scales) == len(names) and max(scales) < _TINY:
            why = f"all values are below {max(scales):.1g}, compare with real inputs; {listed(names, 3)}"
            return Outputs("inconclusive", f"inconclusive in {runs}{sizes}", why, largest)
        return Outputs("different", f"differ in {failed:,} of {runs}{sizes}", listed(names, 3), largest)
    if missing:
        return Outputs("not-compared", "not compared", f'the head has no "{visible(missing[0])}"')
    problems = [each.problem for each in result.runs if each.problem]
    if problems and time.monotonic() - begin >= seconds:
        return Outputs("not-compared", "not compared", f"{seconds:g} s were not enough (--verify-seconds)")
    if problems:
        return Outputs("different", f"fail in {result.failed:,} of {runs}", problems[0])
    return Outputs("not-compared", "not compared", result.doubt or "no run of both models completed")


def doubted(outputs: Outputs | None, kinds: Collection[Kind]) -> Outputs | None:
    """Return outputs with a doubt if weights are all that changed, and no run shows it; `kinds` are those of events."""
    if outputs is None or outputs.verdict != "equal" or outputs.largest or {*kinds} != {"weights-changed"}:
        return outputs
    return outputs._replace(
        verdict="inconclusive", words=f"{outputs.words}, although weights changed", detail="compare with real inputs"
    )


def _equality(result: Verification) -> str:
    is_identical = all([each.worst is None or not each.worst.largest_absolute for each in result.outputs])
    return "identical" if is_identical else "equal within the tolerance"


def _furthest(result: Verification) -> str:
    """``, largest difference 4e-07, 0.01 % of the largest value``, of the output that is furthest; "" if none is."""
    known = [each.worst for each in result.outputs if each.worst is not None and each.worst.largest_absolute]
    furthest = max(known, key=lambda each: each.largest_absolute or 0.0, default=None)
    return "" if furthest is None else f", largest difference {_amount(furthest.largest_absolute or 0.0, furthest)}"


def _amount(size: float, compared: Comparison | None) -> str:
    """``0.0111, 4 % of the largest value``, or the difference alone if nothing is known of the values of the base."""
    scale = None if compared is None else compared.scale
    if not scale:
        return f"{size:.3g}"
    share = 100 * size / scale
    return f"{size:.3g}, {share:{',.0f' if share >= 10 else '.2g'}} % of the largest value"


def _scales(result: Verification) -> list[float]:
    """The largest values of the base in the outputs that differ, where they are known."""
    scales = [each.worst.scale for each in result.outputs if each.failed and each.worst is not None]
    return [scale for scale in scales if scale]


def _sizes(result: Verification) -> str:
    """`` with N = 1, 4`` for dimensions that runs may choose; of many the first."""
    sizes = [(name, listed([*map(str, tried)], 3)) for name, tried in result.sizes.items()]
    texts = [f"{visible(name, 30)} = {shown}" for name, shown in sizes]
    return f" with {listed(texts, 2)}" if texts else ""


def _largest(compared: Comparison) -> float | None:
    """Return the largest difference; None if arrays could not be compared, or only one has NaN or an infinity."""
    if compared.problem is not None or compared.nonfinite:
        return None
    return compared.largest_absolute or 0.0
