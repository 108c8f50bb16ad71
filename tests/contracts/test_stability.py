"""What stays from version 1.0 on (docs/stability.md): the lists, and files that an older version wrote.

``python -m tests.contracts.test_stability`` adds new names to the lists; none is ever removed.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import onnxjson
from onnxjson.checking.catalogue import RULES
from onnxjson.cli.overview import COMMANDS
from onnxjson.editing.catalogue import EDITS
from onnxjson.editing.declaration import name_of
from onnxjson.model import errors
from onnxjson.patching.patch import Patch
from tests.cli.running import run

ROOT = Path(__file__).parent.parent.parent
LISTS = Path(__file__).with_name("stable.json")
OLD = ROOT / "tests" / "laws" / "written_by_0_1_0"

_CODE = re.compile(r"^\| (\d+) \| ([^|]+) \|$", re.MULTILINE)


def present() -> dict[str, list[str]]:
    """The names of today by kind."""
    schemas = [json.loads(path.read_text("utf-8"))["$id"] for path in (ROOT / "schemas").iterdir()]
    page = (ROOT / "docs" / "findings.md").read_text("utf-8")
    codes = page[page.index("## Exit codes") :]
    formats = {
        found
        for path in (ROOT / "onnxjson").rglob("*.py")
        for found in re.findall(r'"(onnxjson(?:-[a-z]+)?/1)"', path.read_text("utf-8"))
    }
    return {
        "formats": sorted(formats),
        "schemas": sorted(schemas),
        "commands": sorted(COMMANDS),
        "edits": sorted(map(name_of, EDITS)),
        "findings": sorted(rule.code for rule in RULES),
        "exit codes": [f"{code} {meaning}" for code, meaning in _CODE.findall(codes)],
        "python": sorted(onnxjson.__all__),
    }


@pytest.mark.parametrize("kind", present())
def test_no_name_is_gone_and_new_ones_are_listed(kind: str) -> None:
    listed, there = set(json.loads(LISTS.read_text("utf-8"))[kind]), set(present()[kind])
    assert not listed - there, "these stay until 2.0 (docs/stability.md)"
    assert not there - listed, "new ones stay from now on: python -m tests.contracts.test_stability"


def test_each_error_has_an_exit_code_that_is_listed() -> None:
    listed = {int(each.split()[0]) for each in json.loads(LISTS.read_text("utf-8"))["exit codes"]}
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and hasattr(each, "exit_code")]
    assert {kind.exit_code for kind in kinds} <= listed


def test_the_page_names_what_the_lists_hold() -> None:
    page = (ROOT / "docs" / "stability.md").read_text("utf-8")
    for name in present()["formats"]:
        assert f'`"{name}"`' in page or f"`{name}`" in page or f"`-{name.removeprefix('onnxjson-')}`" in page, name
    for identifier in present()["schemas"]:
        assert re.fullmatch(r"urn:onnxjson:[a-z]+-1", identifier)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD, tmp_path / "old"))


def test_texts_of_0_1_0_are_read_and_written_as_they_were(old: Path) -> None:
    model = onnxjson.load(old / "digits.onnx.json")
    assert model == onnxjson.load(old / "digits.onnx")
    assert onnxjson.dumps(model).encode() == (old / "digits.onnx.json").read_bytes()
    result = run("convert", old / "digest.onnx.json", "--weights-from", old / "digits.onnx", "-o", old / "back.onnx")
    assert (result.exit_code, (old / "back.onnx").read_bytes()) == (0, (old / "digits.onnx").read_bytes())


def test_patches_and_scripts_of_0_1_0_apply(old: Path) -> None:
    model = onnxjson.load(old / "digits.onnx")
    leaky = Patch.load(old / "change.patch.json").apply(model)
    assert (leaky.graph.name, leaky.node("op:LeakyRelu").attributes["alpha"]) == ("leaky", pytest.approx(0.2))  # type: ignore[union-attr]
    assert run("apply", old / "script.json", old / "digits.onnx", "-o", old / "out.onnx").exit_code == 0
    assert onnxjson.load(old / "out.onnx").node("op:LeakyRelu").attributes["alpha"] == pytest.approx(0.2)


def test_conflicts_of_0_1_0_are_resolved(old: Path) -> None:
    assert run("conflicts", old / "conflict.onnx.json").exit_code == 16
    assert run("resolve", old / "conflict.onnx.json", "--theirs").exit_code == 0
    model: Any = onnxjson.load(old / "conflict.onnx.json")
    assert model.node("op:LeakyRelu").attributes["alpha"] == pytest.approx(0.3)


def test_traces_of_0_1_0_are_read(old: Path) -> None:
    trace = onnxjson.load_trace(old / "trace")
    assert trace.first == onnxjson.load(old / "digits.onnx")
    assert trace.last.node("op:LeakyRelu").attributes["alpha"] == pytest.approx(0.5)


if __name__ == "__main__":
    former = json.loads(LISTS.read_text("utf-8")) if LISTS.exists() else {}
    lists = {kind: sorted({*names, *former.get(kind, [])}) for kind, names in present().items()}
    LISTS.write_text(json.dumps(lists, indent=1, ensure_ascii=False) + "\n", "utf-8")
