"""``onnxjson doctor``: try the protections of this machine against native and third-party code."""

import sys

import click

from onnxjson.cli import options, output, reports


@options.command("doctor")
@reports.view_options("text", "json")
@click.pass_context
def doctor_command(ctx: click.Context, *, view: reports.View) -> None:
    """Check the protections of this machine against native code.

    onnx, onnxruntime, optimizers and your own passes run in guarded processes, which can do little but compute. The
    command tries each protection in such a process. It exits with 1 if one is missing; other commands still work then.

    \b
    onnxjson doctor
    onnxjson doctor --json
    """
    if sys.platform == "win32":
        raise click.UsageError("guarded processes do not work on Windows; use WSL")
    from onnxjson.running.box_trial import try_protections

    with output.working("trying the protections"):
        found = try_protections()
    if view.form == "json":
        view.write_json(found)
    else:
        view.show(
            f"ok  {each.name}: refused ({each.by})" if each.is_refused else f"NO  {each.name}: {each.detail}"
            for each in found
        )
    ctx.exit(0 if all(each.is_refused for each in found) else 1)
