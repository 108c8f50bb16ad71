"""Fleets: every model gets one row, whatever happens to it or to the workers."""

import fcntl
import http.server
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxjson.cli.fleet_job import Job
from onnxjson.fleet import engine
from onnxjson.fleet.engine import Limits, end_processes, run_limited
from onnxjson.fleet.listing import Source, list_models
from onnxjson.fleet.results import Row
from onnxjson.fleet.summary import _cause, summarise, summary_html, summary_lines, summary_markdown
from onnxjson.model.errors import MissingInputError
from tests.cli.running import Result, run
from tests.cli.terminal import Terminal
from tests.fleet.conftest import make_models


def fleet(cluster: Any, *words: str | Path) -> Result:
    """The command on the workers of the tests."""
    return run("fleet", *words, "--scheduler", cluster.scheduler_address)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_one_row_a_model(cluster: Any, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    result = fleet(cluster, "check", models, "-o", out)
    assert result.exit_code == 0, result.stderr
    rows = rows_of(out)
    assert sorted(row["model"] for row in rows) == sorted(map(str, models.rglob("*.onnx")))
    assert {row["status"] for row in rows} == {"ok"}
    assert all(row["seconds"] > 0 and row["bytes"] > 0 and row["error"] is None for row in rows)
    assert "12 models: 12 ok" in result.stdout


def test_every_command(cluster: Any, models: Path, tmp_path: Path) -> None:
    commands: tuple[tuple[list[str | Path], int], ...] = (
        (["show", models], 0),
        (["cost", models], 0),
        (["find", models, "Relu($x)"], 0),
        (["convert", models, "-o", tmp_path / "texts"], 0),
        (["fmt", tmp_path / "texts", "--check"], 0),
        (["rewrite", "set-doc", models, "--text", "hello", "-o", tmp_path / "new"], 0),
        (["optimize", models, "-p", "onnxoptimizer", "-o", tmp_path / "fast", "--trace", tmp_path / "traces"], 0),
        (["verify", models, tmp_path / "fast", "--samples", "1"], 0),
        (["diff", models, tmp_path / "new"], 1),
        (["run", models], 0),
        (["bench", models / "part0", "-n", "1"], 0),
        (["duplicates", models], 0),
    )
    for words, exit_code in commands:
        name = str(words[0])
        out = tmp_path / f"{name}.jsonl"
        result = fleet(cluster, *words, "-o", out)
        assert result.exit_code == exit_code, (name, result, rows_of(out))
        expected = 4 if name == "bench" else 12
        assert len(rows_of(out)) == expected, name
    assert sum(bool(row["report"]) for row in rows_of(tmp_path / "find.jsonl")) == 8
    assert rows_of(tmp_path / "cost.jsonl")[0]["report"]["cost"]["macs"] is not None
    assert len(list((tmp_path / "texts").rglob("*.onnx.json"))) == 12
    assert {onnx.load(each).doc_string for each in (tmp_path / "new").rglob("*.onnx")} == {"hello"}
    assert rows_of(tmp_path / "rewrite.jsonl")[0]["report"][0]["changed"] is True
    assert (tmp_path / "traces/part0/m000.onnx/trace.json").is_file()
    assert {row["status"] for row in rows_of(tmp_path / "diff.jsonl")} == {"findings"}


def test_a_script_is_applied_to_every_model(cluster: Any, models: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"format": "onnxjson-rewrite/1", "edits": [{"edit": "set-doc", "text": "applied"}]}')
    assert fleet(cluster, "apply", script, models, "-i").exit_code == 0
    assert {onnx.load(each).doc_string for each in models.rglob("*.onnx")} == {"applied"}


def test_an_ended_run_goes_on(cluster: Any, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    assert fleet(cluster, "check", models, "-o", out).exit_code == 0
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:5]) + lines[5][:30])  # killed while it wrote the sixth row
    result = fleet(cluster, "check", models, "-o", out)
    assert "5 models done before" in result.stderr
    assert sorted(row["model"] for row in rows_of(out)) == sorted(map(str, models.rglob("*.onnx")))
    assert out.read_bytes().startswith(b"".join(lines[:5]))
    other = fleet(cluster, "check", models, "--strict", "-o", out)
    assert (other.exit_code, "has results of `check`" in other.stderr) == (73, True)


