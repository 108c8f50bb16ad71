"""``onnxjson bench``: variants of models compared by size, outputs and time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from onnxjson.cli import feeding as feeds
from onnxjson.cli import options, output, reports
from onnxjson.cli.paths import DestinationPath, FilePath
from onnxjson.codecs import serde
from onnxjson.model.errors import MissingInputError, OnnxJsonError, OutputError
from onnxjson.optimizing.bench import Bench, Options, Subject
from onnxjson.optimizing.variants import PRESETS, BenchReport, Variant, file_names, parse_grid, parse_variant
from onnxjson.rendering.bench_report import report_csv, report_data, report_lines, report_markdown, report_svg
from onnxjson.running.input_files import given_sets
from onnxjson.running.inputs import all_inputs
from onnxjson.storage import files
from onnxjson.storage.saving import make_folder, save_file

_WIDEST: Final = 160
_FORMS: Final = ("text", "csv", "json", "markdown", "svg")


@options.command("bench")
@click.argument("paths", metavar="MODEL...", nargs=-1, required=True, type=FilePath())
@options.several(
    "--variant NAME=PASS,...",
    "Add a variant: passes as for `optimize -p`; @LEVEL at the end sets the optimization level of the session.",
    "variants",
    type=options.Parsed("variant", parse_variant),
)
@options.option("--preset", "Add a set of variants.", type=click.Choice(["baseline", "quantized"]))
@options.option(
    "--tune NAME=VALUE,...",
    "Try session settings in every combination and report the best, such as threads=1,2; can be repeated. "
    "Settings: threads, parallel, mode, level, binding.",
    multiple=True,
)
@options.repeat("rounds", default=50)
@options.warm_up(default=3)
@options.option("--seconds SECONDS", "Start no timed run after this time.", type=click.FloatRange(0), default=60.0)
@options.samples("seeds")
@options.option(
    "--score FILE", "Score each variant with this Python file, whose evaluate(run) returns loss and metric.", "script"
)
@options.trust
@options.out(
    "Also write the report to OUT.csv, .json, .md, .svg (a bar chart) or .txt; can be repeated.",
    multiple=True,
    type=DestinationPath(),
    parameter="destinations",
)
@options.option("--cost", "Also show the multiply-accumulate operations (MACs) of each variant.", "with_cost")
@options.option("--keep DIR", "Write the models of all variants to DIR.", "folder")
@feeds.feeding_options(level="all")
@reports.view_options(*_FORMS, to_file=False)
@click.pass_context
def bench_command(
    ctx: click.Context,
    /,
    paths: tuple[Path, ...],
    *,
    variants: tuple[Variant, ...],
    preset: str | None,
    tune: tuple[str, ...],
    script: Path | None,
    destinations: tuple[Path, ...],
    folder: Path | None,
    with_cost: bool,
    feeding: feeds.Feeding,
    view: reports.View,
    **given: Any,
) -> None:
    """Compare variants of models: size, outputs, time.

    Passes create each variant; its outputs are compared with those of the original. Timed runs of the variants
    alternate, so background load affects all of them equally. Exits 1 if a variant does not run, or if its outputs
    differ although its passes do not reduce precision.

    \b
    onnxjson bench m.onnx --preset baseline
    onnxjson bench m.onnx --variant both=onnxoptimizer,onnxsim -o report.md
    onnxjson bench m.onnx --preset quantized --score accuracy.py
    onnxjson bench m.onnx --tune threads=1,2 --tune level=basic,all
    """
    if script is not None and not script.is_file():
        raise MissingInputError(f"{output.quoted(str(script))} does not exist, or is not a file")
    _check(paths, destinations)
    # Passes can calibrate with whole sets.
    sets = [path for path in map(Path, feeding.inputs) if path.suffix == ".npz" or path.is_dir()]
    settings = Options(
        settings=feeding.settings,
        grid=parse_grid(tune) if tune else None,
        seed=feeding.seed,
        input_options=feeding.with_one_size(),
        tolerances=feeding.tolerances,
        script=script,
        data=tuple([str(path.absolute()) for path in sets]),
        timeout=feeding.timeout,
        **given,
    )
    subjects = _subjects(paths, feeding)
    chosen = _variants(preset, variants)
    with output.working("creating variants") as update, Bench(subjects, chosen, settings, update) as bench:
        report = bench.run()
        models = bench.models() if folder is not None or with_cost else []
    if with_cost:
        with output.working("counting operations"):
            report = _with_costs(report, models)
    _show(report, view, reports.width(_WIDEST))
    for path in destinations:
        _show(report, reports.View(reports.form_of(path, _FORMS), path), _WIDEST)
    if folder is not None:
        _keep(models, folder)
    if report.is_interrupted:
        ctx.exit(feeds.report_interruption())
    ctx.exit(0 if all(row.is_fine for row in report.rows) else 1)


def _check(paths: Sequence[Path], destinations: Sequence[Path]) -> None:
    """Raise unless all files can be read and written."""
    for path in output.numbered(paths):
        if paths.count(path) > 1:
            raise click.UsageError(f"{output.quoted(str(path))} is named twice")
    for path in destinations:
        if path.suffix.lower() not in reports.ENDINGS:
            raise click.UsageError(f"{path}: end the name with one of {', '.join(reports.ENDINGS)}")
        if not path.parent.is_dir():
            raise OutputError(f"{path} cannot be written: the folder {path.parent} does not exist; create it first")


def _variants(preset: str | None, variants: Sequence[Variant]) -> list[Variant]:
    chosen = [*map(parse_variant, PRESETS[preset] if preset else ()), *variants]
    names = [each.name for each in chosen]
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"two variants have the name {output.quoted(name)}")
    return chosen


def _subjects(paths: Sequence[Path], feeding: feeds.Feeding) -> list[Subject]:
    models = []
    for path in output.numbered(paths):
        with output.reading(path):
            models.append(files.load(path).model)
            output.tell_memory(models[-1:], f"running {path}")
    known = {name for model in models for name in all_inputs(model)}
    subjects = []
    for path, model in zip(paths, models, strict=True):
        # Values for inputs that only other models have are left out.
        others = known - set(all_inputs(model))
        words = [word for word in feeding.inputs if word.rpartition("=")[0] not in others]
        sets = [each._replace(outputs={}) for each in given_sets(model, words)]
        subjects.append(Subject(str(path), model, path.parent, sets))
    return subjects


def _show(report: BenchReport, view: reports.View, width: int) -> None:
    view.present(
        text=lambda: report_lines(report, width),
        json=lambda: report_data(report),
        csv=lambda: [report_csv(report)],
        markdown=lambda: [report_markdown(report)],
        svg=lambda: [report_svg(report)],
    )


def _with_costs(report: BenchReport, models: Sequence[tuple[str, str, bytes]]) -> BenchReport:
    """Return the report with the MACs of each model that was made, at the sizes of the benchmark."""
    from onnxjson.checking.cost import cost_of, known_dims

    macs: dict[tuple[str, str], int | str | None] = {}
    for name, variant, data in models:
        model = serde.parse(data).model
        try:
            cost = cost_of(model, None, known_dims(report.sizes.get(name, {}), model), details=False)
            macs[name, variant] = None if cost.unknown else cost.macs
        except OnnxJsonError as error:
            output.warn(f"{name}, {variant}: without cost: {error}")
    rows = [msgspec.structs.replace(row, macs=macs.get((row.model, row.variant))) for row in report.rows]
    return msgspec.structs.replace(report, rows=tuple(rows))


def _keep(models: Sequence[tuple[str, str, bytes]], folder: Path) -> None:
    make_folder(folder)
    for name, (_, _, data) in zip(file_names([each[:2] for each in models]), models, strict=True):
        save_file(folder / name, lambda sink, data=data: sink.write(data))  # type: ignore[misc]
    output.talk(f"wrote {output.counted(len(models), 'model')} to {folder}")
