"""``onnxjson optimize``: passes run one after the other on one or many models."""

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from onnxjson.cli import changing, external_data, feeding, output
from onnxjson.cli.paths import DestinationPath, FilePath
from onnxjson.display import visible

if TYPE_CHECKING:
    from onnxjson.document import Model
    from onnxjson.files import Format, Loaded
    from onnxjson.passes import Made, NewFile, Pipeline, Step
    from onnxjson.running.tolerances import Tolerance
    from onnxjson.tracing import Recorder


class _Model(FilePath):
    """The path of a model; what a shell made of braces without quotes is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.Path.convert`."""
        if isinstance(value, str) and "=" in value and not Path(value).exists():
            from onnxjson.passes.spelling import quote_the_braces

            self.fail(f"{output.quoted(value)} is no file; {quote_the_braces(value)}", param, ctx)
        return super().convert(value, param, ctx)


class _Pass(click.ParamType["Step"]):
    """A pass with its options."""

    name = "pass"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType.convert`."""
        if not isinstance(value, str):
            return value
        from onnxjson.passes.spelling import parse_step

        return parse_step(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin alike."""
        from onnxjson.passes.spelling import all_names

        return [CompletionItem(name) for name in all_names() if name.startswith(incomplete)]


class _Size(click.ParamType[int]):
    """A number of bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See `click.ParamType.convert`."""
        return value if isinstance(value, int) else external_data.size(value)


@click.command("optimize")
@click.argument("paths", metavar="MODEL...", nargs=-1, required=True, type=_Model())
@click.option(
    "-p",
    "--pass",
    "passes",
    metavar="PASS",
    multiple=True,
    type=_Pass(),
    help="A pass to run: NAME, NAME:PART, 'NAME{option=value,...}', a rewrite script, a Python file; * at its end "
    "repeats it. May stand several times; they run in their order.",
)
@click.option("--recipe", metavar="FILE", type=FilePath(), help="A recipe, whose passes run before those of -p.")
@click.option("--until", metavar="PASS", help="Stop after this pass.")
@click.option("--skip", metavar="PASS", multiple=True, help="Leave out this pass. May stand several times.")
@click.option(
    "--trace",
    "trace_folder",
    metavar="DIR",
    type=DestinationPath(),
    help="Keep what every pass, and every part of one, did to MODEL in DIR, for `onnxjson trace DIR`.",
)
@click.option(
    "--verify", is_flag=True, help="Run the result beside MODEL; if it computes something else, name the pass and stop."
)
@click.option("--bisect", is_flag=True, help="With --verify: also name the rule, edit or part of that pass.")
@click.option(
    "--tolerance",
    "tolerances",
    metavar="DTYPE=REL[,ABS]",
    multiple=True,
    type=feeding.Assignment(),
    help="For --verify: how far elements may be apart; `all` for all floating-point dtypes.",
)
@click.option("--keep-going", is_flag=True, help="Leave out passes that fail, and exit with 1 in the end.")
@click.option("--max-size", metavar="SIZE", type=_Size(), help="Refuse a pass that gives more bytes, such as 500M.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    default=300.0,
    show_default=True,
    help="What one pass may take.",
)
@click.option(
    "--memory",
    metavar="SIZE",
    type=_Size(),
    default="4G",
    show_default=True,
    help="Address space of one pass; never less than twelve times the model.",
)
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[Path, ...],
    *,
    passes: tuple["Step", ...],
    recipe: Path | None,
    until: str | None,
    skip: tuple[str, ...],
    trace_folder: Path | None,
    verify: bool,
    bisect: bool,
    tolerances: tuple[tuple[str, str], ...],
    keep_going: bool,
    max_size: int | None,
    timeout: float,
    memory: int,
    destination: Path | None,
    in_place: bool,
    dry_run: bool,
    target: "Format | None",
    weights_from: Path | None,
) -> None:
    """Run optimizers on models, and say what each of them changed.

    Every pass runs in a process of its own, where it may crash or hang without harm; what it gives has to be a model
    that hangs together, or nothing is written. `onnxjson passes` lists all of them; edits and rewrite scripts are
    passes too.

    \b
    onnxjson optimize m.onnx -p onnxsim -o small.onnx
    onnxjson optimize m.onnx -p onnxoptimizer:fuse_bn_into_conv --dry-run
    onnxjson optimize m.onnx -p 'onnxscript*' -p prune -i
    onnxjson optimize models/*.onnx --recipe recipe.json --skip onnxslim -o small/
    onnxjson optimize m.onnx -p onnxsim -p onnxruntime -o small.onnx --trace steps
    onnxjson optimize m.onnx -p onnxsim -p mine.py -o small.onnx --bisect
    """
    from onnxjson.passes import Pipeline

    request = changing.Request(paths, destination, in_place, target, weights_from, dry_run)
    request.check()
    _check_trace(trace_folder, paths)
    steps = _steps(passes, recipe, until, skip)
    check = _Verification(feeding.tolerances(tolerances), bisect=bisect) if verify or bisect else None
    with Pipeline(seconds=timeout, memory=memory, max_size=max_size, keep_going=keep_going) as pipeline:
        change = _Change(pipeline, steps, weights_from, many=len(paths) > 1, trace_folder=trace_folder, check=check)
        code = changing.run(request, change)
    ctx.exit(code or int(change.has_failures))


command.params[2:2] = changing.options(dry_run=True)


class _Change:
    """The passes, run on models."""

    def __init__(
        self,
        pipeline: "Pipeline",
        steps: Sequence["Step"],
        weights_from: Path | None,
        *,
        many: bool,
        trace_folder: Path | None = None,
        check: "_Verification | None" = None,
    ) -> None:
        self._pipeline = pipeline
        self._steps = steps
        self._weights_from = weights_from
        self._many = many
        self._trace_folder = trace_folder
        self._check = check
        self.has_failures = False

    def __call__(self, path: Path, loaded: "Loaded") -> changing.Changed:
        """See `changing.Change`."""
        from onnxjson.errors import DifferenceError, PassError

        try:
            return self._changed(path, loaded)
        except (DifferenceError, PassError) as error:
            if not self._many:
                raise
            message = f"{visible(str(path), None)}: {error}"
            if isinstance(error, PassError):
                raise PassError(message, error.name, error.printed) from error
            raise DifferenceError(message) from error

    def _changed(self, path: Path, loaded: "Loaded") -> changing.Changed:
        from onnxjson import files
        from onnxjson.passes import files_written
        from onnxjson.passes.outside import TakenIn

        model = loaded.model
        if self._weights_from is not None:
            model = files.bound(model, folder=None, weights_from=self._weights_from)
        inside = TakenIn(model, path.parent)
        after = inside.model
        with self._recorder(path, inside.model) as recorder:
            unchanged = []
            everything: list[Made] = []
            beside: list[NewFile] = []
            for made in self._told(self._pipeline.run(inside.model, self._steps, path.parent)):
                self.has_failures = self.has_failures or made.failure is not None
                after = made.after.model
                beside += made.files
                if self._check is not None:
                    everything.append(made)
                if recorder is not None:
                    with output.working(f"looking at what {made.name} did"):
                        recorder.add(made)
                if made.failure is not None and not self._pipeline.keep_going:
                    raise made.failure
                if made.is_changed or made.failure is not None or made.notes:
                    self._say(path, made)
                else:
                    unchanged.append(made.name)
            if unchanged:
                self._talk(path, f"changed nothing: {', '.join([visible(name) for name in unchanged])}")
        if self._check is not None:
            self._talk(path, self._check(inside.model, everything, self._pipeline, path))
        result = model if after is inside.model else inside.restored(after)
        return changing.Changed(result, beside=lambda place: files_written(beside, place))

    def _told(self, everything: "Iterator[Made]") -> "Iterator[Made]":
        """The same; each that takes long says so."""
        for step in self._steps:
            with output.working(f"running {visible(str(step))}"):
                made = next(everything, None)
            if made is not None:
                yield made

    @contextmanager
    def _recorder(self, path: Path, model: "Model") -> "Iterator[Recorder | None]":
        """What records the passes, if they are to be; what it has is written even where a pass fails."""
        if self._trace_folder is None:
            yield None
            return
        from onnxjson.passes.pipeline import stage_of
        from onnxjson.tracing import Recorder, write_trace

        recorder = Recorder(str(path), stage_of(model), self._pipeline)
        try:
            yield recorder
        finally:
            with output.working(f"writing {self._trace_folder}"):
                write_trace(recorder.trace(), self._trace_folder)
            folder = shlex.quote(str(self._trace_folder))
            output.talk(f"wrote the trace; to look at it: onnxjson trace {folder}")

    def _say(self, path: Path, made: "Made") -> None:
        from onnxjson.rendering.pass_lines import lines
        from onnxjson.rendering.tables import wrapped

        width = shutil.get_terminal_size((80, 24)).columns
        for line in lines(made):
            for piece in wrapped(line, width, indent=0, whole_words=True) if line.startswith(" ") else [line]:
                self._talk(path, piece)

    def _talk(self, path: Path, text: str) -> None:
        output.talk(f"{path}: {text}" if self._many else text)


class _Verification:
    """Whether what passes gave computes the same."""

    def __init__(self, tolerances: "Mapping[str, Tolerance]", *, bisect: bool) -> None:
        self._tolerances = tolerances
        self._bisect = bisect

    def __call__(self, first: "Model", everything: "Sequence[Made]", pipeline: "Pipeline", path: Path) -> str:
        """What to say where it does.

        Raises:
            DifferenceError: it does not; the message names the pass.
        """
        from onnxjson.errors import DifferenceError
        from onnxjson.passes.bisecting import Checks
        from onnxjson.running.verification import Plan

        with Checks(first, Plan(tolerances=self._tolerances)) as checks:
            with output.working("running the result beside the model"):
                culprit = checks.first_wrong(everything)
            if culprit is None:
                return "verified: it computes the same"
            message = f"after {visible(culprit.made.name)} the model {culprit.reason}"
            if self._bisect:
                with output.working(f"looking for the part of {culprit.made.name}"):
                    part = checks.part(pipeline, culprit.made, path.parent)
                if part.name is None:
                    message += "; its parts cannot be told apart"
                else:
                    message += (
                        f"; of its {output.counted(part.parts, 'part')} it is right before {visible(part.name)} and "
                        f"wrong after it ({output.counted(part.evaluations, 'model')} run)"
                    )
            else:
                message += "; --bisect looks for the part of it"
        raise DifferenceError(f"{message}; nothing was written")


def _check_trace(folder: Path | None, paths: Sequence[Path]) -> None:
    """Do nothing if a trace can be written.

    Raises:
        click.UsageError: there are several models.
        OutputError: the folder holds something else.
    """
    if folder is None:
        return
    if len(paths) > 1:
        raise click.UsageError(f"--trace keeps what happened to one model; {len(paths):,} are given")
    from onnxjson.tracing.storing import require_room

    require_room(folder)


def _steps(passes: tuple["Step", ...], recipe: Path | None, until: str | None, skip: tuple[str, ...]) -> list["Step"]:
    """The passes that are to run.

    Raises:
        click.UsageError: there are none, or a name is none of them.
        OnnxJsonError: the recipe or a rewrite script cannot be read.
    """
    from onnxjson.edits.script import Script
    from onnxjson.passes.edits import ScriptPass
    from onnxjson.passes.recipe import load_recipe
    from onnxjson.passes.spelling import is_called

    steps = [*(load_recipe(recipe) if recipe is not None else ()), *passes]
    if not steps:
        raise click.UsageError(
            "no pass is named; -p NAME runs one, `onnxjson passes` lists them, such as -p onnxsim or -p onnxoptimizer"
        )
    for word in skip:
        _require(word, steps, "--skip")
    if until is not None:
        _require(until, steps, "--until")
        last = next(position for position, step in enumerate(steps) if is_called(step, until))
        steps = steps[: last + 1]
    left = [step for step in steps if not any([is_called(step, word) for word in skip])]
    if not left:
        raise click.UsageError("every pass is skipped; nothing is left to run")
    for step in left:  # A script that cannot run is told before anything has.
        if isinstance(step.subject, ScriptPass):
            Script.load(step.subject.file)
    return left


def _require(word: str, steps: Sequence["Step"], option: str) -> None:
    from onnxjson.passes.spelling import is_called
    from onnxjson.suggestions import suggest

    if not any([is_called(step, word) for step in steps]):
        names = [str(step) for step in steps]
        hint = suggest(word, names) or f"it runs {', '.join([visible(name) for name in names])}"
        raise click.UsageError(f"{option}: {output.quoted(word)} is none of the passes; {hint}")