def test_what_failed_is_done_again_if_asked(cluster: Any, models: Path, tmp_path: Path) -> None:
    bad, out = models / "bad.onnx", tmp_path / "rows.jsonl"
    bad.write_bytes(b"\x01\x02")
    assert fleet(cluster, "show", models, "-o", out).exit_code == 1
    bad.write_bytes((models / "part0/m000.onnx").read_bytes())
    assert fleet(cluster, "show", models, "-o", out).exit_code == 1
    assert fleet(cluster, "show", models, "-o", out, "--retry-failed").exit_code == 0
    assert len(rows_of(out)) == 13


def save_endless(path: Path) -> None:
    """A model whose loop never ends."""
    trips = helper.make_tensor("trips", TensorProto.INT64, [], [1 << 60])
    go_on = helper.make_tensor("go_on", TensorProto.BOOL, [], [True])
    i, x, v, w, y = (helper.make_tensor_value_info(name, TensorProto.INT64, [1] * (name != "i")) for name in "ixvwy")
    c, d = (helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in "cd")
    nodes = [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["v", "v"], ["w"])]
    loop = helper.make_node(
        "Loop", ["trips", "go_on", "x"], ["y"], body=helper.make_graph(nodes, "b", [i, c, v], [d, w])
    )
    opsets = [helper.make_opsetid("", 17)]
    graph = helper.make_graph([loop], "g", [x], [y], [trips, go_on])
    onnx.save(helper.make_model(graph, opset_imports=opsets), path)


@pytest.mark.parametrize("moment", [1.0, *[pytest.param(each / 5, marks=pytest.mark.exhaustive) for each in range(20)]])
def test_a_killed_worker_loses_nothing_and_does_nothing_twice(cluster: Any, tmp_path: Path, moment: float) -> None:
    folder, out = make_models(tmp_path / "zoo", 30), tmp_path / "rows.jsonl"
    with cluster.get_client() as client:
        pids = list(client.run(os.getpid).values())
    victim = threading.Timer(moment, lambda: os.kill(pids[0], signal.SIGKILL))
    victim.start()
    result = fleet(cluster, "check", folder, "--deep", "-o", out)
    victim.join()
    assert result.exit_code == 0, [row for row in rows_of(out) if row["status"] != "ok"]
    assert sorted(row["model"] for row in rows_of(out)) == sorted(map(str, folder.rglob("*.onnx")))


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder, out = make_models(tmp_path / "zoo", 300), tmp_path / "rows.jsonl"
    with Terminal("fleet", "check", folder, "--deep", "-o", out, "--jobs", "1") as terminal:
        terminal.expect("3 of 300 done")
        terminal.answer("\x03")
        shown, exit_code = terminal.until_end()
    assert (exit_code, "interrupted; " in shown, "to resume, repeat" in shown) == (130, True, True), shown
    assert 0 < len(rows_of(out)) < 300
    assert {row["status"] for row in rows_of(out)} == {"ok"}


@pytest.mark.exhaustive
def test_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    """Pressed twice while a model never ends; no process is left."""
    save_endless(tmp_path / "endless.onnx")
    with Terminal("fleet", "run", tmp_path / "endless.onnx", "--jobs", "1") as terminal:
        terminal.expect("1 running")
        terminal.answer("\x03")
        terminal.expect("finishing 1 model, ctrl-c stops at once")
        terminal.answer("\x03")
        shown, exit_code = terminal.until_end()
    assert (exit_code, "interrupted" in shown) == (130, True), shown
    found = subprocess.run(["ps", "-eo", "sid,args"], capture_output=True, text=True, check=True).stdout
    alive = [line.split() for line in found.splitlines() if "<defunct>" not in line]
    assert not [words for words in alive if words[0] == str(terminal.process.pid) or str(tmp_path) in words]


