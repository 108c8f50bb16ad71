"""``onnxjson completion``: the script that teaches a shell the commands, options and files."""

import click
from click.shell_completion import get_completion_class

from onnxjson.cli import output


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash   onnxjson completion bash >> ~/.bashrc
    zsh    onnxjson completion zsh >> ~/.zshrc
    fish   onnxjson completion fish > ~/.config/fish/completions/onnxjson.fish
    """
    completion_class = get_completion_class(shell)
    assert completion_class is not None, shell
    completion = completion_class(ctx.find_root().command, {}, "onnxjson", "_ONNXJSON_COMPLETE")
    output.Stdout().write((completion.source() + "\n").encode())
