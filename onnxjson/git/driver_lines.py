"""Lines in git's settings and in .gitattributes that make git start this program, and a trial of them.

Every line that starts Python has a safeguard, since git does not check the programs that it starts: one version that
cannot be shown aborts `git log -p`, and a merge driver that is missing or killed leaves one side as the merged file.
"""

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from onnxjson.git.commands import CommandError, Git
from onnxjson.model.display import visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.running.server_process import scratch_folder
from onnxjson.storage import files

ATTRIBUTES: Final = (
    "**/*.onnx diff=onnx merge=onnx -text",
    "**/*.onnx.json diff=onnxjson merge=onnxjson text eol=lf linguist-language=JSON",
    "**/*.blobs/** -diff -merge -text",
)
"""Lines of a .gitattributes; the last one is for the bytes of weights.

Not the equivalent ``*.onnx``: `git lfs track` changes a line that begins with the pattern to track.
"""

ALIAS: Final = "alias.onnxdiff"

MERGETOOL: Final = "mergetool.onnxjson.cmd"

_DIFF_COMMAND: Final = "-I -m onnxjson diff --git"

_MERGETOOL_COMMAND: Final = "-I -m onnxjson mergetool"

OURS: Final = ("onnxjson.git.textconv", "onnxjson.git.merge_driver", _DIFF_COMMAND, _MERGETOOL_COMMAND)
"""Parts of commands that identify a setting as one of ours."""

NAMED: Final = (
    r'^[[:space:]]*(\{"(op_type|name)": .*[^,]),?$'
    "\n"
    r'^[[:space:]]*("(input|output|node|initializer|sparse_initializer|value_info|quantization_annotation'
    r'|element_metadata|functions|training_info|configuration|metadata_props|graph)": [[{])$'
)
"""Lines that begin a named element: a node, a tensor, a list of the graph (POSIX, extended)."""

WORD: Final = r'"([^"\\]|\\.)*"|[-+0-9.eE]+|[^[:space:]]'
"""A string, a number, or a single character (POSIX, extended)."""

_FILE_HASH: Final = (
    "PATH=/usr/bin:/bin:/usr/local/bin; "
    'h=$(sha256sum <"$1" || shasum -a 256 <"$1" || cksum <"$1"); '
    'echo "not shown: $w; sha256 ${h%% *}"'
)

_SECONDS: Final = 60.0

_ALONE: Final[dict[str, str | None]] = {
    **dict.fromkeys(("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_CONFIG_PARAMETERS")),
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "onnxjson"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "onnxjson@localhost"),
    "GIT_CONFIG_COUNT": None,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
"""Variables that separate a trial from the user's repositories and settings."""

_MODEL: Final = """{
"format": "onnxjson/1",
"ir_version": 10,
"opset_import": {"": 20},
"graph": {
  "name": "g",
  "input": [
    {"name": "x", "type": "float32[2]"}
  ],
  "output": [
    {"name": "z", "type": "float32[2]"}
  ],
  "node": [
    {"op_type": "LeakyRelu", "output": ["y"],
     "input": ["x"],
     "name": "first",
     "attribute": {
       "alpha": ALPHA
     }},
    {"op_type": "Elu", "output": ["z"],
     "input": ["y"],
     "name": "second",
     "attribute": {
       "alpha": BETA
     }}
  ]
}
}
"""


def settings_for(python: str) -> dict[str, str]:
    """Return the settings, key -> value, that start the interpreter at the absolute path `python`."""
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
        # Also for common ancestors: git's own "binary" keeps an older one, which undoes a revert since then.
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
    # git appends the name of the file. Even if Python fails, the function prints a line and exits with 0.
    run = f'{shlex.quote(python)} -I -m onnxjson.git.textconv "$1" 2>/dev/null && return 0'
    return (
        f'f() {{ w="ONNXJSON_GIT=off"; [ "$ONNXJSON_GIT" = off ] || {{ {run}; '
        f'w="onnxjson did not run, see onnxjson git doctor"; }}; {_FILE_HASH}; return 0; }}; f'
    )


def _textconv_of_text(python: str) -> str:
    run = f'{shlex.quote(python)} -I -m onnxjson.git.textconv "$1" 2>/dev/null && return 0'
    return f'f() {{ [ "$ONNXJSON_GIT" = off ] || {{ {run}; }}; PATH=/usr/bin:/bin cat <"$1"; return 0; }}; f'


def _merge_driver(python: str) -> str:
    """Build the command of the merge driver.

    Exit codes 0 and 16 mean a complete result. After any other, git must stop, which it does only if the file is
    missing. So the file, which contains only ours, is removed before anything else starts, and stays open as descriptor
    3: even if this guard is killed, the file is missing until the merge is written.
    """
    off = '[ "$ONNXJSON_GIT" = off ]'
    script = (
        f"if {off}; then set -- git merge-file -q --marker-size=%L %A %O %B; else exec 3<%A; rm -f %A; fi; "
        f'"$@"; s=$?; {off} && [ $s -gt 0 ] && [ $s -lt 128 ] && exit 1; '
        "case $s in 0|16) exit $s;; "
        '12[67]) echo "onnxjson cannot start: $1; run onnxjson git install again" >&2;; esac; rm -f %A; exit 130'
    )
    started = shlex.quote(python).replace("%", "%%")  # % begins a placeholder of git
    return f"sh -c '{script}' - {started} -I -m onnxjson.git.merge_driver %O /dev/fd/3 %B %L %P %A"