def test_a_log_gets_a_line_now_and_then(
    cluster: Any, models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("onnxjson.cli.fleet_run._SECONDS_A_LINE", 0.0)
    assert "of 12 done" in fleet(cluster, "show", models).stderr


def test_credentials_that_are_refused_are_a_failed_row(cluster: Any, models: Path, tmp_path: Path) -> None:
    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_error(403, "no")

        do_GET = do_HEAD  # noqa: N815 - as the class wants it

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        manifest, out = tmp_path / "models.txt", tmp_path / "rows.jsonl"
        manifest.write_text(f"http://127.0.0.1:{server.server_port}/m.onnx\n{models}/part0\n")
        assert fleet(cluster, "show", manifest, "-o", out).exit_code == 1
        server.shutdown()
    rows = {row["status"]: row for row in rows_of(out)}
    assert (rows["failed"]["exit_code"], rows["ok"]["error"]) == (77, None)


def test_thousands_of_objects_are_listed_page_by_page(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put into the service by itself, which takes 20 times as long through its door."""
    from moto.backends import get_backend
    from moto.s3.responses import S3Response

    backend: Any = get_backend("s3")["123456789012"]["aws"]
    for number in range(2_500):
        backend.put_object("zoo", f"many/{number % 100}/{number}.onnx", b"x")
    requests = list[Any]()

    def count(name: str) -> None:
        answer = getattr(S3Response, name)

        def counted(*given: Any) -> Any:
            requests.append(given)
            return answer(*given)

        monkeypatch.setattr(S3Response, name, counted)

    count("_bucket_response")
    count("_key_response")
    sources = list_models(["s3://zoo/many/**/*.onnx"])
    for number in range(2_500):
        backend.delete_object("zoo", f"many/{number % 100}/{number}.onnx")
    assert (len(sources), len({each.relative for each in sources})) == (2_500, 2_500)
    assert len(requests) == 3  # of at most 1,000 objects each


def test_too_many_failures_end_the_run(cluster: Any, tmp_path: Path) -> None:
    folder = make_models(tmp_path / "zoo", 40)
    for path in sorted(folder.rglob("*.onnx"))[:20]:
        path.write_bytes(b"\x01")
    out = tmp_path / "rows.jsonl"
    result = fleet(cluster, "show", folder, "-o", out, "--failures", "3")
    assert result.exit_code == 1
    assert "more than 3 models failed" in result.stderr
    assert len(rows_of(out)) < 40


def test_the_first_failure_of_a_batch_ends_the_run() -> None:
    def work(source: Source) -> Row:
        during.append(engine._doing.count("x"))
        return Row(model=source.model, command="x", status="failed" if source.model > "m1" else "ok")

    during: list[int] = []
    batch = [Source(f"m{number}", "", 1) for number in range(9)]
    assert [row.model for row in engine._do("x", work, batch, 0)] == ["m0", "m1", "m2"]
    assert (during, engine._stop("x"), engine._do("x", work, batch, 0)) == ([1, 1, 1], 0, [])
    assert len(engine._do("y", work, batch, None)) == 9


def test_rows_of_find_have_the_reason_of_a_failure(cluster: Any, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    (models / "broken.onnx").write_bytes(b"\x01")
    (models / "link.onnx").symlink_to("nowhere")
    result = fleet(cluster, "find", models, "Relu($x)", "-o", out)
    errors = {Path(row["model"]).name: row["error"] for row in rows_of(out) if row["status"] == "failed"}
    assert sorted(errors) == ["broken.onnx", "link.onnx"], errors
    assert all(name in error for name, error in errors.items()), errors
    assert "matches" not in result.stdout.partition("failures")[2].partition("\n\n")[0]
    assert _cause("m.onnx does not exist") == _cause("a/m does not exist") == "... does not exist"


def test_two_roots_are_paired_by_path_and_moved_models_by_structure(cluster: Any, models: Path, tmp_path: Path) -> None:
    other, out = make_models(tmp_path / "other", 12), tmp_path / "rows.jsonl"
    (other / "part1/m010.onnx").rename(other / "moved.onnx")
    (other / "part2/m011.onnx").unlink()
    (other / "fresh.onnx").write_bytes((other / "moved.onnx").read_bytes().replace(b"Relu", b"Sqrt"))
    result = fleet(cluster, "diff", models, other, "-o", out)
    assert result.exit_code == 1
    for text in ("1 model removed", "1 model added", "1 model moved", "m010.onnx  (to ", "other/moved.onnx)"):
        assert text in result.stdout
    assert "changed" not in result.stdout
    rows = {Path(row["model"]).name: row for row in rows_of(out)}
    assert rows["m011.onnx"]["report"] == {"state": "removed"}
    assert rows["fresh.onnx"]["report"] == {"state": "added"}
    assert rows["m010.onnx"]["status"] == "ok"
    assert len(rows) == 13


def test_the_summary_lists_what_changed_the_most_important_first() -> None:
    def row(number: int) -> Row:
        events = {"renamed": number, "replaced": 1}
        report = {"format": "onnxjson-diff/1", "summary": {"events": events}}
        return Row(model=f"m{number:02}<b>", command="diff x", status="findings", report=report)

    summary = summarise(map(row, range(1, 31)))
    lines = list(summary_lines(summary, 80))
    assert lines[3:5] == ["30 models changed", "     31  m30<b>  (30 renamed, 1 replaced)"]
    assert lines[-1].strip() == "... and 10 more"
    text = summary_markdown(summary)
    assert "|31|`m30<b>`|`30 renamed, 1 replaced`|" in text
    assert ("... and 10 more" in text, "m05" in text) == (True, False)
    page = "".join(summary_html(summary))
    assert "<h2>30 models changed</h2>" in page
    assert page.count("renamed, 1 replaced") == 30


def test_the_summary_of_verify_has_the_worst_difference_of_each_model(cluster: Any, tmp_path: Path) -> None:
    constants = {"a": (1, 2), "b": (1, 1), "c": (100, 100.001), "d": (1, np.nan), "e": (1, 5)}
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    for name, values in constants.items():
        for root, value in zip(("old", "new"), values, strict=True):
            constant = numpy_helper.from_array(np.array([value], np.float32), "c")
            graph = helper.make_graph([helper.make_node("Add", ["x", "c"], ["y"], name="n")], "g", [x], [y], [constant])
            (tmp_path / root).mkdir(exist_ok=True)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
            onnx.save(model, tmp_path / root / f"{name}.onnx")
    result = fleet(cluster, "verify", tmp_path / "old", tmp_path / "new", "--samples", "1")
    lines = [line.replace(f"{tmp_path}/old/", "").split() for line in result.stdout.splitlines()[3:]]
    assert [words[1:] for words in lines[:4]] == [
        ["models", "with", "different", "outputs"],
        ["d.onnx", "(not", "finite", "in", "y)"],
        ["e.onnx", "(4", "in", "y)"],
        ["a.onnx", "(1", "in", "y)"],
    ], result
    assert lines[5][-4:] == ["differ", "within", "the", "tolerance"]
    assert (lines[6][1], lines[6][-2:]) == ("c.onnx", ["in", "y)"])


def test_equal_models_structures_and_weights_are_found(cluster: Any, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    assert fleet(cluster, "duplicates", models, "-o", out).exit_code == 0
    found: dict[str, list[str]] = {}
    for row in rows_of(out):
        found.setdefault(row["report"]["structure"], []).append(Path(row["model"]).name)
    # m000 is an Abs of one element in opset 17, m001 a Relu of opset 18: only what all agree in is equal.
    assert [names for names in found.values() if len(names) > 1] == []
    twin = models / "twin.onnx"
    model = onnx.load(models / "part1/m001.onnx")
    model.graph.name, model.graph.node[0].name, model.graph.input[0].name = "other", "renamed", "in"
    model.graph.node[0].input[0] = "in"
    onnx.save(model, twin)
    result = fleet(cluster, "duplicates", models)
    assert "m001.onnx = " in result.stdout
    assert "zoo/twin.onnx" in result.stdout


def test_results_as_parquet(cluster: Any, models: Path, tmp_path: Path) -> None:
    from pyarrow import parquet

    out = tmp_path / "rows.parquet"
    assert fleet(cluster, "cost", models, "-o", out).exit_code == 0
    table = parquet.read_table(out)
    assert table.num_rows == 12
    assert json.loads(table.column("report")[0].as_py())["cost"]["unknown"] == []
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_run_goes_on_with_a_parquet_file(cluster: Any, models: Path, tmp_path: Path) -> None:
    from pyarrow import parquet

    out = tmp_path / "rows.parquet"
    assert fleet(cluster, "check", models / "part0", "-o", out).exit_code == 0
    result = fleet(cluster, "check", models, "-o", out)
    assert "4 models done before" in result.stderr
    assert len(set(parquet.read_table(out).column("model").to_pylist())) == parquet.read_table(out).num_rows == 12
    before = out.read_bytes()
    assert fleet(cluster, "cost", models, "-o", out).exit_code == 73
    assert (out.read_bytes(), list(tmp_path.glob("*.jsonl"))) == (before, [])


def test_a_full_disk_for_results(cluster: Any, models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            if self.tell() > 300:
                super().write(data[:10])
                raise OSError(28, "No space left on device")
            return super().write(data)

    out = tmp_path / "rows.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr("onnxjson.fleet.results.open", lambda *given, **_: Full(given[0], "ab+"), raising=False)
        result = fleet(cluster, "check", models, "-o", out)
    assert (result.exit_code, "No space left" in result.stderr) == (74, True), result.stderr
    assert 0 < len(rows_of(out)) < 12  # what is there is whole
    assert fleet(cluster, "check", models, "-o", out).exit_code == 0
    assert len({row["model"] for row in rows_of(out)}) == len(rows_of(out)) == 12


def test_a_report_of_an_unknown_form_is_refused(models: Path, tmp_path: Path) -> None:
    result = run("fleet", "show", models, "-o", tmp_path / "report.pdf")
    assert (result.exit_code, ".jsonl, .parquet, .md, .html, .json, .txt" in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize("ending", ["html", "md", "txt", "json"])
def test_reports(cluster: Any, models: Path, tmp_path: Path, ending: str) -> None:
    hostile = models / "<script>alert(1)<!-- \x1b[31m.onnx"
    hostile.write_bytes(b"\x01")
    place = tmp_path / f"report.{ending}"
    fleet(cluster, "show", models, "-o", place)
    text = place.read_text()
    assert "Relu" in text
    assert "\x1b" not in text
    assert "<script>alert" not in text or ending in ("json", "txt", "md")


def test_s3_and_its_failures(cluster: Any, s3: Any, tmp_path: Path) -> None:
    folder = make_models(tmp_path / "zoo", 6)
    s3.put(str(folder), "zoo/release", recursive=True)
    out = tmp_path / "rows.jsonl"
    workers = {name: os.environ[name] for name in os.environ if name.startswith("AWS_")}
    with cluster.get_client() as client:
        client.run(os.environ.update, workers)
    result = fleet(cluster, "find", "s3://zoo/release/**/*.onnx", "Relu($x)", "-o", out)
    assert result.exit_code == 0, result
    rows = rows_of(out)
    assert len(rows) == 6
    assert all(row["model"].startswith("s3://zoo/release/part") and row["bytes"] for row in rows)
    assert run("show", rows[0]["model"]).exit_code == 0
    assert fleet(cluster, "check", "s3://zoo/none/**/*.onnx").exit_code == 66
    # An object that is gone when it is read is a failed row; the others are done.
    manifest = tmp_path / "models.txt"
    manifest.write_text("".join(f"{row['model']}\n" for row in rows) + "s3://zoo/release/gone.onnx\n")
    fleet(cluster, "check", manifest, "-o", tmp_path / "second.jsonl")
    assert all(
        found["file"] == row["model"] for row in rows_of(tmp_path / "second.jsonl") for found in row["report"] or ()
    )
    status = {row["model"].rpartition("/")[2]: row["status"] for row in rows_of(tmp_path / "second.jsonl")}
    assert status.pop("gone.onnx") == "failed"
    assert set(status.values()) == {"ok"}


def test_a_tree_of_git(cluster: Any, models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "m"]):
        subprocess.run(["git", *words], cwd=models, check=True)
    monkeypatch.chdir(models)
    out = tmp_path / "rows.jsonl"
    assert list_models(["HEAD:part1"])[0].model == "HEAD:part1/m001.onnx"
    with cluster.get_client() as client:
        client.run(os.chdir, models)
    assert fleet(cluster, "check", "HEAD:part1", "-o", out).exit_code == 0
    out.unlink()
    (models / "part1/m001.onnx").write_bytes(b"\x01")
    assert fleet(cluster, "show", "HEAD:part1", "HEAD:part0", "-o", out).exit_code == 0
    (models / "part1/m001.onnx").unlink()
    subprocess.run(["git", "add", "."], cwd=models, check=True)
    result = fleet(cluster, "show", "nothing:part0")
    assert (result.exit_code, "nothing:part0: there is no revision nothing" in result.stderr) == (66, True), (
        result.stderr
    )
    with cluster.get_client() as client:
        client.run(os.chdir, "/")
    assert {row["status"] for row in rows_of(out)} == {"ok"}
    assert len(rows_of(out)) == 8
    for words in (["rewrite", "set-doc", "HEAD:part1", "--text", "hi"], ["fmt", "HEAD:part1"]):
        result = fleet(cluster, *words, "-i")
        assert (result.exit_code, "is not a file" in result.stderr) == (73, True), result.stderr


def test_listings(models: Path, tmp_path: Path) -> None:
    assert len(list_models([str(models)])) == 12
    assert len(list_models([f"{models}/part[01]/*.onnx"])) == 8
    notes = models / "notes.txt"
    notes.write_text(f"# a comment\n{models}/part0/m000.onnx\n\n{models}/part1\n")
    listed = list_models([str(notes)])
    assert [each.relative for each in listed][:2] == ["part0/m000.onnx", "part1/m001.onnx"]
    assert len(listed) == 5
    notes.write_text("s3://zoo/a/m.onnx\nhttps://host/b/m.onnx?key=1\n")
    assert [each.relative for each in list_models([str(notes)])] == ["s3:/zoo/a/m.onnx", "https:/host/b/m.onnx"]
    notes.write_text(f"{notes}\n{models}/part0\n")  # a line is no manifest
    assert len(list_models([str(notes)])) == 5
    notes.write_text(f"{models}/part0\n{models}/none\n")
    with pytest.raises(MissingInputError, match="none names no model"):
        list_models([str(notes)])
    notes.unlink()
    (models / "part0/m000.data").write_bytes(bytes(1000))
    sizes = {each.relative: each.size or 0 for each in list_models([str(models)])}
    assert sizes["part0/m000.onnx"] > 1000 > sizes["part0/m003.onnx"]
    assert [each.relative for each in list_models([f"{models}/**/m00[0-1].onnx"])] == [
        "part0/m000.onnx",
        "part1/m001.onnx",
    ]
    for word in (str(tmp_path / "none"), f"{models}/*.pb"):
        with pytest.raises(MissingInputError, match="names no model"):
            list_models([word])


def test_wrong_words(models: Path) -> None:
    wrong: tuple[tuple[list[str | Path], str], ...] = (
        (["convert", models], "choose where the results go"),
        (["find", models], "the pattern"),
        (["diff", models], "two folders"),
        (["fmt", models], "-i to change the models, or --check"),
        (["check", models, "--fix"], "-i to change the models"),
        (["check", models, "-i"], "neither -i nor --fix"),
        (["convert", models, "-i"], "-i"),
        (["rewrite", "no-such-edit", models, "-o", "x"], "no-such-edit"),
        (["check", models, "--nonsense"], "--nonsense"),
        (["check", models, "--memory", "10"], "--memory is at least 256M"),
        (["optimize", models, "-p", "nonsense", "-o", "x"], "nonsense"),
    )
    for words, reason in wrong:
        result = run("fleet", *words)
        assert (result.exit_code, reason in result.stderr) == (2, True), result.stderr


def test_limits_of_a_model_are_also_those_of_its_analysis(monkeypatch: pytest.MonkeyPatch, models: Path) -> None:
    jobs: list[Job] = []
    monkeypatch.setattr("onnxjson.cli.fleet_run.FleetRun.run", lambda self: jobs.append(self.job))
    for words in (["check", str(models), "--deep"], ["find", str(models), "Relu($x)"]):
        run("fleet", *words, "--timeout", "900", "--memory", "8G")
    assert [job.words for job in jobs] == [
        ("check", "--deep", "--timeout", "900", "--memory", "8G", "--json"), ("find", "--json"),
    ]  # fmt: skip
    assert jobs[0].command == "check --deep"


def test_no_source_and_no_other_result_is_overwritten(cluster: Any, models: Path, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.onnx").write_bytes((models / "part0/m000.onnx").read_bytes())
    a, b = tmp_path / "a", tmp_path / "b"
    before = (b / "m.onnx").read_bytes()
    cases: tuple[list[str | Path], ...] = (
        [a, b, "--text", "hi", "-o", b],
        [a, b, "--text", "hi", "-o", tmp_path / "new"],
        [a, "--text", "hi", "-o", a],
    )
    for words in cases:
        assert fleet(cluster, "rewrite", "set-doc", *words).exit_code == 73, words
    assert (b / "m.onnx").read_bytes() == before
    assert not (tmp_path / "new").exists()


def test_results_are_of_one_destination_and_one_run(cluster: Any, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    words: list[str | Path] = ["rewrite", "set-doc", models, "--text", "hi", "-o", out, "-o"]
    assert fleet(cluster, *words, tmp_path / "one").exit_code == 0
    assert fleet(cluster, *words, tmp_path / "two").exit_code == 73
    with out.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = fleet(cluster, *words, tmp_path / "one")
    assert (result.exit_code, "another run" in result.stderr) == (73, True)


def test_a_repeated_comparison_has_the_same_rows(cluster: Any, models: Path, tmp_path: Path) -> None:
    other, out = make_models(tmp_path / "other", 12), tmp_path / "rows.jsonl"
    (other / "part1/m010.onnx").rename(other / "moved.onnx")
    assert fleet(cluster, "diff", models, other, "-o", out).exit_code == 0
    rows = rows_of(out)
    assert fleet(cluster, "diff", models, other, "-o", out).exit_code == 0
    assert rows_of(out) == rows


def test_secrets_of_a_url_are_in_no_row_and_no_summary(cluster: Any, tmp_path: Path) -> None:
    manifest, out = tmp_path / "models.txt", tmp_path / "rows.jsonl"
    manifest.write_text("http://anna:pw0rd9@127.0.0.1:9/m.onnx?signature=hidd3n\n")
    result = fleet(cluster, "show", manifest, "-o", out)
    for word in ("anna", "pw0rd9", "hidd3n"):
        assert word not in result.stdout + result.stderr + out.read_text()


def test_weights_in_other_files_come_along(cluster: Any, tmp_path: Path) -> None:
    zoo = tmp_path / "zoo"
    for part in ("a", "b"):
        (zoo / part).mkdir(parents=True)
        weights = numpy_helper.from_array(np.full([100, 100], ord(part), np.float32), "w")
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 100]) for name in "xy")
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="n")], "g", [x], [y], [weights])
        for name in ("m.onnx", "same.onnx"):  # two models with one data file
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
            (zoo / part / "m.data").unlink(missing_ok=True)
            onnx.save(model, zoo / part / name, save_as_external_data=True, location="m.data", size_threshold=100)
    script = tmp_path / "script.json"
    script.write_text('{"format": "onnxjson-rewrite/1", "edits": [{"edit": "set-doc", "text": "applied"}]}')
    commands: tuple[list[str | Path], ...] = (
        ["rewrite", "set-doc", zoo, "--text", "hi"],
        ["apply", script, zoo],
        ["convert", zoo, "--to", "onnx"],
        ["optimize", zoo, "-p", "prune"],
    )
    for words in commands:
        new = tmp_path / str(words[0])
        assert fleet(cluster, *words, "-o", new).exit_code == 0, words
        for part in ("a", "b"):
            for name in ("m.onnx", "same.onnx"):
                assert numpy_helper.to_array(onnx.load(new / part / name).graph.initializer[0])[0, 0] == ord(part)
    assert fleet(cluster, "verify", zoo, tmp_path / "rewrite", "--samples", "1").exit_code == 0
    (zoo / "a/m.data").unlink()
    out = tmp_path / "rows.jsonl"
    assert fleet(cluster, "rewrite", "set-doc", zoo, "--text", "hi", "-o", tmp_path / "x", "-o", out).exit_code == 1
    rows = {row["model"].removeprefix(str(zoo)): row for row in rows_of(out)}
    assert {name: row["status"] for name, row in rows.items() if "/m.onnx" in name} == {
        "/a/m.onnx": "failed",
        "/b/m.onnx": "ok",
    }
    assert "m.data" in rows["/a/m.onnx"]["error"]
    assert not (tmp_path / "x/a/m.onnx").exists()


def test_manifests_are_paired_by_the_paths_below_their_common_folder(
    cluster: Any, models: Path, tmp_path: Path
) -> None:
    for part in range(3):
        (models / f"part{part}/m.onnx").write_bytes((models / f"part{part}/m00{part}.onnx").read_bytes())
    other, out = tmp_path / "other", tmp_path / "rows.jsonl"
    shutil.copytree(models, other)
    for root in (models, other):
        names = sorted(root.rglob("m.onnx"))
        (tmp_path / f"{root.name}.txt").write_text("".join(f"{each}\n" for each in names))
    assert fleet(cluster, "diff", tmp_path / "zoo.txt", tmp_path / "other.txt", "-o", out).exit_code == 0
    assert len(rows_of(out)) == 3
    doubled = tmp_path / "doubled.txt"
    doubled.write_text("http://127.0.0.1:9/m.onnx?a\nhttp://127.0.0.1:9/m.onnx?b\n")
    result = fleet(cluster, "diff", doubled, models)
    assert (result.exit_code, "cannot be paired" in result.stderr) == (2, True), result.stderr


def test_the_size_of_an_object_is_known_once_it_is_read(cluster: Any, models: Path, tmp_path: Path) -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    manifest, out = tmp_path / "models.txt", tmp_path / "rows.jsonl"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(models))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        manifest.write_text(f"http://127.0.0.1:{server.server_port}/part0/m000.onnx\n")
        assert fleet(cluster, "show", manifest, "-o", out).exit_code == 0
        server.shutdown()
    assert rows_of(out)[0]["bytes"] == (models / "part0/m000.onnx").stat().st_size


def test_an_object_that_changes_after_the_listing(s3: Any, tmp_path: Path) -> None:
    """The row is about the object that is there, and whole; that of an object that is gone has failed."""
    folder = make_models(tmp_path / "zoo", 6)
    s3.put(str(folder / "part1/m001.onnx"), "zoo/changing/m.onnx")
    s3.put(str(folder / "part1/m001.onnx"), "zoo/changing/gone.onnx")
    sources = {each.relative: each for each in list_models(["s3://zoo/changing"])}
    s3.put(str(folder / "part0/m000.onnx"), "zoo/changing/m.onnx")
    s3.rm("zoo/changing/gone.onnx")
    job = Job("show", ("show", "--json"), has_report=True, limits=Limits())
    row, gone = job.row(sources["m.onnx"]), job.row(sources["gone.onnx"])
    end_processes(all_=False)
    assert (row.status, [each["op_type"] for each in row.report["operators"]]) == ("ok", ["Abs"])
    assert (gone.status, gone.exit_code) == ("failed", 66)


def hostile_row(source: Source) -> Row:
    """Do a model in the program of `tests.fleet.hostile`; runs on a worker."""
    outcome = run_limited("tests.fleet.hostile", [source.model], Limits(seconds=3.0, memory=8 << 30))
    return Row(model=source.model, command="x", status="ok" if outcome.code == 0 else "failed", error=outcome.problem)


def test_a_crash_a_hang_and_an_allocation_among_200_cost_three_rows(cluster: Any) -> None:
    sources = [Source(f"m{number}", "", 1) for number in range(200)]
    for place, name in ((50, "crash"), (51, "hang"), (150, "allocation")):
        sources[place] = Source(name, "", 1)
    rows: list[Row] = []
    with cluster.get_client() as client:
        engine.run(client, sources, hostile_row, rows.extend, lambda _: None, command="x", most_failures=None)
        client.run(end_processes, all_=False)
    assert sorted(row.model for row in rows) == sorted(each.model for each in sources)
    assert {row.model: row.error for row in rows if row.status == "failed"} == {
        "crash": "its process crashed (SIGSEGV)",
        "hang": "it was stopped after 3 s (--timeout)",
        "allocation": "its process ended with the code 1",
    }


def test_a_fleet_on_one_machine_needs_no_package(models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("dask", "distributed", "pyarrow", "fsspec"):
        monkeypatch.setitem(sys.modules, name, None)
    out = tmp_path / "rows.jsonl"
    result = run("fleet", "check", models, "--jobs", "2", "-o", out, "-o", tmp_path / "all.md", "--json")
    assert (result.exit_code, json.loads(result.stdout)["counts"]) == (0, {"ok": 12}), result.stderr
    assert (len(rows_of(out)), (tmp_path / "all.md").exists()) == (12, True)
    result = run("fleet", "check", models, "--scheduler", "tcp://127.0.0.1:1")
    assert (result.exit_code, "pip install 'onnxjson[fleet]'" in result.stderr) == (66, True), result.stderr


def test_a_summary_says_what_happened(models: Path, tmp_path: Path) -> None:
    """Nodes and bytes before and after, rules that matched, and models that were not read apart from findings."""
    new, out, rule = tmp_path / "new", tmp_path / "rows.jsonl", tmp_path / "clamp.json"
    result = run("fleet", "optimize", models, "-p", "onnxoptimizer", "-o", new, "-o", out, "--jobs", "1")
    assert "written: nodes 12 -> 12, " in result.stdout
    assert re.search(r"m000\.onnx  \(nodes 1 -> 1, [0-9]+ bytes as before\)", result.stdout)
    assert all(row["written_bytes"] == os.path.getsize(row["output"]) for row in rows_of(out))
    rule.write_text('{"format": "onnxjson-rule/1", "id": "clamp", "message": "m", "pattern": "Relu($x)"}')
    assert re.search(r"matches\n +8  clamp", run("fleet", "find", models, "--rules", rule, "--jobs", "1").stdout)
    assert run("fleet", "find", models, "--rules", "--jobs", "1").exit_code == 0
    changed = run("fleet", "rewrite", "set-doc", models, "--text", "a", "-o", tmp_path / "a", "--jobs", "1").stdout
    assert "written: nodes 12 -> 12, " in changed
    assert re.search(r"m000\.onnx  \(nodes 1 -> 1, [0-9]+ bytes -> [0-9]+ bytes\)", changed)
    of_rules = tmp_path / "summary.json"
    checked = run("fleet", "check", models, "--select", "naming", "--jobs", "1", "-o", of_rules).stdout
    assert json.loads(of_rules.read_text())["tables"]["findings"][0]["label"] == "ONJ408"
    assert re.search(r"findings\n +12  ONJ408  the model does not name its producer  \(", checked), checked
    (models / "broken.onnx").write_bytes(b"\x01\x02")
    result = run("fleet", "check", models, "--jobs", "1")
    assert (result.exit_code, "13 models: 12 ok, 1 failed" in result.stdout) == (1, True)
    assert "not-a-model" not in result.stdout


def test_former_options_name_the_new_one(models: Path) -> None:
    for option in ("--out", "--report"):
        result = run("fleet", "show", models, option, "x.md")
        assert (result.exit_code, f"{option} is now -o" in result.stderr) == (2, True)
