"""The law of diffs on real models: a model and what a pass made of it differ without an error, and exactly as patches.

::

    python -m tests.laws.real_diffs ~/models                # every model of the folder after every pass
    python -m tests.laws.real_diffs ~/models onnxsim float16
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.diffing.difference import diff_models
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.rendering.diff_html import diff_html
from onnxjson.rendering.diff_report import report
from onnxjson.rendering.diff_text import diff_lines
from onnxjson.rendering.reports import diff_json
from tests.optimizing.sweep import all_passes

MEASURED: Final = ("mixed-precision{evaluations=20,samples=2}", "quantize-static{samples=2}")
"""Passes that run the model, with options that keep them from running it hundreds of times."""
_OF_RUNS: Final = tuple([each.partition("{")[0] for each in MEASURED])


class Pair(NamedTuple):
    name: str
    before: Model
    after: Model


class DiffResult(NamedTuple):
    """What the diff of two models is."""

    events: int
    broken: tuple[str, ...]
    """Laws that do not hold; none if all is well."""


def diff_law(before: Model, after: Model) -> DiffResult:
    """Compare two models; every form of the report is made, and the patch leads from each to the other, byte by byte.

    A failure of any kind is a broken law, never an exception.
    """
    events, broken = 0, list[str]()
    for what, one, other in (("diff", before, after), ("diff back", after, before)):
        try:
            difference = diff_models(one, other)
            events = events or len(difference.events)
            data = message_bytes(one), message_bytes(other)
            if message_bytes(difference.patch.apply(one)) != data[1]:
                broken.append(f"{what}: the patch does not lead to the target")
            if message_bytes(difference.patch.invert().apply(other)) != data[0]:
                broken.append(f"{what}: the inverse patch does not lead to the base")
            if difference.equal != (data[0] == data[1]) and not difference.incomplete:
                broken.append(f"{what}: equal is {difference.equal}")
            shown = report(difference, "before", "after")
            for made in (diff_lines(shown, 100, details=True), diff_json(shown), diff_html(shown)):
                Counter(made)
        except Exception as error:  # any failure is a finding about these models
            broken.append(f"{what}: {type(error).__name__}: {error}"[:300])
    return DiffResult(events, tuple(broken))


def pairs(path: Path, passes: Sequence[str] = (), seconds: float = 60.0) -> Iterator[Pair | str]:
    """Yield a model with the result of each pass that changes it, and a text for each pass that fails.

    Args:
        path: the file of the model.
        passes: as after ``-p``; all that need no options, and `MEASURED`, if none is named.
        seconds: time limit of one pass.
    """
    model = serde.parse(path.read_bytes()).model
    names = passes or [*[name for name in all_passes() if ":" not in name and name not in _OF_RUNS], *MEASURED]
    with Pipeline(seconds=seconds, keep_going=True) as pipeline:
        for name in names:
            try:
                for made in pipeline.run(model, [parse_step(name)], path.parent):
                    if made.failure is not None:
                        yield f"{name}: {made.failure}"
                    elif made.is_changed:
                        yield Pair(f"{path.stem} {name}", model, made.after.model)
            except OnnxJsonError as error:
                yield f"{name}: {error}"


def main(folder: Path, passes: Sequence[str]) -> int:
    """Print a line for each broken law and each model; return 1 if a law is broken."""
    number = wrong = 0
    for path in sorted(folder.glob("*.onnx")):
        counts = Counter[str]()
        for pair in pairs(path, passes):
            if isinstance(pair, str):
                counts["passes failed"] += 1
                continue
            result = diff_law(pair.before, pair.after)
            counts["pairs"] += 1
            counts["events"] += result.events
            counts["broken"] += bool(result.broken)
            for each in result.broken:
                print(f"{pair.name}: {each}", flush=True)
        number, wrong = number + counts["pairs"], wrong + counts["broken"]
        print(f"{path.stem:24}", *[f"{name} {count}" for name, count in counts.items()], sep="  ", flush=True)
    print(f"{number} pairs, {wrong} broken")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
