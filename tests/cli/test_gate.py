"""``onnxjson gate``, and ``check`` with a policy."""

import json
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
from onnx import TensorProto, helper

import onnxjson
from onnxjson.rendering.markdown_reports import LARGEST
from tests.cli.running import run
from tests.editing.graphs import model_of
from tests.running.small_models import model

POLICY = """
format = "onnxjson-policy/1"
[rules]
select = ["ONJ101"]
error = ["ONJ101"]
[budgets]
nodes = "<= base"
"""

HOSTILE = "x|</details>`@me`::set-output name=a::b.onnx"


def _git(folder: Path, *words: str) -> None:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false", *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def _change_dims(source: Path, target: Path, size: int) -> None:
    run("rewrite", "set-dim", source, "N", f"{size}", "-o", target)


def _with_dead_node(source: Path, target: Path) -> None:
    run("rewrite", "add-node", source, "Relu", "-o", target, "--input", "image", "--output", "unused")
    assert target.exists()


@pytest.fixture
def repository(binary: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Models that are changed, renamed, deleted, added and broken between main and work, and a policy."""
    folder = binary.parent / "repository"
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    data = binary.read_bytes()
    for name in ("a.onnx", "b.onnx"):
        (folder / name).write_bytes(data)
    _change_dims(binary, folder / "moved.onnx", 3)
    (folder / "policy.toml").write_text(POLICY)
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "one")
    _git(folder, "checkout", "-q", "-b", "work")
    _with_dead_node(binary, folder / "a.onnx")
    (folder / HOSTILE).parent.mkdir()
    (folder / "moved.onnx").rename(folder / HOSTILE)
    (folder / "b.onnx").unlink()
    _change_dims(binary, folder / "new.onnx.json", 7)
    (folder / "broken.onnx").write_text("junk")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "-m", "two")
    monkeypatch.chdir(folder)
    return folder


def test_gate_judges_every_changed_model(repository: Path) -> None:
    out = repository.parent / "out"
    result = run("gate", "--base", "main", "--policy", "policy.toml", "-o", out)
    assert result.exit_code == 1
    data = json.loads((out / "gate.json").read_text())
    models = {each["name"]: each for each in data["models"]}
    assert {name: (each["status"], each["verdict"]) for name, each in models.items()} == {
        "a.onnx": ("changed", "fail"), "b.onnx": ("removed", "pass"), "broken.onnx": ("added", "fail"),
        "new.onnx.json": ("added", "pass"), HOSTILE: ("renamed", "pass"),
    }  # fmt: skip
    assert [each["code"] for each in models["a.onnx"]["findings"]] == ["ONJ101", "budget:nodes"]
    assert models["a.onnx"]["before"]["cost"]["macs"] == "2944*N"
    assert (data["format"], data["verdict"]) == ("onnxjson-gate/1", "fail")
    assert json.loads((out / "gate.sarif").read_text())["version"] == "2.1.0"


def test_texts_of_a_fork_cannot_leave_their_place(repository: Path) -> None:
    out = repository.parent / "out"
    run("gate", "--base", "main", "--policy", "policy.toml", "-o", out)
    text = (out / "gate.md").read_text()
    assert len(text) <= LARGEST
    outside = re.sub(r"(`+)(?:(?!\1).)+?\1(?!`)", "", text)
    assert "@me" not in outside
    assert "set-output" not in outside
    assert outside.count("<details>") == outside.count("</details>")
    assert "::set-output" not in "\n".join(line[:12] for line in text.splitlines())
    page = (out / "gate.html").read_text()
    assert "</details>`@me`" not in page
    assert page.count("<section") == page.count("</section>") == 5


def test_change_that_breaks_nothing_passes(repository: Path) -> None:
    out = repository.parent / "out"
    result = run("gate", "--base", "main", "--policy", "policy.toml", "-o", out, "new.onnx.json")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (
        0,
        "1 model changed.",
    )
    assert run("gate", "--base", "main", "-o", out, "policy.toml").exit_code in (0, 1)
    assert run("gate", "--base", "nowhere", "-o", out).exit_code == 66


@pytest.mark.parametrize("options", [["--base", ""], ["--base", " "], ["--base", "main", "--head", ""]])
def test_empty_revision_is_an_error_and_not_a_change_of_nothing(repository: Path, options: list[str]) -> None:
    result = run("gate", *options, "-o", repository.parent / "out")
    assert (result.exit_code, "it is empty; name a revision" in result.stderr) == (2, True)
    assert not (repository.parent / "out").exists()


def test_empty_path_without_a_base_is_an_error_of_use() -> None:
    result = run("gate", "")
    assert (result.exit_code, "--base is missing" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ("check", "a.onnx", "--select", "all", "--base", ""),
        ("check", "a.onnx", "--select", "all", "--new-since", ""),
        ("diff", "", "HEAD", "--", "a.onnx"),
        ("diff", "--git", "", "a.onnx"),
        ("diff", "--staged", ""),
        ("show", ""),
    ],
)
def test_empty_revision_is_an_error_of_every_command(repository: Path, words: tuple[str, ...]) -> None:
    result = run(*words)
    assert (result.exit_code, "empty" in result.stderr, result.stdout) == (2, True, "")


def test_changed_external_data_is_a_change_of_its_models(
    binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "repository"
    (folder / "deep").mkdir(parents=True)
    _git(folder, "init", "-q", "-b", "main")
    for name in ("ten.weigh", "longer name+.weights", "w"):
        place = folder / "deep" / f"{name}.onnx"
        run("convert", binary, "-o", place, "--externalize", "--threshold", "1000", "--data-file", name)
    run("convert", folder / "deep" / "w.onnx", "-o", folder / "deep" / "text.onnx.json")
    (folder / "other.onnx").write_bytes(binary.read_bytes())
    assert len(list((folder / "deep").iterdir())) == 7
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "one")
    for path in [each for each in (folder / "deep").iterdir() if ".onnx" not in each.name]:
        path.write_bytes(b"\x01" + path.read_bytes()[1:])
    (folder / "README.md").write_text("other.onnx")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "two")
    monkeypatch.chdir(folder)
    names = ["longer name+.weights.onnx", "ten.weigh.onnx", "text.onnx.json", "w.onnx"]
    shown = run("gate", "--base", "HEAD~1", "-o", tmp_path / "out").stdout
    assert re.findall(r"deep/(.*) changed", shown) == names
    assert "other.onnx" not in shown
    assert (tmp_path / "out" / "gate.md").read_text().count("only weights changed, those of 1 `Gemm`") >= 4
    shown = run("gate", "--base", "HEAD~1", "-o", tmp_path / "out", "deep/w.onnx").stdout
    assert shown.count(" changed: 0 errors") == 1
    _git(folder, "reset", "-q", "--soft", "HEAD~1")
    assert json.loads(run("diff", "--staged", "--json").stdout)["files"][1]["new"] == ":deep/ten.weigh.onnx"
    _git(folder, "reset", "-q")
    assert len(json.loads(run("diff", "--git", "--json").stdout)["files"]) == 4


def test_a_model_that_git_cannot_read_is_not_taken_for_unchanged(
    binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``git grep`` exits with 1 for a missing object, as when it finds nothing."""
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    run("convert", binary, "-o", folder / "m.onnx", "--externalize", "--threshold", "1000", "--data-file", "w")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "one")
    (folder / "w").write_bytes(b"\x01" + (folder / "w").read_bytes()[1:])
    _git(folder, "commit", "-q", "-a", "-m", "two")
    monkeypatch.chdir(folder)
    blob = subprocess.run(["git", "rev-parse", "HEAD:m.onnx"], capture_output=True, text=True, check=True).stdout
    (folder / ".git" / "objects" / blob[:2] / blob[2:].strip()).unlink()
    result = run("diff", "HEAD~1..HEAD")
    assert (result.exit_code, result.stdout) == (74, "")
    assert "unable to read" in result.stderr


