"""The table of all commands, and which one is meant by a word that is none."""

import difflib
import re
import shlex
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from onnxjson.model.display import visible
from onnxjson.model.foreign_words import meant

MODELS: Final = (".onnx", ".json", ".onnxjson")
"""Endings of files of models."""

_OPTION: Final = re.compile("--?[a-zA-Z]")

_AUTO: Final = re.compile(r":auto(:auto)?$")
"""What other programs write after the name of a tensor for "of any shape and dtype"."""


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


def meant_by(word: str, typed: Sequence[str], options_of: Callable[[str], Collection[str]]) -> str:
    """Return what to write instead of a word that is no command, and what was typed after it: three commands, or "".

    `options_of` returns the options of a command. Commands that have none for one that was typed come last.
    """
    shown = visible(word)
    if word.lower().endswith((".onnx", ".json", ".onnxjson", ".pb", ".textproto", ".onnxtxt")):
        return f"to look at a model write `onnxjson show {shown}`, `onnxjson tui {shown}` or `onnxjson edit {shown}`"
    commands = meant("command", f"{word}-{typed[0]}") if typed else []
    if commands:
        typed = typed[1:]
    commands = commands or meant("command", word) or _edits_and_passes(word) or _alike(word)
    lines = [(command, *_translated(typed, options_of(command))) for command in commands]
    fits = max([fit for _, _, fit in lines], default=False)
    said = [f"`onnxjson {written(command, words)}`" for command, words, fit in lines if fit == fits]
    return f"write {' or '.join(said[:3])}" if said else ""


def _translated(typed: Sequence[str], known: Collection[str]) -> tuple[list[str], bool]:
    """Return what was typed with the `known` options of a command, and whether it has one for each."""
    words, is_complete, rest = list[str](), True, list(typed)
    both = _both_tolerances(typed)
    while rest:
        word = rest.pop(0)
        if word == "--output" and "-o" in typed and "--outputs" in known:
            word = "--outputs"
        option, _, value = word.partition("=")
        if not _OPTION.match(word) or option in known:
            words.append(_AUTO.sub("", word))
            continue
        if not value and rest and not _OPTION.match(rest[0]) and not rest[0].endswith(MODELS):
            value = rest.pop(0)
        advice = next((each for each in meant("option", option.lstrip("-")) if each.split()[0] in known), "")
        is_complete &= bool(advice)
        if both and advice.startswith("--tolerance"):
            advice = both if option == "--rtol" else ""
        words += shlex.split(_with_value(advice, value))
    return words, is_complete


def _both_tolerances(typed: Sequence[str]) -> str:
    """The option for what was typed as ``--rtol R --atol A``; "" if one of them is missing."""
    given = dict(pairwise(typed))
    values = [shlex.quote(given[name]) for name in ("--rtol", "--atol") if name in given]
    return f"--tolerance all={','.join(values)}" if len(values) == 2 else ""


def _with_value(advice: str, value: str) -> str:
    """Return a command or an option with the value that was typed, where there is one."""
    name, mark, sizes = value.replace("=", ":").rpartition(":")
    places = {"VALUE": value} | ({"NAME": name, "SIZES": sizes} if mark else {})
    return re.sub("VALUE|NAME|SIZES", lambda place: shlex.quote(places.get(place[0]) or place[0]), advice)


def written(command: str, typed: Sequence[str], value: str = "") -> str:
    """Return a command with the files among what was `typed` for MODEL and OUT; without these, with all of it."""
    outs = [word for option, word in pairwise(typed) if option in ("-o", "--output")]
    unused = [*outs, *[value for place in ("VALUE", "SIZES") if place in command]]
    files = [word for word in typed if "." in word and word[0] != "-" and word not in unused]
    places = {"MODEL": files[:1], "MODELS": files, "OUT": outs or files[1:2]}
    words = shlex.split(_with_value(command, value))
    filled = [text for word in words for text in places.get(word) or [word]]
    return visible(shlex.join(filled if {"MODEL", "MODELS"} & {*words} else [*filled, *typed]), None)


def meant_by_option(option: str, known: Collection[str], command: str, typed: Sequence[str]) -> str:
    """Return what to write instead of an option that a command does not have, which was `typed` after it; or "".

    `known` are the options that the command has.
    """
    from onnxjson.editing.catalogue import NAMES, edit_meant
    from onnxjson.optimizing.passes.catalogue import option_of_pass, pass_meant

    word = option.lstrip("-")
    if option.endswith("s") and option[:-1] in known:
        return f"write {option[:-1]}"
    after = [text for name, text in pairwise(typed) if name == option and not _OPTION.match(text)]
    value = next(iter([text.partition("=")[2] for text in typed if text.startswith(f"{option}=")] or after), "")
    pass_name, edit = pass_meant(word), edit_meant(word)
    if command == "optimize":
        passes = [text for name, text in pairwise(typed) if name in ("-p", "--pass")]
        spelled = next(filter(None, [option_of_pass(each, word, value) for each in passes]), "")
        if spelled or pass_name or edit:
            return f"write -p {shlex.quote(spelled or pass_name or edit)}"
    for advice in meant("option", word):
        if advice.startswith("--tolerance") and "--tolerance" in known and (both := _both_tolerances(typed)):
            return f"write {both} for both"
        if advice.startswith("-") and advice.split()[0] not in known:
            continue
        if advice.startswith("onnxjson "):
            line = advice.replace("COMMAND", command if command == "edit" else "show")
            return f"write `{written(line, typed, value)}`"
        return f"write {visible(_with_value(advice, value), None)}" if advice.startswith("-") else advice
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
    from onnxjson.editing.catalogue import NAMES

    lines = {name: f"rewrite {name}" for name in NAMES} | {name: name for name in COMMANDS}
    return [lines[name] for name in difflib.get_close_matches(word, lines, n=3, cutoff=0.75)]
