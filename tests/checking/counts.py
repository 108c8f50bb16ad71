"""``python -m tests.checking.counts [--models DIR] [--sample N] [--doctor PROGRAM]``: findings of all lint rules.

Counts the findings in ``tests/models``, in the models of DIR, and in onnx's node test cases. --sample prints N random
findings, to be judged by hand. --doctor also runs the program onnx-doctor on the models, and on the model of each rule
that breaks it, and prints what each of the two finds, and the CPU seconds.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import onnxjson
from onnxjson.checking.catalogue import RULES
from onnxjson.checking.linting import Subject, lint
from onnxjson.model.errors import Finding
from onnxjson.storage.api import from_proto
from tests.checking.test_rules import CASES
from tests.checking.texts import parsed
from tests.corpus.collection import file_models, node_models

MODELS: Final = Path(__file__).parents[1] / "models"


def findings(folder: Path | None) -> Iterator[tuple[str, str, list[Finding]]]:
    """Yield source, name and findings of each model."""
    for path in [*sorted(MODELS.glob("*.onnx")), *(sorted(folder.rglob("*.onnx")) if folder else ())]:
        yield "exporters", path.name, list(lint(Subject(onnxjson.load(path), path.parent), RULES))
    import onnx

    for each in (*node_models(), *file_models()):
        model = from_proto(onnx.ModelProto.FromString(each.data))
        yield "onnx", each.name, list(lint(Subject(model, Path()), RULES))


def doctor_codes(program: str, path: Path) -> tuple[list[str], float]:
    """Return the codes that onnx-doctor reports, and its CPU seconds."""
    return _codes([program, "check", "--output-format", "json", str(path)])


def our_codes(path: Path) -> tuple[list[str], float]:
    """Return the codes that ``onnxjson check`` reports, and its CPU seconds."""
    return _codes([sys.executable, "-m", "onnxjson", "check", str(path), "--select", "all", "--format", "json"])


def _codes(command: Sequence[str]) -> tuple[list[str], float]:
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = os.times()
    found = json.loads(done.stdout or "[]")
    rows = found if isinstance(found, list) else found["findings"]
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return [row["code"] for row in rows], seconds


def beside(program: str, folder: Path | None) -> None:
    """Print what both find, model by model and rule by rule."""
    print(f"{'model':28}{'onnxjson':>9}{'s':>6}{'doctor':>9}{'s':>6}")
    for path in [*sorted(MODELS.glob("*.onnx")), *(sorted(folder.rglob("*.onnx")) if folder else ())]:
        (ours, mine), (theirs, its) = our_codes(path), doctor_codes(program, path)
        print(f"{path.name:28}{len(ours):9}{mine:6.1f}{len(theirs):9}{its:6.1f}  {' '.join(sorted(set(theirs)))}")
    both: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        for code, _, broken, _ in CASES:
            path = Path(temporary) / f"{code}.onnx"
            opset, _, body = broken[1:].partition(" ") if broken.startswith("@") else ("21", "", broken)
            onnxjson.save(parsed(f"g {body}", opset=int(opset)), path)
            theirs, _ = doctor_codes(program, path)
            named = sorted(set(theirs) - {"ONNX018", "ONNX001"})  # about types and names that the cases leave out
            both += [code] if named else []
            print(f"{code}  {' '.join(named)}")
    print(
        f"{len(CASES)} models that break a rule; onnx-doctor reports something else than missing types in {len(both)}"
    )


def _sample(every: list[tuple[str, str, Finding]], count: int) -> Iterator[tuple[str, str, Finding]]:
    """Yield random findings, errors first, then of each rule in turn."""
    random.Random(1).shuffle(every)
    turns: Counter[str] = Counter()
    keyed = []
    for row in every:
        turns[row[2].code] += 1
        keyed.append((row[2].severity != "error", turns[row[2].code], row[2].code, row))
    yield from [row for *_, row in sorted(keyed, key=lambda each: each[:3])[:count]]


def main(arguments: Sequence[str]) -> int:
    """Print the tables; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.checking.counts")
    parser.add_argument("--models", type=Path, help="also count in the models of a folder")
    parser.add_argument("--sample", type=int, default=0, help="findings to print for judging")
    parser.add_argument("--doctor", help="path of the program onnx-doctor")
    options = parser.parse_args(arguments)
    if options.doctor:
        beside(options.doctor, options.models)
        return 0
    counts: Counter[tuple[str, str, str]] = Counter()
    models: Counter[str] = Counter()
    every = []
    for source, name, found in findings(options.models):
        models[source] += 1
        counts.update([(source, each.severity, each.code) for each in found])
        every += [(source, name, each) for each in found]
    for (source, severity, code), count in sorted(counts.items()):
        print(f"{source:16}{severity:9}{code:8}{count:7,}")
    for source, count in models.items():
        of_source = [each for where, _, each in every if where == source]
        errors = sum(each.severity == "error" for each in of_source)
        print(f"{source}: {count:,} models, {len(of_source):,} findings, {errors:,} errors")
    for source, name, each in _sample(every, options.sample):
        print(f"{source}: {name}: {each.address}: {each.severity}[{each.code}] {each.message}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
