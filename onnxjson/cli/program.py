"""``onnxjson demo``, ``help``, ``passes``, ``schema``, ``completion``, ``doctor``: the program about itself."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import get_completion_class

from onnxjson.cli import options, output, processes, reports
from onnxjson.cli.overview import OTHERS
from onnxjson.cli.paths import FilePath
from onnxjson.model.errors import OnnxJsonError, OutputError, ParameterError

if TYPE_CHECKING:
    from onnxjson.optimizing.passes.catalogue import Entry

# The passes are imported where they are needed: a shell that starts runs `onnxjson completion`, which needs none.

SCHEMAS: Final = ("document", "diff", "diffs", "patch", "policy", "recipe", "rewrite", "trace")
"""Kinds of documents with a JSON Schema; schemas/ has a file for each, which an installed package contains."""

_WIDEST: Final = 100

_BASH: Final = """\
_onnxjson_completion() {
    local IFS=$'\\n' rest=${COMP_LINE:0:COMP_POINT} words=() last=-1 i space part type value response
    # bash also splits words at : and =; here they are put together again.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        space=${rest%%[^[:space:]]*}
        rest=${rest#"$space"}
        [[ -n $space || $i -eq 0 ]] && words[++last]=
        part=${COMP_WORDS[i]}
        [[ $rest == "$part"* ]] || part=$rest
        words[last]+=$part
        rest=${rest#"$part"}
    done
    [[ $part == [:=]* ]] && part=
    space=${words[last]%"$part"}  # what bash keeps of the word
    COMPREPLY=()
    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$last _ONNXJSON_COMPLETE=bash_complete "$1")
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$space"}") ;;
        esac
    done <<< "$response"
}

complete -o nosort -F _onnxjson_completion onnxjson
"""
"""The script for bash: that of click does not complete words with ``:`` or ``=``."""

_CORRECTIONS: Final = {
    "zsh": (
        (
            "#compdef onnxjson\n",
            "#compdef onnxjson\n(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i; }\n",
        ),
        ("    local -a response\n", "    local -a response\n    [[ $PREFIX == --*=* ]] && compset -P 1 '*='\n"),
        ("compadd -U ", 'compadd -U -i "$IPREFIX" '),
    ),
    "fish": (
        ('string split ","', 'string split -m 1 ","'),
        ("echo $metadata[2];", "echo \"$(string match -r -- '^--[^=]*=' (commandline -t))$metadata[2]\";"),
    ),
}
"""What the scripts of click lack: values with a comma, ``--option=VALUE``, and a zsh that has not loaded completion."""

_TOUR: Final = (
    ("A small network, made with the onnx package", "python -m onnxjson.example digits.onnx"),
    ("The model as text", "onnxjson convert digits.onnx"),
    ("One attribute changed in the text, as in any editor",
     "onnxjson diff --format unified -U 0 digits.onnx.json leaky.onnx.json"),
    ("Back to a model that every ONNX program loads", "onnxjson convert leaky.onnx.json"),
    ("", "onnxjson check --deep leaky.onnx"),
    ("What changed since the export, matched by structure, not by names or order",
     "python -m onnxjson.example --unfused exported.onnx"),
    ("", "onnxjson diff --nodes-only --test-rewrites exported.onnx leaky.onnx"),
    ("Nothing is lost: the unchanged text converts back to exactly the same model",
     "onnxjson convert digits.onnx.json -o again.onnx"),
    ("", "onnxjson diff digits.onnx again.onnx"),
    ("An optimizer, and what each part of it changed",
     "onnxjson optimize exported.onnx -p onnxruntime -o fast.onnx --trace steps"),
    ("", "onnxjson trace steps"),
)  # fmt: skip
"""Commands with their titles."""


def _pass_names() -> list[str]:
    from onnxjson.optimizing.passes.catalogue import all_names

    return list(all_names())


@options.command("help")
@click.argument("words", metavar="[COMMAND... | more]", nargs=-1)
@click.pass_context
def help_command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command; `help more` lists all others.

    \b
    onnxjson help diff
    onnxjson help rewrite rename
    onnxjson help more
    """
    program = ctx.find_root()
    if words == ("more",):
        formatter = program.make_formatter()
        formatter.write_dl([(f"{entry.name:<10}", entry.summary) for entry in OTHERS])
        click.echo(formatter.getvalue(), nl=False)
    elif words:
        program.command.main([*words, "--help"], prog_name=program.info_name)
    else:
        click.echo(program.get_help())


