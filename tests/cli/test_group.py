"""What holds for every command."""

import errno
import os
import signal
import subprocess
from pathlib import Path

import click
import pytest

from onnxjson.cli import failures, output, overview
from onnxjson.cli.group import onnxjson
from onnxjson.model import errors
from onnxjson.model.foreign_words import WORDS
from tests.cli.running import command_line, run, run_process
from tests.schemas import text_of


def test_help_lists_every_command_once_in_its_section() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for section, entries in overview.SECTIONS.items():
        assert f"{section}:" in result.stdout
        for entry in entries:
            assert result.stdout.count(entry.summary) == 1
    shown = [entry for entries in overview.SECTIONS.values() for entry in entries]
    assert len(shown) <= 24
    assert all(len(entries) <= 7 for entries in overview.SECTIONS.values())
    assert result.stdout.isascii()


def test_help_more_lists_the_other_commands() -> None:
    shown = run("help", "more").stdout
    assert all(f"{entry.name} " in shown and entry.summary in shown for entry in overview.OTHERS)
    assert run("help") == run()
    assert run("help", "rewrite", "rename") == run("rewrite", "rename", "--help")


def test_help_fits_80_columns() -> None:
    for arguments in ([], *([name] for name in overview.COMMANDS)):
        assert max(map(len, run(*arguments, "--help").stdout.splitlines())) <= 80, arguments


def test_no_command_prints_the_help() -> None:
    assert run() == run("--help")


def test_short_option_is_help_too() -> None:
    assert run("convert", "-h") == run("convert", "--help")


def test_version_names_the_program() -> None:
    import onnxjson

    assert run("--version").stdout == f"onnxjson {onnxjson.__version__}\n"


def test_wrong_command_names_the_nearest() -> None:
    result = run("covert")
    assert result.exit_code == 2
    assert (
        result.stderr
        == "onnxjson: error[2]: there is no command 'covert'; write `onnxjson convert`; see `onnxjson --help`\n"
    )


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("info", "`onnxjson show`"),
        ("cat", "`onnxjson show`"),
        ("simplify", "`onnxjson optimize MODEL -p onnxsim -o OUT`"),
        ("fuse", "`onnxjson optimize MODEL -p onnxsim -o OUT`"),
        ("validate", "`onnxjson check`"),
        ("compare", "`onnxjson diff` or `onnxjson verify`"),
        ("rename", "`onnxjson rewrite rename`"),
        ("infer-shapes", "`onnxjson rewrite infer-shapes`"),
        ("onnxsim", "`onnxjson optimize MODEL -p onnxsim -o OUT`"),
        ("m.onnx", "`onnxjson show m.onnx`, `onnxjson tui m.onnx` or `onnxjson edit m.onnx`"),
    ],
)
def test_words_that_are_typed_for_a_command_lead_to_it(word: str, meant: str) -> None:
    result = run(word)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert meant in result.stderr


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("verify a.onnx b.onnx --rtol 0.1", "write --tolerance all=0.1"),
        ("verify a.onnx b.onnx --atol=0.1", "write --tolerance all=0,0.1"),
        ("convert m.onnx --opset 20 -o n.onnx", "write `onnxjson rewrite convert-opset m.onnx 20 -o n.onnx`"),
        ("optimize m.onnx --half -o n.onnx", "write -p float16"),
        ("simplify m.onnx s.onnx", "write `onnxjson optimize m.onnx -p onnxsim -o s.onnx`"),
        ("quantize m.onnx -o q.onnx", "write `onnxjson optimize m.onnx -p quantize-dynamic -o q.onnx`"),
        ("patch a.onnx b.onnx -o p.json", "write `onnxjson diff --format patch a.onnx b.onnx -o p.json`"),
        ("diff a.onnx b.onnx --patch", "write --format patch"),
        ("run m.onnx -i x.npy", "write --input x.npy"),
        ("run m.onnx x.npy", "to give an array as input write --input x.npy"),
        ("show m.onnx --values", "write --values N; see `onnxjson show --help`"),
        ("merge a.onnx b.onnx c.onnx", "write onnxjson merge a.onnx b.onnx c.onnx -o OUT"),
        ("git diff", "write `onnxjson git install`"),
        ("run m.onnx --gpu", "write --provider cuda"),
        ("diff a.onnx b.onnx --html r.html", "write -o report.html"),
        ("convert m.onnx --format json", "write --to"),
        ("optimize m.onnx --onnxsim -o s.onnx", "write -p onnxsim"),
        ("optimize m.onnx onnxsim -o s.onnx", "write -p onnxsim"),
        ("run m.onnx --shape 1,3,8,8", "write NAME=1,3,8,8"),
        ("rewrite remove-node m.onnx x -o n.onnx", '"delete-node"'),
        ("rewrite shape-inference m.onnx", 'did you mean "infer-shapes"'),
        ("rewrite dce m.onnx", 'did you mean "prune"'),
        ("rewrite simplify m.onnx", "write `onnxjson optimize m.onnx -p onnxsim -o OUT`"),
        ("optimize m.onnx -p dce -o n.onnx", 'did you mean "prune"'),
        ("optimize m.onnx --dce -o n.onnx", "write -p prune"),
        ("show m.onnx --set-dim N=1", "an edit does this: `onnxjson rewrite set-dim --help`"),
        ("rewrite set-attribute m.onnx --attr x", "No such option '--attr'; see"),
        ("show --list m.onnx", "write `onnxjson show m.onnx 'op:*'`"),
        ("delete m.onnx x", "write `onnxjson rewrite delete-node m.onnx x`"),
        ("rewrite m.onnx prune -o n.onnx", "onnxjson rewrite prune m.onnx -o n.onnx"),
    ],
)
def test_options_and_edits_of_other_programs_lead_to_those_of_this_one(line: str, meant: str) -> None:
    result = run(*line.split())
    assert result.exit_code == 2
    assert meant in result.stderr


