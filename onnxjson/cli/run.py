"""``onnxjson run``: what a model gives, how long it takes, and where the time goes."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from onnxjson.cli import failures, feeding, output, paging
from onnxjson.cli.paths import DestinationPath, FilePath
from onnxjson.errors import EncodeError

if TYPE_CHECKING:
    from onnxjson.document import Tensor
    from onnxjson.running.model_run import RunResult
    from onnxjson.running.tasks import Report
    from onnxjson.running.values import Value

_FORMS: Final = "the ending says the form, .npz, .npy or .pb"


@click.command("run")
@click.argument("path", metavar="MODEL", type=FilePath())
@feeding.options(level="all", several_sizes=False)
@click.option("-n", "--repeat", type=click.IntRange(0, 1_000_000), default=0, help="Time so many runs: p50 and p95.")
@click.option(
    "--warm-up", type=click.IntRange(0, 10_000), default=1, show_default=True, help="Runs before those that are timed."
)
@click.option(
    "--profile", metavar="N", type=click.IntRange(0, 10_000), default=0, help="Say what each node takes, over N runs."
)
@click.option("--all-nodes", is_flag=True, help="Show all nodes of the profile, not only the slowest.")
@click.option(
    "-o",
    "--output",
    "destination",
    metavar="OUT",
    type=DestinationPath(),
    help="Write the outputs: OUT.npz; OUT.npy or OUT.pb where there is one; a folder: test data with the inputs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one object; times are seconds.")
@paging.options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    path: Path,
    *,
    repeat: int,
    warm_up: int,
    profile: int,
    all_nodes: bool,
    destination: Path | None,
    as_json: bool,
    color: paging.Colour,
    no_pager: bool,
    **said: Any,
) -> None:
    """Say what a model gives, how long that takes, and where.

    Inputs without a value get made-up ones, the same for the same seed: normal numbers, indices that fit, masks of 0
    and 1. A folder of test data with output_0.pb ... is compared with what the model gives; exits 1 if that is another
    thing. The model runs in a process of its own: whatever it does there, this one says so.

    \b
    onnxjson run m.onnx --dim N=8
    onnxjson run m.onnx --input x.npy -o y.npy
    onnxjson run m.onnx -n 100 --profile 20 --threads 4
    onnxjson run m.onnx --input test_data_set_0
    """
    found = feeding.feeding(said)
    if destination is not None and _form(destination) is None:
        raise click.UsageError(f"{destination}: {_FORMS}, or is that of a folder, which has none or exists")
    result = _result(path, found, repeat, warm_up, profile)
    _show(result, path, as_json=as_json, all_nodes=all_nodes, color=color, pager=not no_pager)
    sys.stdout.flush()
    if destination is not None and not any(case.problem for case in result.cases):
        _save(destination, result)
    if profile and result.engine == "reference":
        output.talk("onnxjson: no profile: only onnxruntime says what nodes take")
    if result.is_interrupted:
        output.talk("onnxjson: interrupted; above stands what was done before")
        ctx.exit(failures.INTERRUPTED)
    problems = [case for case in result.cases if case.problem]
    if problems or result.problem:
        from onnxjson.errors import EvaluationError

        raise EvaluationError(f"{path}: {problems[0].problem if problems else result.problem}")
    ctx.exit(0 if all(case.is_fine for case in result.cases) else 1)


def _result(path: Path, found: feeding.Feeding, repeat: int, warm_up: int, profile: int) -> "RunResult":
    from onnxjson import files
    from onnxjson.running.input_files import DataSet
    from onnxjson.running.model_run import run_cases

    several = [name for name, sizes in found.dims.items() if len(sizes) != 1]
    if several:
        raise click.UsageError(f"--dim {several[0]} has several sizes; `onnxjson verify` tries several")
    with output.working(f"reading {path}"):
        model = files.load(path).model
        sets = feeding.given_sets(model, found.inputs) or [DataSet(f"seed {found.seed}", {}, {})]
    wishes = msgspec.structs.replace(found.wishes, dims={name: sizes[0] for name, sizes in found.dims.items()})
    with output.working(f"running {path}") as say:
        return run_cases(
            model,
            path.parent,
            sets,
            seed=found.seed,
            wishes=wishes,
            settings=found.settings,
            tolerances=found.tolerances,
            repeat=repeat,
            warm_up=warm_up,
            profile=profile,
            timeout=found.timeout,
            trust_links=found.trust_links,
            heard=_heard(say, str(path), repeat, profile) if repeat or profile else None,
        )


def _heard(say: Callable[[str], None], path: str, repeat: int, profile: int) -> "Callable[[Report], None]":
    """Says how far the runs are that are timed or profiled."""
    from onnxjson.running.tasks import Profiled, Timed

    timed = feeding.Progress(say, f"running {path}", repeat, (Timed,))

    def heard(report: "Report") -> None:
        timed(report)
        if isinstance(report, Profiled):
            say(f"profiling {path}: {report.runs:,} of {profile:,} runs; Ctrl-C keeps what is done")

    return heard


def _show(
    result: "RunResult", path: Path, *, as_json: bool, all_nodes: bool, color: paging.Colour, pager: bool
) -> None:
    from onnxjson.rendering.exact import as_json as json_text
    from onnxjson.rendering.run_report import run_data, run_lines

    if as_json:
        output.Stdout().write((json_text(run_data(result, str(path))) + "\n").encode("ascii"))
        return
    width = paging.width()
    coloured = paging.is_coloured(color)
    lines = run_lines(result, str(path), width, every_node=all_nodes)
    paging.show((paging.styled(line, coloured=coloured) for line in lines), pager=pager)


def _save(destination: Path, result: "RunResult") -> None:
    """Writes what the runs gave.

    Raises:
        EncodeError: the form of the file does not hold it.
        OutputError, AccessDeniedError, FileError: it cannot be written.
    """
    from onnxjson.constants.archives import write_npy, write_npz
    from onnxjson.document import Tensor
    from onnxjson.saving import save_file

    ending = _form(destination)
    if not ending:
        _save_folders(destination, result)
        return
    if len(result.cases) > 1:
        raise EncodeError(f"there are {len(result.cases)} runs; write them to a folder, -o {destination.stem}")
    if ending == ".npz":
        tensors = list(_tensors(result.outputs))
        save_file(destination, lambda sink: write_npz(tensors, sink))
    else:
        if len(result.outputs) != 1:
            raise EncodeError(f"there are {len(result.outputs)} outputs; write them to a .npz or a folder")
        (value,) = result.outputs.values()
        if ending == ".pb":
            _save_pb(destination, value)
        elif not isinstance(value, Tensor):
            raise EncodeError("the output is no tensor; write it to a .pb, a .npz or a folder")
        else:
            save_file(destination, lambda sink: write_npy(value, sink))
    output.talk(f"wrote {destination} ({output.size(destination)})")


def _form(destination: Path) -> str | None:
    """The ending that says the form of outputs; "" for a folder, None for one that says nothing."""
    ending = destination.suffix.lower()
    if destination.is_dir() or not ending:
        return ""
    return ending if ending in (".npz", ".npy", ".pb") else None


def _tensors(values: "Mapping[str, Value]") -> "list[Tensor]":
    from onnxjson.running.values import leaves

    return [
        msgspec.structs.replace(tensor, name=name + path)
        for name, value in values.items()
        for path, tensor in leaves(value)
    ]


def _save_folders(destination: Path, result: "RunResult") -> None:
    from onnxjson.saving import make_folder

    make_folder(destination)
    for number, case in enumerate(result.cases):
        folder = destination if len(result.cases) == 1 else destination / f"test_data_set_{number}"
        make_folder(folder)
        for what, values in (("input", case.inputs), ("output", case.outputs)):
            for place, value in enumerate(values.values()):
                _save_pb(folder / f"{what}_{place}.pb", value)
    output.talk(f"wrote {destination} ({output.counted(len(result.cases), 'set')} of test data)")


def _save_pb(path: Path, value: "Value") -> None:
    from onnxjson.running.input_files import message_of_value
    from onnxjson.saving import save_file

    data = message_of_value(value)
    save_file(path, lambda sink: sink.write(data))
