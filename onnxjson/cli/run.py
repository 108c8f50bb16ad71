"""``onnxjson run`` and ``verify``: outputs, timing and profile of a model; the outputs of two models compared."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from onnxjson.cli import feeding as feeds
from onnxjson.cli import options, output, reports
from onnxjson.cli.paths import FilePath, Side, open_side
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Tensor
from onnxjson.model.errors import EncodeError, EvaluationError, OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.rendering.run_report import run_data, run_lines
from onnxjson.rendering.verification_report import verification_data, verification_lines
from onnxjson.running.input_files import DataSet, given_sets, message_of_value
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.locating import Location, locate
from onnxjson.running.model_run import RunResult, run_cases
from onnxjson.running.tasks import Compared, Profiled, Report, Timed
from onnxjson.running.values import Value, leaves
from onnxjson.running.verdicts import Verification
from onnxjson.running.verification import Plan, Verifier
from onnxjson.storage import files
from onnxjson.storage.numpy_constants import write_npy, write_npz
from onnxjson.storage.saving import make_folder, save_file

_ENDINGS: Final = (".npz", ".npy", ".pb")


@options.command("run")
@click.argument("path", metavar="MODEL", type=FilePath())
@feeds.feeding_options(level="all")
@options.repeat(default=0)
@options.warm_up(default=1)
@options.option(
    "--profile N", "Profile each node over N runs.", type=click.IntRange(0, 10_000), default=0, show_default=False
)
@options.option(
    "--profile-events FILE",
    "Write the events of the last profiled second to FILE: JSON for chrome://tracing and Perfetto.",
    "event_file",
    type=FilePath(),
)
@options.option("--placement", "Report the execution provider of each node.")
@options.option("-v, --verbose", "Show all nodes of the profile, not only the slowest.", callback=options.be_verbose)
@options.out(
    "Write the outputs to OUT.npz, a single output to OUT.npy or OUT.pb, or inputs and outputs as test data to a "
    "folder."
)
@reports.view_options("text", "json", to_file=False)
@click.pass_context
def run_command(
    ctx: click.Context,
    /,
    path: Path,
    *,
    feeding: feeds.Feeding,
    event_file: Path | None,
    verbose: bool,
    destination: Path | None,
    view: reports.View,
    **runs: Any,
) -> None:
    """Run a model; report outputs, timing and a profile.

    Inputs without a value are random, and the same for the same seed: normally distributed numbers, valid indices,
    masks of 0 and 1. With a folder of test data that has output_0.pb ..., compares the outputs and exits 1 if they
    differ. The model runs in a separate process, so a crash is reported as an error. Times in JSON are in
    seconds.

    \b
    onnxjson run m.onnx --dim N=8
    onnxjson run m.onnx --input x.npy -o y.npy
    onnxjson run m.onnx -n 100 --profile 20 --threads 4
    onnxjson run m.onnx --input test_data_set_0
    """
    if destination is not None and _ending(destination) is None:
        raise click.UsageError(f"{destination}: write outputs to a .npz, .npy or .pb file, or to a folder")
    if event_file is not None and not runs["profile"]:
        raise click.UsageError("--profile-events needs --profile N, the number of profiled runs")
    result = _run(path, feeding, runs | {"events": event_file is not None})
    if result.placement is not None:
        result = _mapped_back(path, result, feeding.timeout)
    view.present(
        text=lambda: run_lines(result, str(path), reports.width(), every_node=verbose),
        json=lambda: run_data(result, str(path)),
    )
    sys.stdout.flush()
    if destination is not None and not any(case.problem for case in result.cases):
        _save(destination, result)
    if event_file is not None and result.events:
        save_file(event_file, lambda sink: sink.write(result.events))
        output.wrote(event_file)
    if runs["profile"] and result.engine == "reference":
        output.talk("onnxjson: no profile: only onnxruntime measures nodes")
    if runs["placement"] and result.placement is None:
        output.talk("onnxjson: the placement is not known; only onnxruntime 1.31 or newer reports it")
    if result.is_interrupted:
        ctx.exit(feeds.report_interruption())
    problems = [case for case in result.cases if case.problem]
    if problems or result.problem:
        reason = problems[0].problem if problems else result.problem
        raise EvaluationError(f"{path}: {reason}{_chosen_sizes(result, feeding)}")
    ctx.exit(0 if all(case.is_fine for case in result.cases) else 1)


def _chosen_sizes(result: RunResult, feeding: feeds.Feeding) -> str:
    """Return the end of the message about a failed run: sizes of open dimensions that the user did not choose."""
    given = feeding.with_one_size().dims
    sizes = [f"{visible(name)}={size}" for name, size in result.sizes.items() if name not in given]
    return f"; these sizes were chosen: {listed(sizes, 6)}; set others with --dim NAME=SIZE" if sizes else ""


def _run(path: Path, feeding: feeds.Feeding, runs: Mapping[str, Any]) -> RunResult:
    """Run a model; `runs` has the numbers of timed, warm-up and profiled runs by name."""
    input_options = feeding.with_one_size()
    with output.reading(path):
        model = files.load(path).model
        sets = given_sets(model, feeding.inputs) or [DataSet(f"seed {feeding.seed}", {}, {})]
    output.tell_memory([model], f"running {path}")
    with output.working(f"running {path}") as update:
        return run_cases(
            model,
            path.parent,
            sets,
            seed=feeding.seed,
            input_options=input_options,
            settings=feeding.settings,
            tolerances=feeding.tolerances,
            timeout=feeding.timeout,
            trust_links=feeding.trust_links,
            on_report=_listener(update, str(path), runs["repeat"], runs["profile"]),
            **runs,
        )


def _mapped_back(path: Path, result: RunResult, timeout: float) -> RunResult:
    """Return a run whose placement names the nodes of the model from which the basic optimizations made others."""
    from onnxjson.optimizing.provenance import provenance
    from onnxjson.optimizing.trace_records import optimize
    from onnxjson.running.model_run import placement_of

    assert result.placement is not None
    try:
        with output.working("following the basic optimizations"):
            trace = optimize(path, "onnxruntime{level=basic}", timeout=timeout)
    except OnnxJsonError as error:
        output.warn(f"nodes that onnxruntime created cannot be traced back: {error}")
        return result
    stories = provenance(trace).origins
    origins = {ref.node.name or "": stories[ref.address].nodes for ref in Index(trace.last).nodes()}
    placed = [(each.name, each.operator, each.provider) for each in result.placement.nodes]
    wanted = result.settings.providers[0].partition(":")[0]
    placement = placement_of(Index(trace.first), placed, wanted, origins)
    return msgspec.structs.replace(result, placement=placement)


def _listener(update: Callable[[str], None], path: str, repeat: int, profile: int) -> Callable[[Report], None] | None:
    """Return a function that shows the number of timed and profiled runs; None without any."""
    if not (repeat or profile):
        return None
    timed = feeds.progress(update, f"running {path}", repeat, Timed)

    def listen(report: Report) -> None:
        timed(report)
        if isinstance(report, Profiled):
            update(f"profiling {path}: {report.runs:,} of {profile:,} runs; Ctrl-C keeps what is done")

    return listen


def _save(destination: Path, result: RunResult) -> None:
    ending = _ending(destination)
    if not ending:
        _save_folders(destination, result)
        return
    if len(result.cases) > 1:
        raise EncodeError(f"there are {len(result.cases)} runs; write them to a folder, -o {destination.stem}")
    if ending != ".npz" and len(result.outputs) != 1:
        raise EncodeError(f"there are {len(result.outputs)} outputs; write them to a .npz or a folder")
    value = next(iter(result.outputs.values()), None)
    if ending == ".npz":
        named = [(name + path, tensor) for name, each in result.outputs.items() for path, tensor in leaves(each)]
        tensors = [msgspec.structs.replace(tensor, name=name) for name, tensor in named]
        save_file(destination, lambda sink: write_npz(tensors, sink))
    elif ending == ".pb":
        _save_pb(destination, value)
    elif isinstance(value, Tensor):
        save_file(destination, lambda sink: write_npy(value, sink))
    else:
        raise EncodeError("the output is not a tensor; write it to a .pb, a .npz or a folder")
    output.wrote(destination)


def _ending(destination: Path) -> str | None:
    """The ending that decides the form of outputs; "" for a folder, None for an unknown one."""
    ending = destination.suffix.lower()
    if destination.is_dir() or not ending:
        return ""
    return ending if ending in _ENDINGS else None


def _save_folders(destination: Path, result: RunResult) -> None:
    make_folder(destination)
    for number, case in enumerate(result.cases):
        folder = destination if len(result.cases) == 1 else destination / f"test_data_set_{number}"
        make_folder(folder)
        for what, values in (("input", case.inputs), ("output", case.outputs)):
            for place, value in enumerate(values.values()):
                _save_pb(folder / f"{what}_{place}.pb", value)
    output.talk(f"wrote {destination} ({output.counted(len(result.cases), 'set')} of test data)")


def _save_pb(path: Path, value: Value) -> None:
    data = message_of_value(value)
    save_file(path, lambda sink: sink.write(data))


@options.command("verify")
@click.argument("model", metavar="MODEL", type=FilePath())
@click.argument("other", metavar="OTHER", type=FilePath())
@options.samples()
@feeds.feeding_options(level="off", several_sizes=True)
@options.option("--locate", "If the models differ, find the first nodes whose outputs differ.", "locates")
@reports.view_options("text", "json")
@click.pass_context
def verify_command(
    ctx: click.Context,
    /,
    model: Path,
    other: Path,
    *,
    samples: int,
    feeding: feeds.Feeding,
    locates: bool,
    view: reports.View,
) -> None:
    """Compare the outputs of two models on the same inputs.

    Inputs are read from files, or random. Outputs are paired by name, else by structure; NaN equals NaN. Exits 0 if all
    outputs are equal within the tolerance of their dtype, 1 if not, 76 if a model cannot be run.

    \b
    onnxjson verify before.onnx after.onnx
    onnxjson verify before.onnx after.onnx --samples 10 --dim N=1,8 --json
    onnxjson verify HEAD:m.onnx m.onnx --locate
    onnxjson verify m.onnx m16.onnx --tolerance all=0.01,0.001
    """
    with open_side(model, bind=True) as base, open_side(other, bind=True) as target:
        verification, location = _verify(base, target, feeding, samples, locates=locates)
        names = base.name, target.name
    view.present(
        text=lambda: verification_lines(verification, *names, reports.width(), location),
        json=lambda: verification_data(verification, *names, location),
    )
    if verification.is_interrupted:
        ctx.exit(feeds.report_interruption())
    ctx.exit(0 if verification.equal else 1)


def _verify(
    base: Side, target: Side, feeding: feeds.Feeding, samples: int, *, locates: bool
) -> tuple[Verification, Location | None]:
    sets = given_sets(base.model, feeding.inputs)
    plan = Plan(
        seed=feeding.seed,
        seeds=samples,
        dims=feeding.dims,
        input_options=feeding.input_options,
        sets=[each._replace(outputs={}) for each in sets],
        tolerances=feeding.tolerances,
        settings=feeding.settings,
        timeout=feeding.timeout,
        trust_links=feeding.trust_links,
    )
    models = TwoModels(base.model, target.model, (base.path, target.path))
    text = f"comparing the outputs of {base.name} and {target.name}"
    output.tell_memory([base.model, target.model], text)
    with output.working(text) as update:
        total = (len(sets) or samples) * len(models.interface.outputs)
        for sizes in feeding.dims.values():
            total *= len(sizes)
        on_report = feeds.progress(update, text, total, Compared)
        with Verifier(models, plan, on_report=on_report) as verifier:
            verification = verifier.result()
            if not locates or not verification.failed or verification.is_interrupted:
                return verification, None
            update("looking for the first nodes whose outputs differ")
            return verification, locate(verifier, verification)
