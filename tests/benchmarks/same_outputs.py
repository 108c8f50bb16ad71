"""Whether two versions of onnxjson do the same: ``python -m tests.benchmarks.same_outputs record FOLDER``.

`record` runs the lines of `output_cases` on models, and keeps exit codes and all that was printed and written;
``compare OLD NEW`` compares two such records. What differs in wording alone, with the same numbers and names, is
counted apart. Only the command of the package is used, so that a record of any version can be made: the lines name
their cases, and `SPELLINGS` maps options and commands that were renamed.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import onnx

from tests.benchmarks.output_cases import MODEL_SESSIONS
from tests.benchmarks.output_comparing import Comparison, Verdict, compare
from tests.benchmarks.output_names import names_of
from tests.benchmarks.output_pass_cases import GENERAL_SESSIONS, PASSES
from tests.benchmarks.output_recording import Recorder, Session

DEFAULT_MODELS: Final = Path(__file__).parent.parent / "models"

SMALL: Final = 100
"""Nodes up to which a model gets all passes without --all-passes."""


def sessions(models: Sequence[Path], only: Sequence[str], *, all_passes: bool) -> list[Session]:
    """The sessions that need no model, and those of each model; `only` names sessions or models, and [] means all."""
    found = [Session(f"general/{name}", lines) for name, lines in GENERAL_SESSIONS.items()]
    for number, path in enumerate(models):
        other = models[(number + 2) % len(models)]  # exporters alternate: most often the other one of the same
        names = names_of(path, other)
        lines = dict(MODEL_SESSIONS)
        if all_passes or len(onnx.load(path).graph.node) <= SMALL:
            lines["passes"] = PASSES
        found += [Session(f"{path.stem}/{name}", text, path, other, names) for name, text in lines.items()]
    return [session for session in found if not only or set(only) & set(session.name.split("/"))]


def report(comparison: Comparison, most: int, *, wording: bool) -> str:
    """The tables of a comparison, and up to `most` differences; those of wording only if asked for."""
    lines = [f"{'session':<14}" + "".join(f"{verdict.value:>26}" for verdict in Verdict)]
    lines += [
        f"{name:<14}" + "".join(f"{counts[verdict]:>26,}" for verdict in Verdict)
        for name, counts in comparison.counts.items()
    ]
    for verdict in (Verdict.DIFFERENT, *([Verdict.WORDING] if wording else [])):
        shown = [difference for difference in comparison.differences if difference.verdict is verdict]
        lines += [f"\n{difference.shown()}" for difference in shown[:most]]
        if len(shown) > most:
            lines.append(f"\n{len(shown) - most:,} more are {verdict.value}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Record or compare; 1 if something really differs."""
    options = _parser().parse_args(arguments)
    if options.what == "compare":
        found = compare(options.old, options.new)
        print(report(found, options.most, wording=options.wording))
        return int(not found.is_same)
    models = sorted({path for folder in options.models or [DEFAULT_MODELS] for path in folder.rglob("*.onnx")})
    start = time.monotonic()
    recorder = Recorder(options.folder, new_spellings=options.spellings == "new")
    count = recorder.run(sessions(models, options.only, all_passes=options.all_passes), options.jobs)
    print(f"{count:,} cases, {len(models)} models, {time.monotonic() - start:.0f} s")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.same_outputs", description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    recording = commands.add_parser("record", help="run everything and keep what came of it")
    recording.add_argument(
        "folder", type=Path, metavar="FOLDER", help="the record; sessions that it has already are not run"
    )
    recording.add_argument("--models", type=Path, action="append", metavar="DIR", help="tests/models if left out")
    recording.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="a session or a model: diff, general"
    )
    recording.add_argument("--all-passes", action="store_true", help=f"all passes on models of more than {SMALL} nodes")
    recording.add_argument("--spellings", choices=("old", "new"), default="old", help="of commands and options")
    recording.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="sessions side by side (1)")
    comparing = commands.add_parser("compare", help="compare two records; exit 1 if something really differs")
    comparing.add_argument("old", type=Path, metavar="OLD")
    comparing.add_argument("new", type=Path, metavar="NEW")
    comparing.add_argument("--most", type=int, default=40, metavar="N", help="differences to show of each kind (40)")
    comparing.add_argument("--wording", action="store_true", help="also show what differs in wording only")
    return parser


if __name__ == "__main__":
    sys.exit(main())
