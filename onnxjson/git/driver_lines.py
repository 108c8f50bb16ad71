"""What is written into git's settings and into .gitattributes: the lines by which git starts this program.

Every line that starts Python guards itself, since git trusts what it starts: one version that cannot be shown ends all
of `git log -p`, and a merge driver that is missing or killed leaves one side of a file as if it were both.
"""

import shlex
from typing import Final

ATTRIBUTES: Final = (
    "**/*.onnx diff=onnx merge=onnx -text",
    "**/*.onnx.json diff=onnxjson merge=onnxjson text eol=lf linguist-language=JSON",
    "**/*.blobs/** -diff -merge -text",
)
"""Lines of a .gitattributes; the last one is about the bytes of weights.

Not ``*.onnx``, which means the same: `git lfs track` changes the line that begins with what it is told to track.
"""

ALIAS: Final = "alias.onnxdiff"

MERGETOOL: Final = "mergetool.onnxjson.cmd"

_DIFF_COMMAND: Final = "-I -m onnxjson diff --git"

_MERGETOOL_COMMAND: Final = "-I -m onnxjson mergetool"

OURS: Final = ("onnxjson.git.textconv", "onnxjson.git.merge_driver", _DIFF_COMMAND, _MERGETOOL_COMMAND)
"""A line that git runs and that has one of these in it was written here."""

NAMED: Final = (
    r'^[[:space:]]*(\{"(op_type|name)": .*[^,]),?$'
    "\n"
    r'^[[:space:]]*("(input|output|node|initializer|sparse_initializer|value_info|quantization_annotation'
    r'|element_metadata|functions|training_info|configuration|metadata_props|graph)": [[{])$'
)
"""Lines that begin something with a name of its own: a node, a tensor, a list of the graph (POSIX, extended)."""

WORD: Final = r'"([^"\\]|\\.)*"|[-+0-9.eE]+|[^[:space:]]'
"""A string, a number, or a single character (POSIX, extended)."""

_FILE_HASH: Final = (
    "PATH=/usr/bin:/bin:/usr/local/bin; "
    'h=$(sha256sum <"$1" || shasum -a 256 <"$1" || cksum <"$1"); '
    'echo "not shown: $w; sha256 ${h%% *}"'
)


def settings_for(python: str) -> dict[str, str]:
    """The settings, key -> value, that start the interpreter at the absolute path `python`."""
    return {
        "diff.onnx.textconv": _textconv_of_binary(python),
        "diff.onnx.binary": "true",
        "diff.onnx.xfuncname": NAMED,
        "diff.onnx.wordRegex": WORD,
        "diff.onnxjson.textconv": _textconv_of_text(python),
        "diff.onnxjson.xfuncname": NAMED,
        "diff.onnxjson.wordRegex": WORD,
        "merge.onnx.name": "ONNX models, by structure",
        "merge.onnx.driver": _merge_driver(python),
        # The same for common ancestors: git's own "binary" takes an older one, and a revert since then is undone.
        "merge.onnx.recursive": "onnx",
        "merge.onnxjson.name": "ONNX models as text, by structure",
        "merge.onnxjson.driver": _merge_driver(python),
        "merge.onnxjson.recursive": "onnxjson",
        # git runs it in its shell, with the names of the four files in variables.
        MERGETOOL: f'{shlex.quote(python)} {_MERGETOOL_COMMAND} -- "$BASE" "$LOCAL" "$REMOTE" "$MERGED"',
        "mergetool.onnxjson.trustExitCode": "true",
        ALIAS: _alias(python),
    }


def _textconv_of_binary(python: str) -> str:
    # git appends the name of the file. Whatever becomes of Python, the function ends with a line, and with 0.
    run = f'{shlex.quote(python)} -I -m onnxjson.git.textconv "$1" 2>/dev/null && return 0'
    return (
        f'f() {{ w="ONNXJSON_GIT=off"; [ "$ONNXJSON_GIT" = off ] || {{ {run}; '
        f'w="onnxjson did not run, see onnxjson git doctor"; }}; {_FILE_HASH}; return 0; }}; f'
    )


def _textconv_of_text(python: str) -> str:
    run = f'{shlex.quote(python)} -I -m onnxjson.git.textconv "$1" 2>/dev/null && return 0'
    return f'f() {{ [ "$ONNXJSON_GIT" = off ] || {{ {run}; }}; PATH=/usr/bin:/bin cat <"$1"; return 0; }}; f'


def _merge_driver(python: str) -> str:
    """0 and 16 are a whole result. For all else git must stop, and it does so only where there is no file to take.

    So the file, which has ours alone, goes before anything else starts, and is only open as descriptor 3: whatever is
    killed, this guard included, there is none until the merge is written.
    """
    off = '[ "$ONNXJSON_GIT" = off ]'
    guarded = (
        f"if {off}; then set -- git merge-file -q --marker-size=%L %A %O %B; else exec 3<%A; rm -f %A; fi; "
        f'"$@"; s=$?; {off} && [ $s -gt 0 ] && [ $s -lt 128 ] && exit 1; '
        "case $s in 0|16) exit $s;; *) rm -f %A; exit 130;; esac"
    )
    started = shlex.quote(python).replace("%", "%%")  # % begins a placeholder of git
    return f"sh -c '{guarded}' - {started} -I -m onnxjson.git.merge_driver %O /dev/fd/3 %B %L %P %A"


def _alias(python: str) -> str:
    # git starts it at the top of the work tree; where it says GIT_DIR, a subfolder would be taken for the top.
    there = (
        '[ -z "$GIT_PREFIX" ] || { [ -z "$GIT_DIR" ] || '
        '{ GIT_DIR=$(cd "$GIT_DIR" && pwd); : "${GIT_WORK_TREE:=$PWD}"; export GIT_DIR GIT_WORK_TREE; }; '
        'cd "./$GIT_PREFIX" || exit 66; }'
    )
    return (
        f'!f() {{ {there}; [ "$ONNXJSON_GIT" = off ] && exec git diff --no-textconv "$@"; '
        f'exec {shlex.quote(python)} {_DIFF_COMMAND} "$@"; }}; f'
    )