def test_check_runs_rules_and_budgets_of_a_policy(repository: Path) -> None:
    result = run("check", "a.onnx", "--policy", "policy.toml")
    assert result.exit_code == 1
    assert "a.onnx: /graph/node/0: error[ONJ101]: " in result.stdout
    assert "warning[budget:nodes]" in result.stdout
    result = run("check", "a.onnx", "--policy", "policy.toml", "--new-since", "main", "--json")
    assert [each["code"] for each in json.loads(result.stdout)] == ["ONJ101", "budget:nodes"]
    result = run("check", "a.onnx", "--policy", "policy.toml", "--base", "a.onnx", "--format", "github")
    assert result.stdout.startswith("::error file=a.onnx,title=onnxjson ONJ101::")
    assert run("check", "a.onnx", "--select", "ONJ101", "--new-since", "work").exit_code == 0


def test_check_fixes_what_has_an_edit_and_reports_the_rest(repository: Path) -> None:
    result = run("check", "a.onnx", "--policy", "policy.toml", "--fix", "--new-since", "main")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "onnxjson undo-save" in result.stderr
    assert run("check", "a.onnx", "--select", "ONJ101").stdout == ""


def test_place_of_a_finding_in_a_text_is_its_line(text: Path) -> None:
    result = run("check", text, "--select", "ONJ203")
    assert re.match(re.escape(str(text)) + r":[0-9]+:[0-9]+: warning\[ONJ203\]: 5 values", result.stdout)