@options.command("passes")
@click.argument(
    "words", metavar="[NAME | explain PASS MODEL...]", nargs=-1, type=options.Parsed("name", str, _pass_names)
)
@options.option("--fusion NAME", "With explain: attention, gelu, layernorm, skiplayernorm ...", default="attention")
@reports.view_options("text", "json")
@click.pass_context
def passes_command(ctx: click.Context, words: tuple[str, ...], *, fusion: str, view: reports.View) -> None:
    """List the passes, or show the options of one.

    JSON also lists the parts of passes, and the edits, which work as passes. `explain` searches models for the
    patterns of a fusion, and shows the nearest misses. The patterns are onnxjson's own, written from the documentation
    of each fusion; optimizers may require more.

    \b
    onnxjson passes
    onnxjson passes onnxsim
    onnxjson passes explain onnxruntime m.onnx --fusion attention
    """
    from onnxjson.optimizing.passes.catalogue import as_json, entries
    from onnxjson.rendering.pass_list import details, overview

    known = entries()
    if words[:1] == ("explain",):
        if len(words) < 3:
            raise click.UsageError("write onnxjson passes explain PASS MODEL... --fusion NAME")
        from onnxjson.cli.find import explain

        ctx.exit(explain(_entry(words[1], known).name, [Path(word) for word in words[2:]], fusion, view))
    if len(words) > 1:
        raise click.UsageError("name one pass")
    name = words[0] if words else None
    listed = known if name is None else [_entry(name, known)]
    width = reports.width(_WIDEST)
    parts = [entry for entry in known if entry.kind == "part" and entry.name.startswith(f"{name}:")]
    view.present(
        text=lambda: overview(known, width) if name is None else details(listed[0], parts, width),
        json=lambda: [as_json(entry) for entry in listed],
    )


def _entry(name: str, known: "Sequence[Entry]") -> "Entry":
    from onnxjson.optimizing.passes.declaration import near

    for entry in known:
        if entry.name == name:
            return entry
    hint = near(name, [entry.name for entry in known]) or "`onnxjson passes` lists all"
    raise ParameterError(f"there is no pass {output.quoted(name)}; {hint}")


@options.command("schema")
@click.argument("kind", metavar="[NAME]", type=click.Choice(SCHEMAS), default="document")
def schema_command(kind: str) -> None:
    """Print the JSON Schema of a kind of document.

    NAME is document (the default), diff, diffs, patch, policy, recipe, rewrite or trace. Editors use the schema of a
    document to complete and check a .onnx.json; programs use the others to read reports.

    \b
    onnxjson schema > document-1.schema.json
    onnxjson schema diff
    """
    installed, clone = (parent / "schemas" for parent in Path(__file__).parents[1:3])
    folder = installed if installed.is_dir() else clone
    output.stdout().write((folder / f"{kind}-1.schema.json").read_bytes())


def _script(shell: str, program: click.Command) -> str:
    """Return the completion script for a shell."""
    kind = get_completion_class(shell)
    if shell == "bash" or kind is None:
        return _BASH
    text = kind(program, {}, "onnxjson", "_ONNXJSON_COMPLETE").source() + "\n"
    for lacking, corrected in _CORRECTIONS[shell]:
        text = text.replace(lacking, corrected)
    return text


