"""The pages of a diff and a gate as a browser shows them: nothing is wider than the window, searches and folds work."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import onnxjson
from tests.cli.running import run
from tests.editing.graphs import model_of
from tests.rendering.chromium import OVERFLOW, needs_chromium, opened, printed, sheets, written

MODELS = Path(__file__).parents[1] / "models"

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    model, changed = folder / "m.onnx", folder / "n.onnx"
    shutil.copy(MODELS / "encoder_ts.onnx", model)
    made = run("rewrite", "set-attribute", model, "op:Softmax", "axis", "2", "-o", changed)
    assert made.exit_code == 0, made.stderr
    run("diff", model, changed, "-o", folder / "diff.html")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "m.onnx"], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], check=True)
    shutil.copy(changed, model)
    subprocess.run([*git, "commit", "-qam", "b"], check=True)
    return {"diff": folder / "diff.html", "gate": folder / "out" / "gate.html"}


def test_the_page_of_a_gate_says_what_changed_before_anything_else(
    pages: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pages["gate"].parents[1])
    run("gate", "--base", "HEAD~1", "--verify-seconds", "0", "-o", "out")
    for width in (400, 1280):
        document = opened(pages["gate"], width, OVERFLOW)
        assert written(document, "wide") == ""
    texts = re.sub(r"<style.*?</style>|<script.*?</script>|<[^>]*>", " ", document, flags=re.DOTALL)
    assert re.search(r"m\.onnx\s+Softmax\.axis -1 -&gt; 2\s+in all 6 layers", texts[:2000])


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_of_a_diff_is_never_wider_than_the_window(pages: dict[str, Path], width: int) -> None:
    document = opened(pages["diff"], width, OVERFLOW)
    assert written(document, "wide") == ""
    assert written(document, "paper") == "rgb(255, 255, 255)"
    assert written(opened(pages["diff"], width, OVERFLOW, dark=True), "paper") == "rgb(13, 17, 23)"


@pytest.mark.parametrize("width", [400, 1280])
def test_long_names_before_and_after_share_the_width(width: int, tmp_path: Path) -> None:
    old, new = "o" * 150, "n" * 150
    nodes = f"{new} = Exp(x) {old} = Identity({new}) y = Relu({old})"
    onnxjson.save(model_of(f"g (float[2] x) => (float[2] y) {{ {nodes} }}"), tmp_path / "m.onnx")
    onnxjson.save(model_of(f"g (float[2] x) => (float[2] y) {{ {new} = Exp(x) y = Relu({new}) }}"), tmp_path / "n.onnx")
    run("diff", tmp_path / "m.onnx", tmp_path / "n.onnx", "-o", tmp_path / "diff.html")
    narrow = """
      const cells = [...document.querySelectorAll(".details td:not(:empty)")].map(each => each.offsetWidth);
      document.documentElement.dataset.narrowest = Math.min(...cells);
    """
    document = opened(tmp_path / "diff.html", width, OVERFLOW + narrow)
    assert written(document, "wide") == ""
    assert int(written(document, "narrowest")) > 50


def test_the_search_of_a_diff_lists_the_nodes_that_it_finds(pages: dict[str, Path]) -> None:
    script = """
      const search = document.querySelector(".search input");
      search.value = "layers.3 softmax";
      search.dispatchEvent(new Event("input"));
      const rows = [...document.querySelectorAll(".nodes tbody tr")].filter(row => !row.hidden);
      document.documentElement.dataset.rows = rows.map(row => row.cells[2].textContent).join(" ");
    """
    assert written(opened(pages["diff"], script=script), "rows") == "/layers.3/attention/Softmax"


def test_a_diff_is_printed_on_white_without_controls_and_folded_tables(pages: dict[str, Path]) -> None:
    script = """
      const after = name => getComputedStyle(document.querySelector(name)).breakAfter;
      const headings = ["h1", "h2", "h3", "summary", "article > header"].map(after);
      const tables = [...document.querySelectorAll("details:has(> .nodes)")].filter(each => each.checkVisibility());
      const folded = [...document.querySelectorAll("article details")].filter(each => !each.open);
      document.documentElement.dataset.breaks = [...new Set(headings), tables.length, folded.length].join(" ");
    """
    document = printed(pages["diff"], f"{script}{OVERFLOW}")
    assert [written(document, name) for name in ("cut", "wide", "controls")] == ["", "", ""]
    assert written(document, "paper") == "rgb(255, 255, 255)"
    assert written(document, "breaks") == "avoid 0 0"
    assert sheets(pages["diff"]) == 1


def test_a_table_of_nodes_that_is_unfolded_is_printed(pages: dict[str, Path]) -> None:
    script = """
      document.querySelector("details:has(> .nodes)").open = true;
      document.documentElement.dataset.tables = document.querySelector(".nodes").checkVisibility();
    """
    assert written(printed(pages["diff"], script), "tables") == "true"
