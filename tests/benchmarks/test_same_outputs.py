"""The comparison of what two versions print and write, and the recording of it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from onnxjson.cli.group import onnxjson
from tests.benchmarks import same_outputs
from tests.benchmarks.output_cases import CHANGED, MODEL_SESSIONS
from tests.benchmarks.output_comparing import Verdict, compare, facts, verdict_of
from tests.benchmarks.output_names import names_of
from tests.benchmarks.output_pass_cases import GENERAL_SESSIONS, PASSES
from tests.benchmarks.output_recording import RULES, Recorder, Session, cases_of, spelled

MODEL = same_outputs.DEFAULT_MODELS / "branches_ts.onnx"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("wrote a.onnx (3.3 kB)\n", "a.onnx has been\nwritten: (3.3 kB)\n"),
        ('no node has op:Convx; did you mean "Conv"?', 'there is no node op:Convx. Perhaps "Conv"?'),
        ('[{"code": "a", "message": "it takes 2"}]', '[{"code": "a", "message": "2 are taken"}]'),
        ('{"notes": ["none is here"]}', '{"notes": ["there is none"]}'),
    ],
)
def test_other_words_with_the_same_numbers_and_names_are_wording(old: str, new: str) -> None:
    assert verdict_of(old, new) is Verdict.WORDING


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("wrote a.onnx (3.3 kB)", "wrote a.onnx (3.4 kB)"),
        ("wrote a.onnx", "wrote b.onnx"),
        ("  Conv  1\n  Relu  1", "  Relu  1\n  Conv  1"),
        ("Conv -> Relu", "Conv Relu"),
        ('[{"code": "a", "message": "it takes 2"}]', '[{"code": "a", "message": "it takes 3"}]'),
        ('[{"code": "one", "message": ""}]', '[{"code": "other", "message": ""}]'),
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}'),
        ('{"a": 1}', '{"a": true}'),
        ('{"a": [1]}', '{"a": [1, 1]}'),
        ('{"message": "x"}', "x"),
        (None, "x"),
        (None, None),
    ],
)
def test_other_numbers_names_structure_or_bytes_are_real_differences(old: str | None, new: str | None) -> None:
    assert verdict_of(old, new) is Verdict.DIFFERENT


def test_facts_are_numbers_names_signs_and_operators_in_their_order() -> None:
    assert facts("fused  MatMul+Add -> Gemm\n  at /fc, 2 nodes (x_1). If so, Add one.") == [
        "MatMul+Add", "->", "Gemm", "/fc", "2", "x_1",
    ]  # fmt: skip


def record(folder: Path, **changes: Any) -> Path:
    (folder / "texts").mkdir(parents=True)
    texts = {"1": "wrote a.onnx", "2": "a.onnx is written", "3": "wrote b.onnx"}
    for name, text in texts.items():
        (folder / "texts" / name).write_text(text, encoding="utf-8")
    case = {"line": "x", "seconds": 0.5, "exit": 0, "stdout": "1 12", "stderr": "1 12", "files": {}, "gone": []}
    cases = {"m/diff/one": {**case, **changes}, "m/edits/two": case}
    (folder / "cases").mkdir()
    (folder / "cases" / "all.json").write_text(json.dumps(cases), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("changes", "verdict", "code"),
    [
        ({"line": "y", "seconds": 0.9}, Verdict.EQUAL, 0),
        ({"stdout": "2 17"}, Verdict.WORDING, 0),
        ({"stdout": "3 12"}, Verdict.DIFFERENT, 1),
        ({"exit": 1}, Verdict.DIFFERENT, 1),
        ({"files": {"new.onnx": "8 9"}}, Verdict.DIFFERENT, 1),
        ({"gone": ["m.onnx"]}, Verdict.DIFFERENT, 1),
    ],
)
def test_records_are_compared_case_by_case(
    changes: dict[str, Any], verdict: Verdict, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = record(tmp_path / "old"), record(tmp_path / "new", **changes)
    comparison = compare(old, new)
    assert comparison.counts["edits"] == {Verdict.EQUAL: 4}
    assert comparison.counts["diff"][verdict] >= 1
    assert [(each.case, each.verdict) for each in comparison.differences] == (
        [] if verdict is Verdict.EQUAL else [("m/diff/one", verdict)]
    )
    assert same_outputs.main(["compare", str(old), str(new), "--wording"]) == code
    assert ("m/diff/one" in capsys.readouterr().out) is (verdict is not Verdict.EQUAL)


def test_a_case_that_only_one_side_has_is_a_real_difference(tmp_path: Path) -> None:
    old, new = record(tmp_path / "old"), record(tmp_path / "new")
    file = new / "cases" / "all.json"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("m/edits/two", "m/edits/three"), encoding="utf-8")
    assert [each.output for each in compare(old, new).differences] == ["not in the new record", "not in the old record"]


def test_new_spellings_reach_the_command_that_they_are_about() -> None:
    spellings = {"verify --level": "verify --optimization", "fmt": "format"}
    assert spelled("onnxjson verify a b --level all", spellings) == "onnxjson verify a b --optimization all"
    assert spelled("onnxjson run a --level all && onnxjson fmt b", spellings) == (
        "onnxjson run a --level all && onnxjson format b"
    )


def test_rules_take_times_out_and_leave_other_numbers() -> None:
    text = '{"seconds": 0.123, "p_seconds": 1.5e-05, "bytes": 1.5}\nopened in 24.5 ms, 3 nodes, 2 s'
    for rule in RULES:
        text = rule.pattern.sub(rule.replacement, text)
    assert text == '{"seconds": 0.0, "p_seconds": 0.0, "bytes": 1.5}\nopened in TIME, 3 nodes, TIME'


def test_two_records_of_a_session_are_equal(tmp_path: Path) -> None:
    lines = (
        CHANGED + "text: onnxjson convert a.onnx -o -\nmissing: onnxjson show none | cat\nquick: onnxjson run m.onnx"
    )
    session = Session("branches_ts/some", lines, MODEL, MODEL, names_of(MODEL, MODEL))
    for side in ("old", "new"):
        assert Recorder(tmp_path / side).run([session], jobs=1) == 9
    cases = json.loads((tmp_path / "new" / "cases" / "branches_ts.some.json").read_text(encoding="utf-8"))
    assert cases["branches_ts/some/make-a"]["files"].keys() == {"a.onnx"}
    assert cases["branches_ts/some/text"]["exit"] == 0
    found = compare(tmp_path / "old", tmp_path / "new")
    assert found.differences == []
    assert found.counts["some"].total() > 4 * 9


def test_every_case_has_a_name_of_its_own_and_a_line() -> None:
    for lines in (*GENERAL_SESSIONS.values(), *MODEL_SESSIONS.values(), PASSES):
        cases = list(cases_of(lines))
        assert len(dict(cases)) == len(cases)
        assert all(re.fullmatch(r"[a-z][a-z0-9-]*", name) and command for name, command in cases)
        assert [command for _, command in cases if re.search(r"\s[a-z][a-z0-9-]*: ", command)] == []  # a case within


def test_every_command_edit_and_pass_is_among_the_cases() -> None:
    sessions = (*GENERAL_SESSIONS.values(), *MODEL_SESSIONS.values(), PASSES)
    lines = "\n".join(spelled(command) for session in sessions for _, command in cases_of(session))
    edits = set(re.findall(r"^ *([a-z][a-z-]+)  +\S", printed("rewrite", "--list"), re.MULTILINE))
    assert len(edits) > 30
    assert {name for name in edits if f"rewrite {name} " not in lines} == set()
    passes = set(re.findall(r"^  ([a-z][a-z0-9-]+) ", printed("passes"), re.MULTILINE))
    assert "mixed-precision" in passes
    assert {name for name in passes if f"-p {name}" not in lines and f"{name}{{" not in lines} == set()
    commands = set(re.findall(r"^ *([a-z][a-z-]+)  +\S", printed("--help") + printed("help", "more"), re.MULTILINE))
    # help shows what --help shows.
    # tui needs a terminal, lsp and mcp a client, fleet workers; what doctor reports depends on the machine.
    not_recorded = {"help", "tui", "doctor", "fleet", "lsp", "mcp"}
    assert {name for name in commands if f"onnxjson {name}" not in lines} == not_recorded


def test_every_option_in_new_spelling_is_one_of_its_command() -> None:
    unknown = set()
    for session in (*GENERAL_SESSIONS.values(), *MODEL_SESSIONS.values(), PASSES):
        for name, line in cases_of(session):
            for piece in re.split(r"&&|\|\||[;|)]", spelled(line)):
                words = piece.partition("onnxjson ")[2].split()
                options = {word for word in words if re.fullmatch("--?[a-zA-Z][a-z-]*", word)}
                unknown |= {(name, option) for option in options - options_of(words)}
    assert unknown == {("wrong-option", "--formt"), ("no-edit", "-i")}  # mistakes on purpose


def options_of(words: list[str]) -> set[str]:
    """All spellings of the options of the command that a line begins with."""
    command: click.Command = onnxjson
    context = click.Context(command)
    for word in words:
        if not isinstance(command, click.Group) or (found := command.get_command(context, word)) is None:
            break
        command = found
    return {spelling for option in command.params for spelling in (*option.opts, *option.secondary_opts)}


def printed(*arguments: str) -> str:
    command = [sys.executable, "-m", "onnxjson", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
