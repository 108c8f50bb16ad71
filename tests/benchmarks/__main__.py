"""``python -m tests.benchmarks``: measure, print the tables."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import cases, rows
from tests.benchmarks.report import Results, report
from tests.benchmarks.tools import onnxjson


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that are asked for; the exit code."""
    options = _parser().parse_args(arguments)
    wanted = set(options.only or cases.NAMES)
    with tempfile.TemporaryDirectory(prefix="onnxjson-benchmarks-", dir=options.folder) as folder:
        setting = cases.Setting(Path(folder), options.repeat, options.quick, options.all)
        setting.printed(onnxjson("--help"))  # compiles what was not compiled yet
        results = _results(wanted, setting)
        text = report(results, goals=not options.quick, figures=options.all or bool(options.only))
    print(text, end="")
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    return 0


def _results(wanted: set[str], setting: cases.Setting) -> Results:
    results = Results()
    results.comparisons = [cases.compare(case, setting) for case in cases.CASES if case.name in wanted]
    if "replace" in wanted:
        results.replaced = cases.replacing(setting)
    if "rows" in wanted:
        results.rows = rows.measured(setting)
    return results


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Measure onnxjson beside protobuf's json_format, onnx2json and onnx's text format.",
    )
    parser.add_argument("--quick", action="store_true", help="tiny models, to see that everything works")
    parser.add_argument("--only", action="append", metavar="NAME", choices=cases.NAMES, help=", ".join(cases.NAMES))
    parser.add_argument("--all", action="store_true", help="every tool, every figure")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="rounds; the median counts (1)")
    parser.add_argument("--folder", type=Path, help="where the temporary folder goes; it takes 4 GB")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the tables to FILE too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
