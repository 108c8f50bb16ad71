"""Every pass on every model: what it changed, what it lost, where it failed. The parent process never dies.

::

    python -m tests.optimizing.sweep                                     # all passes, exported and node models: half a
    day python -m tests.optimizing.sweep --nodes 100 --minutes 60
    python -m tests.optimizing.sweep --nodes 100 onnxsim onnxslim
    python -m tests.optimizing.sweep --models ~/models --nodes 0 onnxoptimizer
"""

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from onnxjson.codecs import serde
from onnxjson.model.errors import ParameterError
from onnxjson.optimizing.passes import PassResult, Pipeline, parse_step
from onnxjson.optimizing.passes.catalogue import entries
from tests.corpus.collection import node_models

EXPORTS = Path(__file__).parent.parent / "models"


class Case(NamedTuple):
    """A model by name."""

    name: str
    data: bytes


def cases(folder: Path, nodes: int | None) -> Iterator[Case]:
    """The models of a folder, and so many node models of onnx, evenly chosen; all of them for None."""
    for path in sorted(folder.glob("*.onnx")):
        yield Case(path.name, path.read_bytes())
    found = node_models() if nodes != 0 else ()
    step = 1 if not nodes else max(len(found) // nodes, 1)
    for model in found[::step][:nodes]:
        yield Case(model.name, model.data)


def swept(case: Case, passes: Iterable[str], pipeline: Pipeline) -> Iterator[PassResult]:
    """What each pass by itself makes of a model."""
    model = serde.parse(case.data).model
    for name in passes:
        yield from pipeline.run(model, [parse_step(name)])


def all_passes() -> list[str]:
    """The passes and their parts that need no options and are installed."""
    found = [entry.name for entry in entries() if entry.kind in ("pass", "part") and entry.problem is None]
    return [name for name in found if _runs_alone(name)]


def _runs_alone(name: str) -> bool:
    try:
        parse_step(name)
    except ParameterError:  # It needs an option, or one of several.
        return False
    return True


def main(arguments: Sequence[str]) -> int:
    """Prints a line for each failure, then one for each pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passes", nargs="*", help="passes as after -p; all of them if none is named")
    parser.add_argument("--models", type=Path, default=EXPORTS, help="a folder of models")
    parser.add_argument("--nodes", type=int, help="how many node models of onnx; all if left out")
    parser.add_argument("--seconds", type=float, default=60, help="what one pass may take")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after these it ends with what it has")
    given = parser.parse_args(arguments)
    passes = given.passes or all_passes()
    runs, changed, failed, lost = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    started = time.monotonic()
    with Pipeline(keep_going=True, seconds=given.seconds) as pipeline:
        for case in cases(given.models, given.nodes):
            if time.monotonic() - started >= given.minutes * 60:
                print(f"left out for lack of time: {case.name} and what follows")
                break
            for made in swept(case, passes, pipeline):
                runs[made.name] += 1
                changed[made.name] += made.is_changed
                lost[made.name] += bool(made.notes)
                if made.failure is not None:
                    failed[made.name] += 1
                    print(f"{case.name}: {made.failure}", flush=True)
    print(f"{'pass':<60} {'runs':>6} {'changed':>8} {'notes':>6} {'failed':>7}")
    for name, count in runs.items():
        print(f"{name:<60} {count:>6} {changed[name]:>8} {lost[name]:>6} {failed[name]:>7}")
    seconds = time.monotonic() - started
    print(f"{sum(runs.values()):,} runs in {seconds:.0f} s; {sum(failed.values()):,} failed, all contained")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
