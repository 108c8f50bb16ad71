"""What an import costs: heavy packages are loaded by what needs them and by nothing else."""

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import onnxjson
from onnxjson.cli.overview import COMMANDS

HEAVY = {"numpy", "onnx", "onnxruntime", "textual", "ml_dtypes", "deepdiff", "rich", "google"}


def _modules() -> list[str]:
    found = pkgutil.walk_packages([str(Path(onnxjson.__file__).parent)], "onnxjson.")
    return sorted(module.name for module in found if not module.name.endswith("__main__"))


def _loaded_by(statement: str) -> set[str]:
    """The top-level modules that a fresh Python holds after `statement`."""
    code = (
        f"{statement}\nimport sys, json\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    )
    result = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded: list[str] = json.loads(result.stdout.splitlines()[-1])
    return set(loaded)


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not _loaded_by("import onnxjson") & (HEAVY | {"click", "msgspec", "pybase64", "orjson"})


def test_importing_every_module_of_the_text_path_loads_nothing_heavy() -> None:
    # The package mcp, which strict_tools extends, loads click.
    heavy = ("onnxjson.cli", "onnxjson.diffing.matching.", "onnxjson.serving.strict_tools")
    light = [name for name in _modules() if not name.startswith(heavy)]
    assert not _loaded_by("\n".join(f"import {name}" for name in light)) & (HEAVY | {"click"})


def test_importing_every_command_loads_nothing_heavy() -> None:
    commands = [name for name in _modules() if name.startswith("onnxjson.cli")]
    assert not _loaded_by("\n".join(f"import {name}" for name in commands)) & HEAVY


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["nonsense"], ["completion", "bash"]])
def test_help_imports_no_codec(arguments: list[str]) -> None:
    statement = (
        f"import onnxjson.cli.group\ntry: onnxjson.cli.group.onnxjson.main({arguments!r})\nexcept SystemExit: pass"
    )
    # The help is printed without the records too; other lines may be errors, which are records. An unknown word is
    # looked for among the edits and passes.
    codecs = set() if "nonsense" in arguments else {"pybase64", "orjson"}
    assert not _loaded_by(statement) & (HEAVY | codecs | ({"msgspec"} if "--help" in arguments else set()))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_loads_nothing_heavy(name: str) -> None:
    call = f"onnxjson.cli.group.onnxjson.main([{name!r}, '--help'])"
    statement = f"import onnxjson.cli.group\ntry: {call}\nexcept SystemExit: pass"
    assert not _loaded_by(statement) & HEAVY


def test_a_binary_that_replaces_another_is_proven_without_numpy_and_onnx(tmp_path: Path) -> None:
    path = str(tmp_path / "m.onnx")
    statement = (
        "import onnxjson\n"
        'model = onnxjson.loads(\'{"format": "onnxjson/1", "ir_version": 8, "graph": {"name": "g"}}\')\n'
        f"for _ in range(2): onnxjson.save(model, {path!r})"
    )
    loaded = _loaded_by(statement)
    assert not loaded & {"numpy", "onnx"}


def test_text_to_binary_and_back_needs_neither_numpy_nor_onnx(tmp_path: Path) -> None:
    text = tmp_path / "m.onnx.json"
    small = [{"name": f"w{each}", "type": "float32[16]", "values": [each / 7] * 16} for each in range(50)]
    text.write_text(json.dumps({"format": "onnxjson/1", "ir_version": 8, "graph": {"name": "g", "initializer": small}}))
    statement = (
        f"import onnxjson\nmodel = onnxjson.load({str(text)!r})\nonnxjson.save(model, {str(tmp_path / 'm.onnx')!r})\n"
        f"onnxjson.dumps(onnxjson.load({str(tmp_path / 'm.onnx')!r}))"
    )
    assert not _loaded_by(statement) & (HEAVY | {"click"})