def test_rule_is_explained() -> None:
    assert run("check", "--explain", "ONJ101").stdout.splitlines() == [
        'ONJ101  no output depends on the node "..."',
        "family    structure",
        "severity  warning",
        "hint      remove it",
        'fix       {"edit": "prune"}',
    ]
    assert run("check", "--explain", "ONJ999").exit_code == 2


def test_options_that_need_others_are_refused(binary: Path) -> None:
    assert run("check").exit_code == 2
    assert run("check", binary, "--fix").exit_code == 2
    assert run("check", binary, "--select", "nothing").exit_code != 0
    assert run("check", binary, "--select", "all", "--base", "nowhere").exit_code != 0


def test_schema_of_policies_is_printed() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(run("schema", "policy").stdout))


def test_models_run_only_for_budgets_of_time_and_difference(binary: Path, tmp_path: Path) -> None:
    changed, policy = tmp_path / "changed.onnx", tmp_path / "policy.toml"
    run("rewrite", "set-attribute", binary, "/activation", "alpha", "0.5", "-o", changed)
    policy.write_text(
        'format = "onnxjson-policy/1"\n[rules]\nselect = []\n[budgets]\nlatency = "<= 60"\ndifference = "<= 1e-6"\n'
    )
    result = run("check", changed, "--policy", policy, "--base", binary, "--json")
    assert [each["code"] for each in json.loads(result.stdout)] == ["budget:difference"]
    assert run("check", binary, "--policy", policy, "--base", binary).exit_code == 0
    result = run("check", binary, "--policy", policy)
    assert (
        "warning[budget:difference]: largest difference of an output from that of the base: not known" in result.stdout
    )