def test_a_second_file_is_answered_with_how_to_name_the_one_to_write() -> None:
    said = run("convert", "m.onnx", "m.onnx.json")
    assert said.exit_code == 2
    assert "name the file to write with -o" in said.stderr
    assert "-o" not in run("check", "--nope").stderr


@pytest.mark.parametrize("command", ["tensor", "git"])
def test_a_group_without_words_prints_its_help(command: str) -> None:
    said = run(command)
    assert (said.exit_code, said.stdout) == (2, "")
    assert said.stderr == run(command, "--help").stdout


def test_command_like_no_other_names_the_help() -> None:
    assert run("xyzzy").stderr == "onnxjson: error[2]: there is no command 'xyzzy'; see `onnxjson --help`\n"


def test_a_word_of_other_programs_has_one_meaning_here() -> None:
    tables = [{*" ".join(WORDS[kind].values()).split()} for kind in ("command", "pass", "edit")]
    assert [tables[0] & tables[1], tables[0] & tables[2], tables[1] & tables[2]] == [set(), set(), set()]


def test_every_command_that_is_suggested_is_one() -> None:
    for command in WORDS["command"]:
        name, *rest = command.split()
        assert name in overview.COMMANDS
        assert run(name, *[word for word in rest if word.islower() and word[0] != "-"], "--help").exit_code == 0