@options.command("completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    SHELL is bash, zsh or fish.

    \b
    onnxjson completion bash >> ~/.bashrc
    onnxjson completion zsh >> ~/.zshrc
    onnxjson completion fish > ~/.config/fish/completions/onnxjson.fish
    """
    output.stdout().write(_script(shell, ctx.find_root().command).encode())


@options.command("doctor")
@reports.view_options("text", "json")
@click.pass_context
def doctor_command(ctx: click.Context, *, view: reports.View) -> None:
    """Check that this machine can sandbox native code.

    onnx, onnxruntime, optimizers and your own passes run in sandboxed processes. This command tests each protection in
    such a process, and exits 1 if one is missing. Other commands then still work, but passes that evaluate text from
    models need --trust.

    \b
    onnxjson doctor
    onnxjson doctor --json
    """
    from onnxjson.running.box import missing
    from onnxjson.running.box_trial import try_protections

    with output.working("testing the protections"):
        protections = try_protections()
    lines = [
        f"ok  {each.name}: refused ({each.by})" if each.is_refused else f"NO  {each.name}: {each.detail}"
        for each in protections
    ]
    if missing():
        from onnxjson.optimizing.passes.catalogue import NAMES

        needing = [name for name, kind in NAMES.items() if kind.evaluates_texts]
        lines.append(f"so passes that evaluate text from models need --trust: {', '.join(needing)}")
    view.present(text=lambda: lines, json=lambda: protections)
    ctx.exit(0 if all(each.is_refused for each in protections) else 1)


class StepError(OnnxJsonError):
    """A step of the demonstration failed; the exit code is that of its process."""

    def __init__(self, command: str, exit_code: int) -> None:
        super().__init__(f"`{command}` exited with {exit_code}; its output is above")
        self.exit_code = exit_code  # type: ignore[misc]


@options.command("demo")
@click.argument("folder", metavar="[DIR]", default="onnxjson-demo", type=FilePath())
def demo_command(folder: Path) -> None:
    """Run a tour: convert a model to text and back, diff, optimize.

    Writes to DIR (default: onnxjson-demo), which must be new or empty. Every command is printed, then run.

    \b
    onnxjson demo
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = any(folder.iterdir())
    except (FileExistsError, NotADirectoryError) as error:
        raise OutputError(f"{folder} is a file; choose a new folder: onnxjson demo DIR") from error
    if occupied:
        raise OutputError(f"{folder} is not empty; choose a new folder: onnxjson demo DIR")
    _print(f"$ cd {_word(folder)}", "hunk")
    for title, command in _TOUR:
        if title:
            _print(f"\n{title}", "title")
        if "unified" in command:
            text = (folder / "digits.onnx.json").read_text(encoding="utf-8").replace('"alpha": 0.01', '"alpha": 0.2')
            (folder / "leaky.onnx.json").write_text(text, encoding="utf-8", newline="\n")
        _print(f"$ {command}", "hunk")
        words = command.removeprefix("python -m ").split()
        completed = processes.run_module(words[0], words[1:], folder)
        for line in completed.stdout.decode(errors="backslashreplace").splitlines():
            _print(output.line(line))
        if completed.returncode != command.startswith("onnxjson diff -"):  # two models that differ
            raise StepError(command, completed.returncode)
    _print("\nNow try your own", "title")
    _print(f"  less {_word(folder / 'digits.onnx.json')}\n  onnxjson convert YOUR_MODEL.onnx")
    _print("  onnxjson diff ONE.onnx OTHER.onnx -o report.html\n  onnxjson --help")


def _print(text: str, style: str = "plain") -> None:
    """Print a text without control characters in a style of `reports.styled`."""
    click.echo(reports.styled((style, text), coloured=reports.is_coloured("auto")))


def _word(path: Path) -> str:
    """A path as one word of a command line, on one line."""
    text = str(path)
    return output.line(shlex.quote(f"./{text}" if text.startswith("-") else text))
