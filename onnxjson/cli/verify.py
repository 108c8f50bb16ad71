"""``onnxjson verify``: whether two models compute the same, and if not, where they part."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onnxjson.cli import failures, feeding, output, paging, sides

if TYPE_CHECKING:
    from onnxjson.running.locating import Location
    from onnxjson.running.verification import Verification


@click.command("verify")
@click.argument("one", metavar="A", type=sides.SidePath())
@click.argument("other", metavar="B", type=sides.SidePath())
@click.option(
    "--seeds", type=click.IntRange(1, 10_000), default=3, show_default=True, help="How many sets of values are made up."
)
@feeding.options(level="off", several_sizes=True)
@click.option("--locate", is_flag=True, help="Where they differ, name the first nodes from which the numbers part.")
@click.option("--json", "as_json", is_flag=True, help="Print one object: equal, runs, failed, outputs ...")
@paging.options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    one: Path,
    other: Path,
    *,
    seeds: int,
    locate: bool,
    as_json: bool,
    color: paging.Colour,
    no_pager: bool,
    **said: Any,
) -> None:
    """Say whether two models compute the same, and where not.

    Both run on the same values, those of files or made-up ones, and every output of A is compared with its counterpart
    in B: by name, else by structure. A NaN equals a NaN. Exits 0 if all are equal within the tolerance of their dtype,
    1 if not, 76 if one of the models does not run at all.

    \b
    onnxjson verify before.onnx after.onnx
    onnxjson verify before.onnx after.onnx --seeds 10 --dim N=1,8 --json
    onnxjson verify HEAD:m.onnx m.onnx --locate
    onnxjson verify m.onnx m16.onnx --tolerance all=0.01,0.001
    """
    found = feeding.feeding(said)
    with sides.opened(one, bind=True) as base, sides.opened(other, bind=True) as target:
        verification, location = _verified(base, target, found, seeds, locate=locate)
        _show(verification, location, base.name, target.name, as_json=as_json, color=color, pager=not no_pager)
    if verification.is_interrupted:
        output.talk("onnxjson: interrupted; above stands what was compared before")
        ctx.exit(failures.INTERRUPTED)
    ctx.exit(0 if verification.equal else 1)


def _verified(
    base: sides.Side, target: sides.Side, found: feeding.Feeding, seeds: int, *, locate: bool
) -> "tuple[Verification, Location | None]":
    from onnxjson.running.interfaces import TwoModels
    from onnxjson.running.locating import locate as located
    from onnxjson.running.tasks import Compared
    from onnxjson.running.verification import Plan, Verifier

    sets = feeding.given_sets(base.model, found.inputs)
    plan = Plan(
        seed=found.seed,
        seeds=seeds,
        dims=found.dims,
        wishes=found.wishes,
        sets=[each._replace(outputs={}) for each in sets],
        tolerances=found.tolerances,
        settings=found.settings,
        timeout=found.timeout,
        trust_links=found.trust_links,
    )
    models = TwoModels(base.model, target.model, (base.path, target.path))
    text = f"comparing what {base.name} and {target.name} give"
    with output.working(text) as say:
        outputs = len(models.interface.outputs)
        total = (len(sets) or seeds) * outputs
        for sizes in found.dims.values():
            total *= len(sizes)
        heard = feeding.Progress(say, text, total, (Compared,))
        with Verifier(models, plan, heard=heard) as verifier:
            verification = verifier.result()
            if not locate or not verification.failed or verification.is_interrupted:
                return verification, None
            say("looking for the place where the numbers part")
            return verification, located(verifier, verification)


def _show(
    verification: "Verification",
    location: "Location | None",
    base: str,
    target: str,
    *,
    as_json: bool,
    color: paging.Colour,
    pager: bool,
) -> None:
    from onnxjson.rendering.exact import as_json as json_text
    from onnxjson.rendering.verification_report import verification_data, verification_lines

    if as_json:
        data = verification_data(verification, base, target, location)
        output.Stdout().write((json_text(data) + "\n").encode("ascii"))
        return
    width = paging.width()
    lines = verification_lines(verification, base, target, width, location)
    coloured = paging.is_coloured(color)
    paging.show((paging.styled(line, coloured=coloured) for line in lines), pager=pager)
