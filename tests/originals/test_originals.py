"""The jobs of the original tools, done by onnxjson; judges that can fail; and the page with the results."""

from pathlib import Path

import onnx
import pytest
from onnx.parser import parse_model

from tests.cli.running import run as onnxjson
from tests.originals.__main__ import ALL, Done, Row, Verdict, cell, commands, judged, plain, run, table
from tests.originals.comparing import agree
from tests.originals.environment import TOOLS
from tests.originals.jobs import JOBS, Job
from tests.originals.judging import Outcome, WrongError, require

ROOT = Path(__file__).parent.parent.parent

SIMPLE = (
    "sed", "ssc", "scs", "sog", "sam", "soc", "scc", "sna", "sbi", "sor", "soa", "sod", "ssi", "sit", "sio", "svs",
    "sng", "snc", "sne", "snd",
)  # fmt: skip
OTHERS = ("onnx2json", "json2onnx", "onnxoptimizer", "onnxsim", "onnxslim")


def _called(job: Job) -> str:
    return f"{job.tool}: {job.what}"


@pytest.mark.parametrize("job", ALL, ids=_called)
def test_onnxjson_does_the_job(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    job.make(tmp_path)
    results = []
    for words in commands(job, ()):
        results.append(onnxjson(*words))
        if results[-1].exit_code:
            break
    output = "".join([each.stdout + each.stderr for each in results])
    assert judged(job, Outcome(results[-1].exit_code, output, tmp_path)) == Verdict("works"), output


def test_a_job_is_done_by_processes(tmp_path: Path) -> None:
    JOBS[0].make(tmp_path)
    assert run(JOBS[0], tmp_path, commands(JOBS[0])) == Verdict("works")


@pytest.mark.parametrize("job", ALL, ids=_called)
def test_a_job_that_is_not_done_is_noticed(job: Job, tmp_path: Path) -> None:
    job.make(tmp_path)
    assert judged(job, Outcome(0, "", tmp_path)).word == "wrong"
    (tmp_path / "out.onnx").write_bytes(b"")
    assert judged(job, Outcome(0, "", tmp_path)).word == "wrong"


def test_every_tool_has_jobs_and_an_environment() -> None:
    installed = {each for tools in TOOLS.values() for each in tools}
    assert {*[f"{each}4onnx" for each in SIMPLE], *OTHERS} <= {job.tool for job in ALL} <= installed


def _model(body: str, names: str = "x y") -> onnx.ModelProto:
    x, y = names.split()
    return parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g (float[N,2] {x}) => (float[N,2] {y}) {{{body}}}')


def test_models_agree_in_their_graphs_or_outputs() -> None:
    one, named = _model("t = Abs (x) y = Neg (t)"), _model("b = Abs (a) c = Neg (b)", "a c")
    assert agree(one, _model("t = Abs (x) y = Neg (t)"), "graph") == "equal graph"
    assert agree(one, named, "outputs") == "equal outputs"
    with pytest.raises(WrongError, match="another graph: inputs"):
        agree(one, named, "graph")
    with pytest.raises(WrongError, match="an output differs by"):
        agree(one, _model("t = Abs (x) y = Exp (t)"), "outputs")
    with pytest.raises(WrongError, match="another graph: nodes"):
        agree(one, _model("t = Abs (x) y = Exp (t)"), "graph")


def test_a_row_is_what_its_jobs_are() -> None:
    job, works, wrong = JOBS[0], Verdict("works"), Verdict("wrong", "why")
    assert Row("t", "1", [Done(job, works, works, "equal graph")]).state == "ok"
    assert Row("t", "1", [Done(job, wrong, works, "")]).state == "original fails"
    assert Row("t", "", [Done(job, Verdict("not installed"), works, "")]).state == "original does not install"
    assert Row("t", "1", [Done(job, works, wrong, "")]).state == f"partly: {job.what}: wrong: why"
    partly = Row("t", "1", [Done(job, works, works, "another graph: nodes", differs=True)])
    assert partly.state == f"partly: {job.what}: another graph: nodes"
    assert table([partly])[-1] == f"| t 1 | 1 | 1 | 1 | 0 | {partly.state} |"


def _job(judge: object) -> Job:
    return JOBS[0]._replace(judge=judge)  # type: ignore[arg-type]


def _wrong(_: Outcome) -> None:
    require(fact=False, what="something else")


def test_outcomes_are_told_apart(tmp_path: Path) -> None:
    traceback = "Traceback (most recent call last):\n  File\nKeyError: 9"
    good = Outcome(0, "", tmp_path)
    assert judged(_job(lambda _: None), good) == Verdict("works")
    assert judged(_job(_wrong), good) == Verdict("wrong", "something else")
    assert judged(_job(_wrong), Outcome(1, "ERROR: no", tmp_path)) == Verdict("refuses", "ERROR: no")
    assert judged(_job(_wrong), Outcome(1, traceback, tmp_path)) == Verdict("crashes", "KeyError: 9")
    assert judged(_job(lambda _: None), Outcome(1, traceback, tmp_path)).word == "crashes"
    with pytest.raises(WrongError):
        good.model()


def test_a_cell_has_no_colours_no_places_and_no_bars(tmp_path: Path) -> None:
    assert plain(f"\x1b[31mERROR\x1b[0m {tmp_path}/a /home/x/lib/y.py", tmp_path) == "ERROR ./a y.py"
    assert cell(Verdict("wrong", "a | b")) == "wrong: a \\| b"


def test_the_page_has_every_job_and_no_row_is_partly() -> None:
    page = (ROOT / "docs" / "original-tools.md").read_text(encoding="utf-8")
    jobs = page.partition("## The jobs")[2].partition("<!-- /jobs -->")[0]
    rows = [line.split(" | ") for line in jobs.splitlines() if line.startswith("| ")]
    expected = sorted((job.tool, job.what, "works") for job in ALL)
    assert sorted((row[0][2:], row[1], row[3]) for row in rows[1:]) == expected
    assert "| partly" not in page