def _alias(python: str) -> str:
    # git starts it at the top of the work tree; with GIT_DIR set, a subfolder would be taken for the top.
    enter_folder = (
        '[ -z "$GIT_PREFIX" ] || { [ -z "$GIT_DIR" ] || '
        '{ GIT_DIR=$(cd "$GIT_DIR" && pwd); : "${GIT_WORK_TREE:=$PWD}"; export GIT_DIR GIT_WORK_TREE; }; '
        'cd "./$GIT_PREFIX" || exit 66; }'
    )
    return (
        f'!f() {{ {enter_folder}; [ "$ONNXJSON_GIT" = off ] && exec git diff --no-textconv "$@"; '
        f'exec {shlex.quote(python)} {_DIFF_COMMAND} "$@"; }}; f'
    )


def problems(settings: Mapping[str, str]) -> list[str]:
    """Return a sentence for each setting that does not work in a temporary repository with a small model.

    Raises:
        OnnxJsonError: git is not installed, or the temporary folder cannot be written.
    """
    with scratch_folder("onnxjson-git-") as temporary:
        folder = temporary / "it's a test"  # a path with spaces and a quote
        folder.mkdir()
        try:
            return list(_Trial(folder, settings).problems())
        except CommandError as error:
            return [f"git fails: {error}"]


def _text(alpha: str, beta: str) -> str:
    return _MODEL.replace("ALPHA", alpha).replace("BETA", beta)


class _Trial:
    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._text_file, self._binary = folder / "m.onnx.json", folder / "m.onnx"
        self._git = Git(folder, _ALONE)
        self._settings = settings
        self._run("init", "-q", "--template=", ".")
        (folder / ".git" / "info").mkdir(exist_ok=True)
        (folder / ".git" / "info" / "attributes").write_text("".join(f"{line}\n" for line in ATTRIBUTES))
        for key, value in settings.items():
            self._run("config", "--local", key, value)

    def _run(self, *arguments: str) -> str:
        return os.fsdecode(self._git.output(*arguments, seconds=_SECONDS))

    def _commit(self, alpha: str, beta: str) -> str:
        """Commit a version of the model in both forms; return the name of the commit."""
        self._text_file.write_text(_text(alpha, beta))
        files.save(files.load(self._text_file).model, self._binary)
        self._run("add", ".")
        self._run("commit", "-q", "--no-gpg-sign", "-m", "a version")
        return self._run("rev-parse", "HEAD").strip()

    def problems(self) -> Iterator[str]:
        base = self._commit("0.1", "0.5")
        for name, key in (("m.onnx", "diff.onnx.textconv"), ("m.onnx.json", "diff.onnxjson.textconv")):
            shown = self._run("cat-file", "--textconv", f"HEAD:{name}") if key in self._settings else None
            if shown is not None and shown != _text("0.1", "0.5"):
                yield f"{key} shows of a small model: {visible(shown.strip(), 200) or 'nothing'}"
        if ALIAS in self._settings and "onnxjson diff" not in self._run("onnxdiff", "--help"):
            yield f"{ALIAS} does not start onnxjson diff"
        if MERGETOOL in self._settings:
            yield from self._problems_of_mergetool()
        if {"merge.onnx.driver", "merge.onnxjson.driver"} <= set(self._settings):
            ours = self._commit("0.2", "0.5")
            self._run("checkout", "-q", "--detach", base)
            self._commit("0.1", "0.75")
            yield from self._problems_of_merge(ours)

    def _problems_of_mergetool(self) -> Iterator[str]:
        # Three equal sides leave nothing to choose.
        variables = " ".join(f"{name}=m.onnx" for name in ("BASE", "LOCAL", "REMOTE", "MERGED"))
        try:
            self._run("-c", f"alias.settle=!{variables}; {self._settings[MERGETOOL]}", "settle")
        except CommandError as error:
            yield f"{MERGETOOL} does not resolve a merge: {error}"

    def _problems_of_merge(self, ours: str) -> Iterator[str]:
        try:
            self._run("merge", "-q", "--no-gpg-sign", "-m", "merged", ours)
        except CommandError as error:
            yield f"a merge of two edits of a small model fails: {error}"
            return
        for place, form in ((self._text_file, "json"), (self._binary, "onnx")):
            try:
                loaded = files.load(place)
                text = place if form == "json" else place.with_name("read.onnx.json")
                if form == "onnx":
                    files.save(loaded.model, text)
                if loaded.format != form or text.read_text() != _text("0.2", "0.75"):
                    yield f"a merge of two edits of {place.name} loses one of them"
            except OnnxJsonError as error:
                yield f"a merge of two edits of {place.name} is not a model: {error}"
