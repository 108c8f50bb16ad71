"""``onnxjson verify``: the outputs of two models compared."""

from pathlib import Path

import click

from onnxjson.cli import feeding as feeds
from onnxjson.cli import options, output, reports
from onnxjson.cli.paths import Side, SidePath, open_side
from onnxjson.rendering.verification_report import verification_data, verification_lines
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.locating import Location
from onnxjson.running.locating import locate as find_location
from onnxjson.running.tasks import Compared
from onnxjson.running.verification import Plan, Verification, Verifier


@options.command("verify")
@click.argument("model", metavar="MODEL", type=SidePath())
@click.argument("other", metavar="OTHER", type=SidePath())
@options.samples
@feeds.feeding_options(level="off", several_sizes=True)
@options.option("--locate", "If they differ, find the first nodes whose outputs differ.")
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
    locate: bool,
    view: reports.View,
) -> None:
    """Compare the outputs of two models on the same inputs.

    The inputs are those of files, or random. Outputs are paired by name, else by structure; NaN equals NaN. Exits 0 if
    all outputs are equal within the tolerance of their dtype, 1 if not, 76 if a model does not run at all.

    \b
    onnxjson verify before.onnx after.onnx
    onnxjson verify before.onnx after.onnx --samples 10 --dim N=1,8 --json
    onnxjson verify HEAD:m.onnx m.onnx --locate
    onnxjson verify m.onnx m16.onnx --tolerance all=0.01,0.001
    """
    with open_side(model, bind=True) as base, open_side(other, bind=True) as target:
        verification, location = _verify(base, target, feeding, samples, locate=locate)
        names = base.name, target.name
    if view.form == "json":
        view.write_json(verification_data(verification, *names, location))
    else:
        view.show(verification_lines(verification, *names, reports.width(), location))
    if verification.is_interrupted:
        ctx.exit(feeds.report_interruption())
    ctx.exit(0 if verification.equal else 1)


def _verify(
    base: Side, target: Side, feeding: feeds.Feeding, samples: int, *, locate: bool
) -> tuple[Verification, Location | None]:
    sets = feeds.given_sets(base.model, feeding.inputs)
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
    with output.working(text) as update:
        total = (len(sets) or samples) * len(models.interface.outputs)
        for sizes in feeding.dims.values():
            total *= len(sizes)
        on_report = feeds.Progress(update, text, total, (Compared,))
        with Verifier(models, plan, on_report=on_report) as verifier:
            verification = verifier.result()
            if not locate or not verification.failed or verification.is_interrupted:
                return verification, None
            update("looking for the first nodes whose outputs differ")
            return verification, find_location(verifier, verification)
