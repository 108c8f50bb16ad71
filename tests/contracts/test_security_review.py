"""The libraries that are installed are those that docs/security.md says were read."""

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.version import Version

from tests.contracts.library_calls import LIBRARIES, OUTSIDE, RECORD, calls, digest, scan, sources

_ROOT: Final = Path(__file__).parents[2]

PAGE: Final = (_ROOT / "docs" / "security.md").read_text(encoding="utf-8")
READ: Final = dict(re.findall(r"^\| `([\w.-]+)` \| ([0-9][\w.]*) \|", PAGE, re.MULTILINE))
"""Distributions and the versions that were read, as the page lists them."""

RECORDED: Final[dict[str, dict[str, Any]]] = json.loads(RECORD.read_text(encoding="utf-8"))

_DISTRIBUTIONS: Final = {"google.protobuf": "protobuf", "onnx_ir": "onnx-ir"}

_ADVICE: Final = "read what is new in it (python -m tests.contracts.library_calls), then correct docs/security.md"


def test_the_page_lists_every_library_of_the_sandboxed_process() -> None:
    assert set(READ) == {_DISTRIBUTIONS.get(each, each) for each in LIBRARIES}
    assert set(RECORDED) == set(LIBRARIES)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_installed_version_was_read(library: str) -> None:
    distribution = _DISTRIBUTIONS.get(library, library)
    installed = metadata.version(distribution)
    assert Version(installed) <= Version(READ[distribution]), f"{distribution} {installed} was not read; {_ADVICE}"
    if digest(sources(library).items()) != RECORDED[library]["sha256"]:  # older, of another platform, or patched
        assert scan(library)["calls"] == RECORDED[library]["calls"], _ADVICE


@pytest.mark.parametrize("distribution", sorted(READ))
def test_the_tests_install_no_version_that_was_not_read(distribution: str) -> None:
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"{distribution}<={READ[distribution]}" in settings["project"]["optional-dependencies"]["test"]


def test_what_is_recorded_is_what_a_scan_finds() -> None:
    assert scan("onnxslim")["calls"] == RECORDED["onnxslim"]["calls"]


@pytest.mark.parametrize("folder", OUTSIDE)
def test_the_page_names_what_is_not_searched(folder: str) -> None:
    assert f"`{folder}`" in PAGE


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("eval(a)", {"eval": 1}),
        ("def eval(a): re.compile(a); model.eval()", {}),
        ("pickle.load(a)\npickle.load(b)", {"pickle.load": 2}),
        ("sympy.floor(a) + sp.sympify(b)", {"sp.sympify": 1, "sympy.floor": 1}),
        ("np.load(a, allow_pickle=True)", {"np.load": 1}),
        ("os.system(a); subprocess.run(b); ctypes.CDLL(c)", {"ctypes.CDLL": 1, "os.system": 1, "subprocess.run": 1}),
        ("options.register_custom_ops_library(a)", {"options.register_custom_ops_library": 1}),
        ("importlib.import_module(a)", {"importlib.import_module": 1}),
        ("'''\n>>> eval(a)\n'''  # exec(b)", {}),
    ],
)
def test_a_scan_finds_calls_that_could_run_something(text: str, found: dict[str, int]) -> None:
    assert calls("some/module.py", text.encode()) == found
