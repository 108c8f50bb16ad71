"""Names of files and objects, and texts of models, that attack the rows, the reports and the folder of results."""

import importlib
import json
import os
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.running import run
from tests.fleet.test_fleet import fleet, rows_of

NAMES = [
    'a\n{"model": "forged", "status": "ok"}', "b%0A::set-output name=x::y", "c|d`e`[f](g)", "\x1b]0;title\x07",
    "<img src=x onerror=alert(1)>", "=1+cmd|' 'A0", "\u202egpj", "..%2f..%2fx", "j k", "'\"; rm -rf x", "#l?m=n",
    "\r\nSet: x",
]  # fmt: skip
"""Names without a slash."""

KEYS = ["../../up.onnx", "/slash.onnx", "./dot.onnx", "a//b.onnx", "..\\back.onnx", "sub/../../out.onnx"]
"""Names of objects that would lead out of a folder."""


class Tags(HTMLParser):
    """The tags of a page, without those of its own script and style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.scripts = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        assert not any(name.startswith("on") for name, _ in attrs)


def model(name: str) -> bytes:
    """A model with a hostile text as name of everything, which has findings and whose run fails."""
    x, y = [helper.make_tensor_value_info(value + name, TensorProto.FLOAT, [2]) for value in "xy"]
    node = helper.make_node("Rleu", [x.name], [y.name], name=name, doc_string=name)
    made = helper.make_model(helper.make_graph([node], name, [x], [y]), producer_name=name, ir_version=8)
    return made.SerializeToString()


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    folder = tmp_path / "zoo"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.onnx").write_bytes(model(name))
    return folder


def test_no_name_is_a_row_a_cell_a_tag_or_an_escape(cluster: Any, hostile: Path, tmp_path: Path) -> None:
    clean = tmp_path / "clean"
    clean.mkdir()
    for at in range(len(NAMES)):
        (clean / f"m{at}.onnx").write_bytes(model(f"m{at}"))
    forms = ("md", "html", "json", "txt")
    rows, pages = {}, {}
    for folder in (hostile, clean):
        out = tmp_path / f"{folder.name}.jsonl"
        wanted = [word for form in forms for word in ("-o", tmp_path / f"{folder.name}.{form}")]
        result = fleet(cluster, "check", "--deep", folder, "-o", out, *wanted)
        assert result.exit_code == 1, result.stderr
        rows[folder.name] = rows_of(out)
        for form in forms:
            page = (tmp_path / f"{folder.name}.{form}").read_text()
            assert not set("\x1b\x07\u202e\r") & set(result.stdout + result.stderr + page)
            pages[folder.name, form] = page
    assert len(rows["zoo"]) == len(rows["clean"]) == len(NAMES)
    assert "forged" not in {row["model"] for row in rows["zoo"]}
    assert Tags(pages["zoo", "html"]).scripts == Tags(pages["clean", "html"]).scripts
    for form in ("md", "txt"):
        lines = [pages[folder, form].splitlines() for folder in ("zoo", "clean")]
        assert not any(line.startswith(("{", "::", "<img", "Set:", "#l", "=")) for line in lines[0])
    json.loads(pages["zoo", "json"])


def test_paths_that_are_not_utf_8_are_models_like_others(cluster: Any, tmp_path: Path) -> None:
    folder = tmp_path / "zoo"
    folder.mkdir()
    (folder / os.fsdecode(b"\xff\xfe.onnx")).write_bytes(model("x"))
    result = fleet(cluster, "show", folder, "-o", tmp_path / "rows.jsonl")
    assert result.exit_code == 0, result.stdout
    assert [row["status"] for row in rows_of(tmp_path / "rows.jsonl")] == ["ok"]


@pytest.mark.parametrize("form", ["junit", "sarif", "github", "json"])
def test_findings_of_hostile_names_stay_in_their_place(form: str, hostile: Path) -> None:
    result = run("check", "--deep", *sorted(hostile.iterdir()), "--format", form)
    assert result.exit_code == 1, result.stderr
    assert not set("\x1b\x07\u202e") & set(result.stdout)
    if form == "junit":
        from xml.etree import ElementTree

        tree = ElementTree.fromstring(result.stdout)
        assert not list(tree.iter("script"))
    elif form == "github":
        lines = result.stdout.splitlines()
        assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines if line), lines
        assert not any("set-output" in line.split("::")[0] or line.startswith("::set-") for line in lines)
    else:
        json.loads(result.stdout)


def test_results_of_objects_stay_in_their_folder(cluster: Any, s3: Any, tmp_path: Path) -> None:
    workers = {name: os.environ[name] for name in os.environ if name.startswith("AWS_")}
    with cluster.get_client() as client:
        client.run(os.environ.update, workers)
    store = importlib.import_module("boto3").client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    store.create_bucket(Bucket="hostile")
    keys = [
        f"release/{key}" for key in (*KEYS, *(f"{name}.onnx" for name in NAMES if "\n" not in name))
    ]  # which moto has not
    for key in keys:
        store.put_object(Bucket="hostile", Key=key, Body=model("g"))
    inside = tmp_path / "in" / "folder"
    inside.mkdir(parents=True)
    out = tmp_path / "rows.jsonl"
    words = ("rewrite", "set-doc", "s3://hostile/release/**", "--text", "hello", "-o", inside / "results")
    result = fleet(cluster, *words, "-o", out)
    assert result.exit_code in (0, 1), result.stderr
    rows = rows_of(out)
    written = [each for each in tmp_path.rglob("*") if each.is_file() and each != out]
    assert written
    assert all(each.is_relative_to(inside / "results") for each in written), written
    assert {os.path.realpath(row["output"]) for row in rows if row["output"]} == set(map(str, written))
    for each in written:
        assert onnx.load(each).doc_string == "hello"
    # External data of an object is in its folder, whatever its name is.
    made = helper.make_model(helper.make_graph([], "g", [], []))
    tensor = made.graph.initializer.add(name="w", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin?versionId=null")
    store.put_object(Bucket="hostile", Key="x/m.onnx", Body=made.SerializeToString())
    store.put_object(Bucket="hostile", Key="x/w.bin", Body=bytes(16))
    assert run("convert", "s3://hostile/x/m.onnx", "--internalize", "-o", tmp_path / "i.onnx").exit_code == 78


def test_a_failed_run_leaves_no_folder(cluster: Any, hostile: Path, tmp_path: Path) -> None:
    for each in hostile.iterdir():
        each.write_bytes(b"\x08\x08broken")
    (tmp_path / "kept").mkdir()
    assert fleet(cluster, "convert", hostile, "-o", tmp_path / "new" / "texts").exit_code == 1
    assert fleet(cluster, "convert", hostile, "-o", tmp_path / "kept").exit_code == 1
    assert {each.name for each in tmp_path.iterdir()} == {"zoo", "kept"}
    shutil.rmtree(hostile)
