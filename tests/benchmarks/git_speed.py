"""``python -m tests.benchmarks.git_speed``: what git waits for when it shows or merges a model, as whole processes.

Every line is started as git starts it, by a shell, from the settings that `onnxjson git install` writes. Beside it
stands what importing onnx alone takes, and nbdime's drivers on a small notebook where they are installed.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import onnxjson
from onnxjson.editing.edits import SetAttribute
from onnxjson.git.driver_lines import settings_for
from onnxjson.model.document import Model
from tests.benchmarks.graphs import layers
from tests.benchmarks.measuring import Figures
from tests.benchmarks.report import table
from tests.benchmarks.tools import Command, python

BIG: Final = 10_000

ENDINGS: Final = (".onnx.json", ".onnx")


class Row(NamedTuple):
    """A thing that is measured."""

    name: str
    command: Command
    environment: dict[str, str]
    fresh: tuple[Path, Path] | None = None
    """Copied, from and to, before each run: a merge driver writes over one of its files."""


def _sides(folder: Path, nodes: int, ending: str) -> tuple[Path, Path, Path]:
    """Three models: the base, and two with another value of another node each."""
    base = onnxjson.from_proto(layers(nodes))
    assert base.graph is not None
    named = [node.name or "" for node in base.graph.node if node.op_type == "LeakyRelu"]
    models: list[Model] = [
        base,
        onnxjson.apply(base, SetAttribute(node=named[0], attribute="alpha", value=0.25)),
        onnxjson.apply(base, SetAttribute(node=named[-1], attribute="alpha", value=0.75)),
    ]
    paths = [folder / f"{name}-{nodes}{ending}" for name in ("base", "ours", "theirs")]
    for path, model in zip(paths, models, strict=True):
        onnxjson.save(model, path)
    return paths[0], paths[1], paths[2]


def _rows(folder: Path, big: int) -> Iterator[Row]:
    settings = settings_for(sys.executable)
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    none = {"XDG_CACHE_HOME": "/dev/null"}
    yield Row('python -c ""', python("-I", "-c", ""), {})
    yield Row('python -c "import onnx"', python("-I", "-c", "import onnx"), {})
    for nodes in (8, big):
        for ending in ENDINGS:
            base, ours, theirs = _sides(folder, nodes, ending)
            what = f"{ending}, {nodes:,} nodes ({base.stat().st_size / 1e3:,.0f} kB)"
            section = "onnx" if ending == ".onnx" else "onnxjson"
            shown: Command = ["sh", "-c", settings[f"diff.{section}.textconv"] + ' "$@"', "-", base]
            yield Row(f"textconv of {what}", shown, none)
            if nodes == big:
                yield Row(f"the same of {ending}, kept from last time", shown, cache)
            result = folder / f"result{ending}"
            line = settings[f"merge.{section}.driver"]
            places = {"%O": base, "%A": result, "%B": theirs, "%L": 7, "%P": f"m{ending}", "%%": "%"}
            for word, place in places.items():
                line = line.replace(word, str(place))
            yield Row(f"merge of {what}", ["sh", "-c", line], none, (ours, result))


def _notebook(first: str, second: str) -> dict[str, Any]:
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"c{number}",
            "metadata": {},
            "outputs": [],
            "source": text,
        }
        for number, text in enumerate([first, "import math", "math.pi", second])
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def _others(folder: Path) -> Iterator[Row]:
    merging, showing = shutil.which("git-nbmergedriver"), shutil.which("nbdiff")
    if merging is None or showing is None:
        print("nbdime is not on the PATH; its rows are left out", file=sys.stderr)
        return
    sides = {"base": ("a = 1", "b = 1"), "ours": ("a = 2", "b = 1"), "theirs": ("a = 1", "b = 2")}
    base, ours, theirs = [folder / f"{name}.ipynb" for name in sides]
    for path, texts in zip((base, ours, theirs), sides.values(), strict=True):
        path.write_text(json.dumps(_notebook(*texts)))
    result = folder / "result.ipynb"
    yield Row("nbdime: diff of a notebook of 4 cells", [showing, "--no-color", base, ours], {})
    yield Row("nbdime: merge of a notebook of 4 cells", [merging, "merge", base, result, theirs, "7", "m.ipynb"], {},
              (ours, result))  # fmt: skip


def measured(folder: Path, big: int, rounds: int) -> dict[str, Figures]:
    """The figures of every row, in rounds, so that what else the machine does hits all alike."""
    rows = [*_rows(folder, big), *_others(folder)]
    found = {row.name: Figures() for row in rows}
    for number in range(rounds + 1):
        for row in rows:
            if row.fresh is not None:
                shutil.copyfile(*row.fresh)
            figures = found[row.name]
            figures.add(row.command, row.environment)
            if not number:
                figures.runs.clear()  # compiles modules, fills the cache
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def main(arguments: list[str]) -> int:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=BIG, help="nodes of the big model")
    parser.add_argument("--repeat", type=int, default=7, help="rounds; the median counts")
    parser.add_argument("--json", action="store_true", help="JSON in place of a table")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="onnxjson-benchmarks-") as folder:
        found = measured(Path(folder), options.nodes, options.repeat)
    if options.json:
        print(json.dumps({name: [run.seconds for run in each.runs] or each.skipped for name, each in found.items()}))
        return 0
    rows = [
        [name, each.skipped, ""] if each.skipped
        else [name, f"{each.seconds:.3f}", f"{each.cpu_seconds:.3f}"]
        for name, each in found.items()
    ]  # fmt: skip
    print(table("What git waits for", ["whole process", "s", "cpu s"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
