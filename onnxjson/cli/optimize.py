"""``onnxjson optimize``: passes run one after the other on one or many models."""

import functools
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click

from onnxjson.cli import changing, failures, feeding, options, output, reports
from onnxjson.cli.paths import FilePath
from onnxjson.editing.script import Script
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Model
from onnxjson.model.errors import DifferenceError, PassError
from onnxjson.optimizing.passes import NewFile, PassResult, Pipeline, Step, files_written
from onnxjson.optimizing.passes.big_constants import InternalizedModel, stage_of
from onnxjson.optimizing.passes.bisecting import Checks
from onnxjson.optimizing.passes.catalogue import all_names, is_called, parse_step, quote_the_braces
from onnxjson.optimizing.passes.recipe import load_recipe
from onnxjson.optimizing.passes.user import ScriptPass
from onnxjson.optimizing.trace_records import Recorder
from onnxjson.optimizing.trace_storing import require_room, write_trace
from onnxjson.rendering.pass_list import lines, summary
from onnxjson.rendering.tables import wrapped
from onnxjson.running.comparisons import Tolerance
from onnxjson.running.verification import Plan
from onnxjson.storage import files
from onnxjson.storage.files import Loaded


class _Model(FilePath):
    """The path of a model; the error explains a pass in braces that the shell has expanded."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and "=" in value and not Path(value).exists():
            self.fail(f"{output.quoted(value)} is not a file; {quote_the_braces(value)}", param, ctx)
        if isinstance(value, str) and value in all_names() and not Path(value).exists():
            self.fail(f"{output.quoted(value)} is a pass, not a file; write -p {value}", param, ctx)
        return super().convert(value, param, ctx)


@options.command("optimize")
@click.argument("paths", metavar="MODEL...", nargs=-1, required=True, type=_Model())
@changing.request_options({"--timeout"})
@options.several(
    "-p, --pass PASS",
    "Run this pass: NAME, NAME:PART, 'NAME{option=value,...}', a rewrite script, or a Python file; a * at the end "
    "repeats it until nothing changes. Can be repeated; passes run in order.",
    "passes",
    type=options.Parsed("pass", parse_step, all_names),
)
@options.option("--recipe FILE", "Run the passes of a recipe before those of -p.")
@options.option("--until PASS", "Stop after this pass.")
@options.option("--skip PASS", "Skip this pass; can be repeated.", multiple=True)
@options.option("--trace DIR", "Record in DIR what each pass changed, for `onnxjson trace DIR`.", "trace_folder")
@options.option("--verify", "Compare the outputs of the result with those of MODEL; name the pass at fault.")
@options.option("--bisect", "Like --verify; also name the rule, edit or part of the pass at fault.")
@options.tolerance
@options.option("--keep-going", "Skip passes that fail, and exit 1 at the end.")
@options.option("--max-size SIZE", "Reject results of passes larger than this, such as 500M.")
@options.trust
@options.timeout("Time limit of one pass.", "seconds", default=300.0)
@options.memory(
    "Memory limit of one pass (address space); raised to twelve times the size of the model if that is more.",
    default="4G",
)
@options.option("--allow-sparse", "Read weights even if their file is sparse (mostly holes).")
@click.pass_context
def optimize_command(
    ctx: click.Context,
    /,
    paths: tuple[Path, ...],
    *,
    passes: tuple[Step, ...],
    recipe: Path | None,
    until: str | None,
    skip: tuple[str, ...],
    trace_folder: Path | None,
    verify: bool,
    bisect: bool,
    tolerances: tuple[tuple[str, str], ...],
    allow_sparse: bool,
    **given: Any,
) -> None:
    """Run optimizers on models; report what each one changed.

    Every pass runs in a separate process, without access to the network or your other files; a pass that crashes or
    hangs does no harm. A result that is not a valid model is not written. `onnxjson passes` lists the passes; edits
    and rewrite scripts are passes too.

    \b
    onnxjson optimize m.onnx -p onnxsim -o small.onnx
    onnxjson optimize m.onnx -p onnxoptimizer:fuse_bn_into_conv --dry-run
    onnxjson optimize m.onnx -p 'onnxscript*' -p prune -i
    onnxjson optimize models/*.onnx --recipe recipe.json --skip onnxslim -o small
    onnxjson optimize m.onnx -p onnxsim -p onnxruntime -o small.onnx --trace steps
    onnxjson optimize m.onnx -p onnxsim -p mine.py -o small.onnx --bisect
    """
    request = changing.request(paths, given)
    if trace_folder is not None:
        if len(paths) > 1:
            raise click.UsageError(f"--trace records the passes on one model, but {len(paths):,} are given")
        require_room(trace_folder)
    steps = _steps(passes, recipe, until, skip)
    check = _Verification(feeding.tolerances(tolerances), bisect) if verify or bisect else None
    with Pipeline(**given, unloadable=bool(request.unloadable)) as pipeline:
        change = _Change(pipeline, steps, request.weights_from, len(paths) > 1, trace_folder, check, allow_sparse)
        code = changing.run(request, change)
    ctx.exit(code or change.trace_code or int(change.has_failures))


class _Verification(NamedTuple):
    """Whether the results of passes compute the same as the model; returns why that is not certain, "" if it is."""

    tolerances: Mapping[str, Tolerance]
    bisect: bool

    def __call__(self, first: Model, everything: Sequence[PassResult], pipeline: Pipeline, path: Path) -> str:
        with Checks(first, Plan(tolerances=self.tolerances), path) as checks:
            with output.working("comparing the outputs of the result and the model"):
                culprit = checks.first_wrong(everything)
            if culprit is None:
                return checks.doubt
            where = "--bisect finds the part at fault"
            if self.bisect:
                with output.working(f"bisecting {culprit.made.name}"):
                    part = checks.part(pipeline, culprit.made, path.parent)
                where = "its parts cannot be separated" if part.name is None else (
                    f"among its {output.counted(part.parts, 'part')}, the outputs are right before "
                    f"{visible(part.name)} and wrong after it ({output.counted(part.evaluations, 'model')} run)"
                )  # fmt: skip
        reason = f"after {visible(culprit.made.name)} the model {culprit.reason}"
        raise DifferenceError(f"{reason}; {where}; nothing was written")


@dataclass
class _Change:
    """The passes, run on models."""

    pipeline: Pipeline
    steps: Sequence[Step]
    weights_from: Path | None
    many: bool
    trace_folder: Path | None
    check: _Verification | None
    allow_sparse: bool
    has_failures: bool = False
    trace_code: int = 0
    """Exit code of what kept the trace from being written; the result is written all the same."""

    def __call__(self, path: Path, loaded: Loaded) -> changing.Changed:
        try:
            return self._changed(path, loaded)
        except (DifferenceError, PassError) as error:
            if self.many:
                error.add_place(visible(str(path), None))
            raise

    def _changed(self, path: Path, loaded: Loaded) -> changing.Changed:
        model = loaded.model
        if self.weights_from is not None:
            model = files.bind_digests(model, folder=None, weights_from=self.weights_from)
        inside = InternalizedModel(model, path.parent, allow_sparse=self.allow_sparse)
        after = inside.model
        # Passes that need values read a big model completely; a smaller model is copied to each process.
        stages = len(self.steps) if self.check is not None or self.trace_folder is not None else 0
        reads = any([step.subject.constants == "files" for step in self.steps])
        output.tell_memory([inside.model], f"optimizing {path}", copies=int(reads) if inside.is_big else 3 + stages)
        with self._recorder(path, inside.model) as recorder:
            unchanged = []
            everything: list[PassResult] = []
            passes: list[dict[str, object]] = []
            adjacent: list[NewFile] = []
            for passed in self._run(inside.model, path.parent):
                self.has_failures = self.has_failures or passed.failure is not None
                after = passed.after.model
                passes.append(summary(passed))
                adjacent += passed.files
                if self.check is not None:
                    everything.append(passed)
                if recorder is not None and not self.trace_code:
                    with self._tracing(f"recording what {passed.name} changed"):
                        recorder.add(passed)
                if passed.failure is not None and not self.pipeline.keep_going:
                    raise passed.failure
                if passed.is_changed or passed.failure is not None or passed.notes:
                    self._report(path, passed)
                else:
                    unchanged.append(passed.name)
            if unchanged:
                self._talk(path, f"changed nothing: {', '.join([visible(name) for name in unchanged])}")
        if self.check is not None:
            doubt = self.check(inside.model, everything, self.pipeline, path)
            self.has_failures = self.has_failures or bool(doubt)
            if doubt:
                output.warn(f"{path}: not verified: {doubt}; `onnxjson verify` compares on other inputs, with --input")
            else:
                self._talk(path, "verified: the outputs are equal")
        result = model if after is inside.model else inside.restored(after)
        write = functools.partial(files_written, adjacent)
        return changing.Changed(
            result, adjacent=write, is_big=inside.is_big, is_judged=True, details={"passes": passes}
        )

    def _run(self, model: Model, folder: Path) -> Iterator[PassResult]:
        """Yield the results, showing the pass that is running."""
        everything = self.pipeline.run(model, self.steps, folder)
        for step in output.numbered(self.steps):
            with output.working(f"running {visible(str(step))}"):
                made = next(everything, None)
            if made is not None:
                yield made

    @contextmanager
    def _recorder(self, path: Path, model: Model) -> Iterator[Recorder | None]:
        """Record the passes for ``--trace``; the record is written even if a pass fails."""
        if self.trace_folder is None:
            yield None
            return
        recorder = Recorder(str(path), stage_of(model), self.pipeline)
        try:
            yield recorder
        finally:
            if not self.trace_code:
                with self._tracing(f"writing {self.trace_folder}"):
                    write_trace(recorder.trace(), self.trace_folder)
                    folder = shlex.quote(str(self.trace_folder))
                    output.talk(f"wrote the trace; to show it: onnxjson trace {folder}")

    @contextmanager
    def _tracing(self, what: str) -> Iterator[None]:
        """Report a failure of a step of the trace, which no result must be lost for."""
        try:
            with output.working(what):
                yield
        except Exception as error:
            self.trace_code = failures.report_failure(error)
            output.talk("no trace is written; the passes continue", always=True)

    def _report(self, path: Path, made: PassResult) -> None:
        width = reports.width(sys.maxsize, sys.stderr)
        for line in lines(made):
            for piece in wrapped(line, width, indent=0, whole_words=True) if line.startswith(" ") else [line]:
                self._talk(path, piece)

    def _talk(self, path: Path, text: str) -> None:
        output.talk(f"{path}: {text}" if self.many else text)


def _steps(passes: tuple[Step, ...], recipe: Path | None, until: str | None, skip: tuple[str, ...]) -> list[Step]:
    steps = [*(load_recipe(recipe) if recipe is not None else ()), *passes]
    if not steps:
        raise click.UsageError("no pass is named; add -p NAME, such as -p onnxsim; `onnxjson passes` lists all")
    for word in skip:
        _require(word, steps, "--skip")
    if until is not None:
        _require(until, steps, "--until")
        last = next(position for position, step in enumerate(steps) if is_called(step, until))
        steps = steps[: last + 1]
    left = [step for step in steps if not any([is_called(step, word) for word in skip])]
    if not left:
        raise click.UsageError("all passes are skipped; nothing is left to run")
    for step in left:  # A script with errors is refused before anything runs.
        if isinstance(step.subject, ScriptPass):
            Script.load(step.subject.file)
    return left


def _require(word: str, steps: Sequence[Step], option: str) -> None:
    if not any([is_called(step, word) for step in steps]):
        names = [str(step) for step in steps]
        hint = suggest(word, names) or f"the passes are {listed([visible(name) for name in names], 20)}"
        raise click.UsageError(f"{option}: {output.quoted(word)} is not one of the passes; {hint}")
