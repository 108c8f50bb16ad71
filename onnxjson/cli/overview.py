"""The table of all commands, and which one is meant by a word that is none."""

from collections.abc import Collection
from typing import Final, NamedTuple

from onnxjson.model.display import visible

MEANT: Final = {
    "show": "info cat view print inspect summary stats describe display dump open list ls outline",
    "show MODEL --cost": "cost flops macs params size profile-cost",
    "find": "search grep query",
    "check": "validate lint verify-model checker test",
    "diff": "compare changes changed delta",
    "verify": "compare equal same accuracy numerics",
    "tui": "browse ui gui explore",
    "rewrite": "modify set change",
    "rewrite delete-node": "delete remove rm drop",
    "rewrite extract": "cut subgraph crop sub slice",
    "optimize": "simplify slim fuse opt optimise sim quantize quantise fold float16 fp16",
    "convert": "to-json from-json tojson json export import save load encode decode text",
    "apply": "patch script",
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
    "fleet": "batch bulk all many",
    "demo": "tour example tutorial start",
}
"""Words that are typed for a command."""


MEANT_OPTIONS: Final = {
    "--tolerance all=REL,ABS": "rtol atol tol eps epsilon",
    "-o report.html": "html page report",
    "-o report.md": "markdown md",
    "-o OUT": "out outfile output-file save",
    "-i": "inplace overwrite force",
    "--to": "format form type as",
    "--provider cuda": "gpu cuda device",
    "--repeat": "runs iterations iters loops n",
    "--samples": "num-samples tests trials",
    "--dim N=4": "batch batch-size dims dimension",
    "--inputs": "from start input",
    "--outputs": "end until",
    "the editor is $EDITOR: EDITOR=nano onnxjson edit MODEL": "editor with",
    "nodes of an operator are op:Conv": "op op-type operator",
    "without an option, the report is a summary": "stat summary short brief name-only",
    "onnxjson show MODEL 'op:*' lists nodes": "list ls all graph",
    "onnxjson optimize MODEL -p float16 -o OUT computes in float16": "fp16 half to-fp16 convert-fp16",
    "onnxjson optimize MODEL -p quantize-dynamic -o OUT quantizes to 8 bits": "int8 uint8 quant quantized",
}
"""What to write instead of options that no command has."""


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


def meant_by(word: str) -> str:
    """Return what to write instead of a word that is no command: at most three suggestions, or ""."""
    shown = visible(word)
    if word.lower().endswith((".onnx", ".json", ".onnxjson", ".pb", ".textproto", ".onnxtxt")):
        return f"to look at a model write `onnxjson show {shown}`, `onnxjson tui {shown}` or `onnxjson edit {shown}`"
    meant = [command for command, words in MEANT.items() if word.lower() in words.split()]
    commands = meant or _edits_and_passes(word) or _alike(word)
    return f"write {' or '.join([f'`onnxjson {command}`' for command in commands[:3]])}" if commands else ""


def meant_by_option(option: str, command: str, known: Collection[str]) -> str:
    """Return what to write instead of an option that a command, which has the `known` ones, does not have; or ""."""
    word = option.lstrip("-")
    if command == "optimize" and (passes := _edits_and_passes(word)):
        return f"write {passes[0].removeprefix('optimize ')}"
    for advice, words in MEANT_OPTIONS.items():
        if word in words.split() and (not advice.startswith("-") or advice.split()[0] in known):
            return f"write {advice}" if advice.startswith("-") else advice
    return ""


def _edits_and_passes(word: str) -> list[str]:
    from onnxjson.editing.catalogue import NAMES
    from onnxjson.optimizing.passes.catalogue import all_names

    edits = [f"rewrite {name}" for name in NAMES if name == word]
    return edits or [f"optimize -p {name}" for name in all_names() if name == word]


def _alike(word: str) -> list[str]:
    import difflib

    return difflib.get_close_matches(word, COMMANDS, n=3)