@pytest.mark.parametrize("arguments", [["convert"], ["convert", "--nope"], ["check"], ["schema", "--x"], ["--nope"]])
def test_wrong_usage_is_one_line_with_code_2_and_where_to_look(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("onnxjson: error[2]: ")
    assert result.stderr.endswith(" --help`\n")
    assert result.stderr.count("\n") == 1


ERRORS = [error for error in vars(errors).values() if isinstance(error, type) and issubclass(error, Exception)]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_error_of_the_package_ends_with_its_own_code(
    error: type[errors.OnnxJsonError], capsys: pytest.CaptureFixture[str]
) -> None:
    failure = error("what, where, what to do", 3) if error is errors.WireError else error("what, where, what to do")
    assert failures.report_failure(failure) == error.exit_code
    assert capsys.readouterr().err.startswith(f"onnxjson: error[{error.exit_code}]: what, where, what to do")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FileNotFoundError(2, "No such file", "m.onnx"), 66),
        (PermissionError(13, "Permission denied", "m.onnx"), 77),
        (OSError(28, "No space left on device"), 74),
        (MemoryError(), 71),
        (ValueError("odd"), 70),
        (RecursionError("deep"), 70),
        (click.UsageError("no"), 2),
        (click.Abort(), 130),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_other_error_has_a_code(error: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert failures.report_failure(error) == code
    assert capsys.readouterr().err.count("\n") == 1


def test_mistake_of_the_program_asks_for_a_report_and_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxjson.cli.program.output.stdout", None)
    result = run("schema")
    assert result.exit_code == 70
    assert "Traceback" not in result.stderr
    assert "please report it" in result.stderr
    assert "ONNXJSON_DEBUG=1" in result.stderr


def test_debugging_shows_the_traceback_of_a_mistake_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxjson.cli.program.output.stdout", None)
    monkeypatch.setenv("ONNXJSON_DEBUG", "1")
    result = run("schema")
    assert result.exit_code == 70
    assert "TypeError" in result.stderr.partition("Traceback")[2].partition("error[70]")[0]


def test_hostile_file_name_cannot_move_the_cursor(tmp_path: Path) -> None:
    result = run("check", tmp_path / "\x1b[2Jm\u202e.onnx")
    assert result.exit_code == 66
    assert "\x1b" not in result.stderr
    assert "\u202e" not in result.stderr
    assert r"\u{1b}[2Jm\u{202e}.onnx" in result.stderr


def test_line_is_one_line_whatever_it_holds() -> None:
    assert output.line("a\nb\x00\ud800é") == r"a\u{a}b\u{0}\u{d800}é"


def test_python_m_is_the_same_program(tmp_path: Path) -> None:
    assert run_process("--help", folder=tmp_path).stdout.split() == run("--help").stdout.split()


def test_reader_that_goes_away_is_no_failure() -> None:
    command = " ".join(command_line("schema"))
    shell = f"set -o pipefail; {command} | true; echo ${{PIPESTATUS[0]}}"
    codes = set()
    for _ in range(3):
        result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False, timeout=60)
        assert result.stderr == ""
        codes.add(result.stdout.strip())
    assert codes <= {"0", "141"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_full_disk_behind_standard_output_is_code_74() -> None:
    with open("/dev/full", "wb") as full:
        result = subprocess.run(command_line("schema"), stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert result.returncode == 74
    assert result.stderr.startswith(b"onnxjson: error[74]: ")
    assert result.stderr.count(b"\n") == 1


def test_closed_standard_output_is_code_73() -> None:
    shell = f"{' '.join(command_line('schema'))} >&-"
    result = subprocess.run(["bash", "-c", shell], stderr=subprocess.PIPE, check=False, timeout=60)
    assert result.returncode == 73
    assert result.stderr.startswith(b"onnxjson: error[73]: standard output is closed")


def test_control_c_is_code_130(tmp_path: Path) -> None:
    fifo_code = (
        "import time, onnxjson.storage.files\n"
        "def wait(*a, **k):\n    print('waiting', flush=True); time.sleep(60)\n"
        "onnxjson.storage.files.load = wait\n"
        "from onnxjson.cli import main\n"
        "import sys; sys.argv = ['onnxjson', 'check', 'm.onnx']\n"
        "main()"
    )
    words = [command_line()[0], "-I", "-c", fifo_code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"waiting\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in stderr


def test_an_exit_with_a_text_prints_it() -> None:
    code = (
        "import sys, onnxjson.cli as cli, onnxjson.cli.group as group\n"
        "sys.argv = ['onnxjson', 'check']\n"
        "group.onnxjson.main = lambda **_: sys.exit('no such thing')\n"
        "cli.main()"
    )
    words = [command_line()[0], "-I", "-c", code]
    result = subprocess.run(words, stderr=subprocess.PIPE, check=False, timeout=60)
    assert (result.returncode, result.stderr) == (1, b"no such thing\n")


def test_terminal_without_the_characters_gets_escapes(tmp_path: Path) -> None:
    words = [command_line()[0], "-m", "onnxjson", "check", str(tmp_path / "é€.onnx")]
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    result = subprocess.run(words, env=environment, stderr=subprocess.PIPE, check=False, timeout=60)
    assert result.returncode == 66
    assert b"\xe9\\u20ac.onnx" in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_calls_the_program(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_ONNXJSON_COMPLETE" in result.stdout


def test_shell_completes_commands_and_options() -> None:
    more = {"_ONNXJSON_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    assert "plain,convert" in run_process(more=more | {"COMP_WORDS": "onnxjson con"}).stdout
    more["COMP_CWORD"] = "2"
    assert "plain,--lossy" in run_process(more=more | {"COMP_WORDS": "onnxjson convert --lo"}).stdout


def test_schema_prints_the_document_schema() -> None:
    assert run("schema").stdout == run("schema", "document").stdout == text_of("document")


def test_schema_of_an_unknown_kind_names_the_known_ones() -> None:
    assert "document" in run("schema", "nonsense").stderr


CLOSED = {"<&-": "input", ">&-": "output", "2>&-": "errors", ">&- 2>&-": "both", "<&- >&- 2>&-": "all"}


@pytest.mark.parametrize("closed", CLOSED, ids=CLOSED.values())
@pytest.mark.parametrize("command", ["convert", "fmt", "check", "result"])
def test_closed_streams_are_nobody_who_listens(command: str, closed: str, binary: Path) -> None:
    assert run("convert", binary).exit_code == 0
    arguments = {
        "convert": ("convert", binary, "-o", binary.with_name("new.onnx")),
        "fmt": ("fmt", binary.with_name("digits.onnx.json")),
        "check": ("check", binary),
        "result": ("convert", binary, "-o", "-"),
    }[command]
    words = ["sh", "-c", f'exec "$@" {closed}', "sh", *command_line(*arguments)]
    code = subprocess.run(words, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    assert code == (73 if command == "result" and ">&-" in closed.replace("2>&-", "") else 0)
    if command == "convert":
        assert binary.with_name("new.onnx").read_bytes() == binary.read_bytes()


def test_a_system_that_opens_no_more_files_is_an_error_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(output, "make_robust", full)
    monkeypatch.setattr(failures, "unprintable", full)
    with pytest.raises(SystemExit) as caught:
        onnxjson.main(["--version"])
    assert caught.value.code == 74
    assert capsys.readouterr().err == "onnxjson: error[74]: Too many open files; the system opens no more files\n"