def test_gate_says_what_it_could_not_compare(binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = binary.parent / "repository"
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    for number, branch in enumerate(("main", "work")):
        nodes = [
            helper.make_node(*each) for each in (("Exp", ["x"], ["e"]), ("Neg", ["e"], ["n"]), ("Log", ["n"], ["y"]))
        ]
        nodes[0].doc_string = str(number)
        onnxjson.save(model(nodes, {"x": (TensorProto.FLOAT, ["N", 4])}, ["y"]), folder / "a.onnx")
        _git(folder, "checkout", "-q", "-B", branch)
        _git(folder, "add", ".")
        _git(folder, "commit", "-q", "-m", branch)
    monkeypatch.chdir(folder)
    run("gate", "--base", "main", "-o", folder / "out")
    assert '❔ not compared: `nothing of "y" could be compared`' in (folder / "out" / "gate.md").read_text()


def test_gate_compares_outputs_and_lists_what_git_lfs_did_not_fetch(
    binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = binary.parent / "repository"
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    for name in ("a.onnx", "b.onnx"):
        (folder / name).write_bytes(binary.read_bytes())
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "one")
    _git(folder, "checkout", "-q", "-b", "work")
    run("rewrite", "set-attribute", binary, "op:LeakyRelu", "alpha", "0.7", "-o", folder / "a.onnx")
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12\n"
    (folder / "b.onnx").write_text(pointer)
    _git(folder, "commit", "-q", "-a", "-m", "two")
    monkeypatch.chdir(folder)
    (folder / "policy.toml").write_text(POLICY.replace('["ONJ101"]\n[budgets]', '["outputs-differ"]\n[budgets]'))
    result = run("gate", "--base", "main", "-o", folder / "out", "--policy", "policy.toml")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("FAIL  a.onnx changed: 1 error, 0 warnings; outputs differ in ")
    assert lines[1].startswith("pass  b.onnx changed: 0 errors, 1 warning")
    page = (folder / "out" / "gate.html").read_text()
    assert page.index("✗ <a") < page.index("⚠ <a")
    text = (folder / "out" / "gate.md").read_text()
    differs = 'differ in . of 3 runs with N = [0-9, ]+: `"probabilities" by up to [0-9.e-]+, [0-9.e-]+ % of the'
    assert re.search(f"⚠️ {differs}", text)
    assert "is a Git LFS pointer to 12 bytes that are not here" in text
    run("gate", "--base", "main", "-o", folder / "out", "--verify-seconds", "0.001")
    assert "❔ not compared: " in (folder / "out" / "gate.md").read_text()
    run("gate", "--base", "main", "-o", folder / "out", "--verify-seconds", "0")
    assert "Outputs were not compared." in (folder / "out" / "gate.md").read_text()
    run("convert", binary, "-o", folder / "c.onnx", "--externalize", "--threshold", "1000", "--data-file", "c.data")
    (folder / "c.data").write_text(pointer)
    _git(folder, "add", "c.onnx", "c.data")
    _git(folder, "commit", "-q", "-m", "three")
    result = run("gate", "--base", "HEAD~1", "-o", folder / "out")
    assert (result.exit_code, "c.data, which HEAD:c.onnx names" in (folder / "out" / "gate.md").read_text()) == (
        0,
        True,
    )


def _interface_repository(folder: Path, count: int) -> None:
    """Models whose output is renamed, whose batch gets a fixed size, and of which one attribute changes."""
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    for names, alpha, size in ((("x", "y"), 0.1, 1), (("x", HOSTILE_NAME), 0.2, "N")):
        for number in range(count):
            nodes = [
                helper.make_node("LeakyRelu", ["x"], ["a"], alpha=alpha),
                helper.make_node("Exp", ["a"], [names[1]]),
            ]
            changed = model(nodes, {"x": (TensorProto.FLOAT, [size, 4])}, [names[1]])
            onnxjson.save(changed, folder / f"m{number}.onnx")
        _git(folder, "checkout", "-q", "-B", "main" if size == 1 else "work")
        _git(folder, "add", ".")
        _git(folder, "commit", "-q", "-m", "one")


HOSTILE_NAME = "y|`@me`</td>::error::"


def test_comment_names_the_interface_first_and_twenty_models_fit_sixty_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "repository"
    _interface_repository(folder, 20)
    monkeypatch.chdir(folder)
    result = run("gate", "--base", "main", "--verify-seconds", "0", "--format", "markdown")
    text = result.stdout
    assert (result.exit_code, text.count("\n") <= 60, "<details" in text) == (0, True, False)
    (row,) = [line for line in text.splitlines() if line.startswith("| ⚠️ | `m7.onnx`")]
    breaking = row.index("**breaking**: output `y` renamed to ``y\\u{7c}`@me`</td>::error::``")
    assert breaking < row.index("input `x`: axis 0 made variable, `1` -> `N`") < row.index("not compared")
    assert "`LeakyRelu.alpha 0.1 -> 0.2`" in text
    outside = re.sub(r"(`+)(?:(?!\1).)+?\1(?!`)", "", text)
    assert ("@me" in outside, "::error" in outside, "</td>" in outside) == (False, False, False)
    Path("policy.toml").write_text('format = "onnxjson-policy/1"\n[rules]\nerror = ["interface-breaking"]\n')
    result = run("gate", "--base", "main", "--verify-seconds", "0", "--policy", "policy.toml", "--json", "m1.onnx")
    (found,) = json.loads(result.stdout)["models"]
    assert (result.exit_code, found["verdict"]) == (1, "fail")
    assert [each["breaking"] for each in found["interface"]] == [True, False]
    found = json.loads(run("check", "m1.onnx", "--policy", "policy.toml", "--new-since", "main", "--json").stdout)
    severities = {each["code"]: each["severity"] for each in found}
    assert (severities["interface-breaking"], severities["interface-compatible"]) == ("error", "warning")


def test_outputs_are_compared_by_default_and_renamed_ones_are_paired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "repository"
    _interface_repository(folder, 1)
    monkeypatch.chdir(folder)
    run("gate", "--base", "main", "-o", tmp_path / "out")
    text = (tmp_path / "out" / "gate.md").read_text()
    assert "(at most 30 s a model)" in text
    assert re.search(r"⚠️ differ in \d of 3 runs[^:]*: `\"y\" by up to ", text)
    page = (tmp_path / "out" / "gate.html").read_text()
    rows, _, section = page.partition("<section")
    assert all('<p class="verdict bad">outputs differ in ' in part for part in (rows, section))
    assert "**breaking**: output `y` renamed to ``y" in text
    assert (
        "<br><b>compatible</b>: input <code>x</code>: axis 0 made variable, <code>1</code> -&gt; <code>N</code>"
        "<br><code>LeakyRelu.alpha 0.1 -&gt; 0.2</code>"
    ) in page
    (found,) = json.loads((tmp_path / "out" / "gate.json").read_text())["models"]
    assert (found["outputs"]["verdict"], found["outputs"]["largest"] > 0) == ("different", True)


_FIXED = "g (float[%s,4] x) => (float[%s,2,2] y) <int64[3] s = {1, 2, 2}> { y = Reshape(x, s) }"
_UNSEEN = "g (float[4,4] x) => (float[4,4] y) <float[4,4] w = {%s}, float s = {0}> { a = Mul(w, s) y = Add(x, a) }"


@pytest.mark.parametrize(
    ("base", "head", "words"),
    [
        (_FIXED % ("1", "1"), _FIXED % ("N", "N"), "N = 1, but the head did not run with N = 2: `"),
        *[
            (_UNSEEN % ", ".join(["1"] * 16), _UNSEEN % ", ".join([new] * 16), words)
            for new, words in (("2", "3 runs, although weights changed: `compare with real inputs`"), ("1", "3 runs |"))
        ],
    ],
)
def test_equal_outputs_that_do_not_show_the_change_are_doubted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str, head: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _git(tmp_path, "init", "-q", "-b", "main")
    for branch, text in (("main", base), ("work", f"h{head[1:]}")):
        _git(tmp_path, "checkout", "-q", "-B", branch)
        onnxjson.save(model_of(text), tmp_path / "m.onnx")
        _git(tmp_path, "add", ".")
        _git(tmp_path, "commit", "-q", "-m", branch)
    comment = run("gate", "--base", "main", "--format", "markdown").stdout
    assert "identical in 3 runs" in comment
    assert words in comment
    assert comment.startswith("### ⚠️ ") == ("|" not in words)


def test_former_option_is_an_error_that_names_the_new_one(repository: Path) -> None:
    result = run("gate", "--base", "main", "--out", "x")
    assert (result.exit_code, "--out is now -o" in result.stderr) == (2, True)
