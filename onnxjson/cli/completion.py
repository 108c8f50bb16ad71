"""Completion in shells: the scripts, and the values of selectors."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from onnxjson.cli.paths import KNOWN_ENDINGS
from onnxjson.model.errors import OnnxJsonError
from onnxjson.patterns.selector_terms import KEYS, property_texts

BASH: Final = """\
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


def script(shell: str, program: click.Command) -> str:
    """Return the completion script for a shell."""
    kind = get_completion_class(shell)
    if shell == "bash" or kind is None:
        return BASH
    text = kind(program, {}, "onnxjson", "_ONNXJSON_COMPLETE").source() + "\n"
    for lacking, corrected in _CORRECTIONS[shell]:
        text = text.replace(lacking, corrected)
    return text


_HARMLESS: Final = re.compile(r"[A-Za-z0-9_./,-]+")
"""Texts that a shell does not interpret; names in a model may be anything."""

_MOST: Final = 200


class Words(click.ParamType[str]):
    """Models, then selectors or values: completed as files, terms of a selector with values of the first model."""

    name = "words"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        words = ctx.params.get(param.name or "") or ()
        before = incomplete[: incomplete.rfind(" ") + 1]
        last = incomplete[len(before) :]
        mark = "!" if last.startswith("!") else ""
        key, colon, value = last.removeprefix("!").partition(":")
        if not colon or key not in KEYS:
            return [CompletionItem(incomplete, type="file")]
        found = [text for text in _texts(words, key) if text.startswith(value) and _HARMLESS.fullmatch(text)]
        return [CompletionItem(f"{before}{mark}{key}:{text}") for text in found[:_MOST]]


def _texts(words: Sequence[str], key: str) -> list[str]:
    """The values that nodes of the first model have, as a term compares them."""
    from onnxjson.model.index import Index
    from onnxjson.storage import files

    model = next((word for word in words if word.lower().endswith(KNOWN_ENDINGS) and Path(word).is_file()), None)
    if model is None:
        return []
    try:
        index = Index(files.load(model, bind=False).model)
    except OnnxJsonError:
        return []
    if key == "attr":
        return sorted({each.name or "" for ref in index.node_refs for each in ref.node.attribute})
    return sorted({text for ref in index.node_refs for text in property_texts(ref, key)})
