"""Hand edits that go wrong: every one is answered with exactly the sentences of edits.toml."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from onnxjson.codecs.reading.exact_reader import locate, read
from onnxjson.model.errors import DecodeError, Finding
from onnxjson.model.operator_checks import check_model

FOLDER = Path(__file__).parent / "mistakes"
BASE = (FOLDER / "model.onnx.json").read_bytes()
EDITS: list[dict[str, Any]] = tomllib.loads((FOLDER / "edits.toml").read_text(encoding="utf-8"))["edit"]


def edited(edit: dict[str, Any]) -> bytes:
    if "keep_bytes" in edit:
        return BASE[: edit["keep_bytes"]]
    if "whole" in edit:
        return str(edit["whole"]).encode()
    old, new = edit["old"].encode(), edit["new"].encode(edit.get("encoding", "utf-8"))
    assert BASE.count(old) == 1, "the edit is of one place"
    return BASE.replace(old, new)


def findings(text: bytes) -> list[Finding]:
    """What the reader says, or, if it has nothing to say, what the nodes and their operators are like."""
    try:
        model, warnings = read(text, file="model.onnx.json")
    except DecodeError as error:
        return list(error.findings)
    findings = check_model(model, causes=True)
    places = locate(text, [finding.address for finding in findings])
    located = [
        msgspec.structs.replace(
            finding, file="model.onnx.json", line=places[finding.address][0], column=places[finding.address][1]
        )
        for finding in findings
    ]
    return [*warnings, *sorted(located, key=lambda finding: (finding.line, finding.column))]


def test_the_base_has_no_mistake() -> None:
    assert findings(BASE) == []


def test_there_are_more_than_seventy_edits_of_different_kinds() -> None:
    assert len(EDITS) > 70
    assert len({edit["name"] for edit in EDITS}) == len(EDITS)
    assert len({says.partition(":")[0] for edit in EDITS for says in edit["says"]}) > 35


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit["name"])
def test_the_edit_is_answered_with_these_sentences(edit: dict[str, Any]) -> None:
    found = findings(edited(edit))
    assert [f"{finding.code}: {finding}" for finding in found] == edit["says"]


@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit["says"]], ids=lambda edit: edit["name"])
def test_every_sentence_has_file_line_and_column(edit: dict[str, Any]) -> None:
    lines = edited(edit).decode("utf-8", "surrogateescape").split("\n")
    for finding in findings(edited(edit)):
        assert finding.file == "model.onnx.json"
        assert 1 <= finding.line <= len(lines)
        assert 1 <= finding.column <= len(lines[finding.line - 1]) + 1
