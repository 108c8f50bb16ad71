"""The table of all commands."""

from typing import Final, NamedTuple


class Entry(NamedTuple):
    """One command."""

    name: str
    summary: str
    """One line for the list of commands, also the first line of the command's own help."""
    module: str = ""
    """The module that declares it as, for example, ``undo_save_command``; by default the one with its name."""


SECTIONS: Final[dict[str, tuple[Entry, ...]]] = {
    "Start here": (
        Entry("demo", "Run a tour: convert a model to text and back, diff, optimize.", "program"),
        Entry("new", "Create a model of one operator, or a ready-made component."),
    ),
    "Models": (
        Entry("show", "Show a summary of a model, or one of its nodes or tensors."),
        Entry("find", "Find what matches a pattern of operators."),
        Entry("convert", "Convert a model between .onnx, .onnx.json and proto-JSON."),
        Entry("edit", "Edit a model in your text editor."),
        Entry("tui", "Browse and edit a model in the terminal.", "edit"),
        Entry("fmt", "Convert model texts to their canonical form.", "convert"),
        Entry("check", "Check models for errors, by rules and by budgets."),
        Entry("diff", "Show what changed between two models."),
        Entry("gate", "Check every model that changed between two revisions of git."),
        Entry("run", "Run a model; report outputs, timing and a profile."),
        Entry("verify", "Compare the outputs of two models on the same inputs.", "run"),
        Entry("bench", "Compare variants of models: size, outputs, time."),
        Entry("rewrite", "Apply one edit to one or many models."),
        Entry("apply", "Apply a patch or a script of edits to one or many models."),
        Entry("optimize", "Run optimizers on models; report what each one changed."),
        Entry("passes", "List the passes, or show the options of one.", "program"),
        Entry("trace", "Show what each pass of a recorded run changed."),
        Entry("undo-save", "Restore a file as it was before its last changes in place.", "edit"),
    ),
    "Fleets": (Entry("fleet", "Run a command over thousands of models."),),
    "Git": (Entry("git", "Set up git to diff and merge models."),),
    "Merging": (
        Entry("merge", "Merge two changed versions of a model, node by node.", "merging"),
        Entry("conflicts", "List the conflicts of merges, with the values of each side.", "merging"),
        Entry("resolve", "Resolve conflicts of a merge with one side.", "merging"),
        Entry("mergetool", "Resolve the conflicts of a merge one by one, in the terminal.", "merging"),
    ),
    "Constants": (Entry("tensor", "Convert constants to and from base64; read tensors of a model."),),
    "Tools": (
        Entry("lsp", "Serve model texts to editors (Language Server Protocol).", "serving"),
        Entry("mcp", "Serve models to coding agents (Model Context Protocol).", "serving"),
        Entry("doctor", "Check the protections of this machine against native code.", "program"),
        Entry("schema", "Print the JSON Schema of a kind of document.", "program"),
        Entry("completion", "Print the completion script for a shell.", "program"),
    ),
}
"""The commands in the order of the help."""

ENTRIES: Final = {entry.name: entry for entries in SECTIONS.values() for entry in entries}

COMMANDS: Final = tuple(ENTRIES)
