"""The table of all commands, and which one is meant by a word that is none."""

import difflib
import shlex
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from onnxjson.model.display import visible

MEANT: Final = {
    "show": "info cat view print inspect summary stats describe display dump open list ls inputs outputs count",
    "show MODEL --outline": "outline graph structure blocks",
    "show MODEL 'op:*'": "nodes ops operators layers",
    "show MODEL --cost": "cost flops macs params size profile-cost",
    "show MODEL -o report.html": "html page draw plot",
    "find": "search grep query",
    "check": "validate lint verify-model checker test",
    "diff": "compare changes changed delta",
    "diff --format patch": "patch make-patch",
    "verify": "compare equal same accuracy numerics test",
    "tui": "browse ui gui explore netron",
    "rewrite": "modify change surgeon",
    "optimize MODEL -p onnxsim -o OUT": "optimise opt",
    "optimize MODEL -p quantize-dynamic -o OUT": "quantize",
    "convert": "to-json from-json tojson json export import save load encode decode text",
    "apply": "patch script",
    "git install": "init setup",
    "new": "create make generate init",
    "undo-save": "undo revert restore backup",
    "run": "infer inference predict execute exec eval",
    "bench": "benchmark time perf speed latency profile",
    "gate": "review ci pr report",
    "fmt": "format canonical",
    "passes": "optimizers list-passes",
    "lsp": "server language-server editor",
    "mcp": "agent agents",
    "tensor": "weights weight base64 npy",
    "fleet": "bulk all many",
    "demo": "tour example tutorial start",
}
"""Words that are typed for a command; what follows them is written for MODEL and OUT, or after the command.

Words for edits and passes are in their catalogues.
"""


MEANT_OPTIONS: Final = {
    "--tolerance all=VALUE": "rtol tol eps epsilon tolerance",
    "--tolerance all=0,VALUE": "atol",
    "-o report.html": "html page report",
    "-o report.md": "markdown md",
    "-o OUT": "out outfile output-file save",
    "--input VALUE": "i npy feed data",
    "-i": "inplace overwrite force",
    "--format patch": "patch",
    "--to": "format form type as",
    "--provider cuda": "gpu cuda device",
    "--repeat": "runs iterations iters loops n",
    "--samples VALUE": "num-samples tests trials seeds",
    "--dim N=4": "batch batch-size dims dimension",
    "--inputs": "from start input",
    "--outputs": "end until",
    "--file VALUE": "npy npz array values-file",
    "--cost": "flops macs",
    "the editor is $EDITOR: EDITOR=nano onnxjson edit MODEL": "editor with",
    "nodes of an operator are op:Conv": "op op-type operator",
    "inputs without a value are random; --seed N gives others": "random rand",
    "without an option, the report is a summary": "stat summary short brief name-only",
    "onnxjson show MODEL": "inputs outputs io",
    "onnxjson show MODEL --cost": "params parameters",
    "onnxjson show MODEL 'op:*'": "list ls all graph nodes",
    "onnxjson optimize MODEL -p float16 -o OUT": "dtype precision",
    "onnxjson rewrite convert-opset MODEL VALUE -o OUT": "opset opset-version target-opset",
    "onnxjson rewrite rename MODEL OLD NEW -o OUT": "rename",
    "onnxjson find MODEL PATTERN": "attention match pattern",
}
"""What to write instead of options that no command has; VALUE is what was given to the option."""


class Entry(NamedTuple):
    """One command."""

    name: str
    summary: str
    """One line for the list of commands, also the first line of the command's own help."""
    module: str = ""
    """The module that declares it as, for example, ``undo_save_command``; by default the one with its name."""


SECTIONS: Final[dict[str, tuple[Entry, ...]]] = {
    "Look": (
        Entry("show", "Show a summary of a model, or one of its nodes or tensors."),
        Entry("find", "Find what matches a pattern of operators."),
        Entry("check", "Check models for errors, and against rules and budgets."),
        Entry("diff", "Show what changed between two models."),
        Entry("tui", "Browse and edit a model in the terminal.", "edit"),
    ),
    "Change": (
        Entry("edit", "Edit a model in your text editor."),
        Entry("rewrite", "Apply one edit to one or many models."),
        Entry("apply", "Apply a patch or a script of edits to one or many models."),
        Entry("optimize", "Run optimizers on models; report what each one changed."),
        Entry("convert", "Convert a model between .onnx, .onnx.json and proto-JSON."),
        Entry("new", "Create a model of one operator, or a ready-made component."),
        Entry("undo-save", "Restore a file as it was before its last changes in place.", "edit"),
    ),
    "Run": (
        Entry("run", "Run a model; report outputs, timing and a profile."),
        Entry("verify", "Compare the outputs of two models on the same inputs.", "run"),
        Entry("bench", "Compare variants of models: size, outputs, time."),
    ),
    "Review": (
        Entry("gate", "Check every model that changed between two revisions of git."),
        Entry("trace", "Show what each pass of a recorded run changed."),
    ),
    "Git": (
        Entry("git", "Set up git to diff and merge models."),
        Entry("merge", "Merge two changed versions of a model, node by node.", "merging"),
        Entry("conflicts", "List the conflicts of merges, with the values of each side.", "merging"),
        Entry("resolve", "Resolve conflicts of a merge by choosing one side.", "merging"),
    ),
    "More": (
        Entry("demo", "Run a tour: convert a model to text and back, diff, optimize.", "program"),
        Entry("fleet", "Run a command over thousands of models."),
        Entry("help", "Show the help of a command; `help more` lists all others.", "program"),
    ),
}
"""The commands of the first page of the help, by what one wants."""

