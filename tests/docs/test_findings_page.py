"""docs/findings.md lists every code that the package uses and no other, with sentences that really come."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import get_args

from onnxjson.cli import failures
from onnxjson.diffing.events import KINDS, Verdict
from onnxjson.editing.catalogue import EDITS as EDIT_CLASSES
from onnxjson.editing.catalogue import NAMES
from onnxjson.editing.parameters import parameters
from onnxjson.model import conflicts, errors
from onnxjson.optimizing.passes.catalogue import NAMES as PASSES
from onnxjson.running.random_values import Role

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^- `([a-z0-9-]+)`: .*\n  `` (.*) ``$", PAGE, re.MULTILINE))
EDITS = ROOT / "tests" / "golden" / "mistakes" / "edits.toml"

EDIT_WORDS = {*NAMES, *[each.role for edit in EDIT_CLASSES for each in parameters(edit)]}
NOT_CODES = {
    "utf-8",
    "ls-tree",
    "speed-up",
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "utf-32",
    "utf-32-le",
    "latin-1",
    "onnxjson-demo",
    "not-tried",
    "too-new",
    "1e-05",
    "not-compared",
    *KINDS,
    *get_args(Verdict),
    *get_args(Role),
    *EDIT_WORDS,
    *PASSES,
}

"""Other words with hyphens that stand alone in the source."""


@cache
def codes_in_source() -> set[str]:
    """Every string of the package that is written like a code."""
    names = set()
    for path in sorted((ROOT / "onnxjson").rglob("*.py")):
        is_program = {"cli", "git"} & set(path.relative_to(ROOT).parts) and path.name != "check.py"
        if is_program or path.name == "foreign_words.py":
            continue  # options and names of commands are written in the same way
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names.update(re.findall(r"\A[a-z0-9]+(?:-[a-z0-9]+)+\Z", node.value))
    return names - NOT_CODES


def test_every_code_of_the_source_is_on_the_page() -> None:
    assert codes_in_source() - ENTRIES.keys() == set()


def test_every_code_of_the_page_is_in_the_source() -> None:
    assert ENTRIES.keys() - codes_in_source() == set()


def test_no_code_stands_twice() -> None:
    codes = re.findall(r"^- `([a-z0-9-]+)`:", PAGE, re.MULTILINE)
    assert len(codes) == len(set(codes)) == len(ENTRIES)


def test_the_sentences_are_those_of_the_hand_edits() -> None:
    said: dict[str, set[str]] = {}
    for edit in tomllib.loads(EDITS.read_text(encoding="utf-8"))["edit"]:
        for says in edit["says"]:
            code, _, _, _, sentence = says.split(":", 4)
            said.setdefault(code, set()).add(sentence.strip())
    for code, sentences in said.items():
        assert ENTRIES[code] in sentences


def test_every_exit_code_is_on_the_page() -> None:
    raised = {
        error.exit_code
        for error in (*vars(errors).values(), *vars(conflicts).values())
        if isinstance(error, type) and issubclass(error, errors.OnnxJsonError)
    }
    public = {code for name, code in vars(failures).items() if name.isupper() and name[0] != "_"}
    others = {code for code in public if isinstance(code, int)}
    on_page = [int(code) for code in re.findall(r"^\| ([0-9]+) \|", PAGE, re.MULTILINE)]
    assert on_page == sorted({0, 1} | raised | others)