OTHERS: Final = (
    Entry("fmt", "Convert model texts to their canonical form.", "convert"),
    Entry("passes", "List the passes, or show the options of one.", "program"),
    Entry("mergetool", "Resolve the conflicts of a merge one by one, in the terminal.", "merging"),
    Entry("tensor", "Convert constants to and from base64; read tensors of a model."),
    Entry("lsp", "Serve model texts to editors (Language Server Protocol).", "serving"),
    Entry("mcp", "Serve models to coding agents (Model Context Protocol).", "serving"),
    Entry("doctor", "Check that this machine can sandbox native code.", "program"),
    Entry("schema", "Print the JSON Schema of a kind of document.", "program"),
    Entry("completion", "Print the completion script for a shell.", "program"),
)
"""The commands that `onnxjson help more` lists."""

ENTRIES: Final = {entry.name: entry for entries in (*SECTIONS.values(), OTHERS) for entry in entries}

COMMANDS: Final = tuple(ENTRIES)


def meant_by(word: str, typed: Sequence[str] = ()) -> str:
    """Return what to write instead of a word that is no command, and what was typed after it: three commands, or ""."""
    shown = visible(word)
    if word.lower().endswith((".onnx", ".json", ".onnxjson", ".pb", ".textproto", ".onnxtxt")):
        return f"to look at a model write `onnxjson show {shown}`, `onnxjson tui {shown}` or `onnxjson edit {shown}`"
    meant = [command for command, words in MEANT.items() if word.lower() in words.split()]
    commands = meant or _edits_and_passes(word) or _alike(word)
    return f"write {' or '.join([f'`onnxjson {written(each, typed)}`' for each in commands[:3]])}" if commands else ""


def written(command: str, typed: Sequence[str], value: str = "") -> str:
    """Return a command with the files among what was `typed` for MODEL and OUT; without these, with all of it."""
    words = shlex.split(command)
    outs = [word for option, word in pairwise(typed) if option in ("-o", "--output")]
    files = [word for word in typed if "." in word and word[0] != "-" and word not in outs]
    places = {"MODEL": files[:1], "OUT": outs or files[1:], "VALUE": [value] if value else []}
    filled = [places[word][0] if places.get(word) else word for word in words]
    return visible(shlex.join(filled if "MODEL" in words else [*filled, *typed]), None)


def meant_by_option(option: str, known: Collection[str], command: str, typed: Sequence[str]) -> str:
    """Return what to write instead of an option that a command does not have, which was `typed` after it; or "".

    `known` are the options that the command has.
    """
    from onnxjson.editing.catalogue import NAMES, edit_meant
    from onnxjson.optimizing.passes.catalogue import pass_meant

    word = option.lstrip("-")
    if option.endswith("s") and option[:-1] in known:
        return f"write {option[:-1]}"
    pass_name, edit = pass_meant(word), edit_meant(word)
    if command == "optimize" and (pass_name or edit):
        return f"write -p {pass_name or edit}"
    after = [text for name, text in pairwise(typed) if name == option and text[:2] != "--"]
    value = next(iter([text.partition("=")[2] for text in typed if text.startswith(f"{option}=")] or after), "")
    for advice, words in MEANT_OPTIONS.items():
        if word not in words.split() or (advice.startswith("-") and advice.split()[0] not in known):
            continue
        if advice.startswith("onnxjson "):
            rest = [text for text in typed if text != value] if "VALUE" in advice else typed
            return f"write `{written(advice, rest, value)}`"
        return f"write {advice.replace('VALUE', visible(value) or 'VALUE')}" if advice.startswith("-") else advice
    if pass_name:
        return f"write `{written(f'onnxjson optimize MODEL -p {pass_name} -o OUT', typed)}`"
    is_edit = bool(edit) and command not in NAMES and not difflib.get_close_matches(option, known, cutoff=0.75)
    return f"an edit does this: `onnxjson rewrite {edit} --help`" if is_edit else ""


def _edits_and_passes(word: str) -> list[str]:
    from onnxjson.editing.catalogue import edit_meant
    from onnxjson.optimizing.passes.catalogue import pass_meant

    edit, name = edit_meant(word), pass_meant(word)
    return [f"rewrite {edit}"] if edit else [f"optimize MODEL -p {name} -o OUT"] if name else []


def _alike(word: str) -> list[str]:
    return difflib.get_close_matches(word, COMMANDS, n=3, cutoff=0.75)
