"""The page of a model as a browser shows it: lines, graph, search, and no overflow at any width."""

import re
import shutil
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.rendering.chromium import OVERFLOW, needs_chromium, opened, picture_bytes, printed, sheets, written

MODELS = Path(__file__).parents[1] / "models"

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    shutil.copy(MODELS / "encoder_ts.onnx", folder / "m.onnx")
    assert run("show", folder / "m.onnx", "-o", folder / "m.html").exit_code == 0
    return folder / "m.html"


def rows_of(document: str) -> list[str]:
    rows = re.findall(r'<div class="row[^"]*" id="row\d+".*?</div>', document)
    return [re.sub(r"<[^>]*>", "", row) for row in rows]


def test_the_page_shows_lines_and_a_graph_of_them(page: Path) -> None:
    document = opened(page)
    outline = run("show", page.with_suffix(".onnx"), "--outline").stdout.splitlines()
    assert [re.sub(r"^[▸▾]?|\s[\d,]+ nodes?$", "", row) for row in rows_of(document)] == [
        each.strip() for each in outline
    ]
    boxes = len(re.findall(r'<g class="(?:line|node)', document))
    assert boxes == sum("repeat" not in line for line in outline[1:])
    assert len(re.findall(r'<g class="frame', document)) == sum("repeat" in line for line in outline)
    assert len(re.findall(r'<g class="value', document)) == 3  # two inputs and an output
    assert document.count("<polygon") >= boxes
    assert int(written(document, "ready")) > 0


def test_an_unfolded_line_shows_its_nodes_in_list_and_graph(page: Path) -> None:
    key = 'for (const key of ["ArrowDown", "ArrowRight"]) tree.dispatchEvent(new KeyboardEvent("keydown", { key }));'
    before, document = opened(page), opened(page, script=key)
    assert len(rows_of(document)) > len(rows_of(before))
    assert document.count('<g class="node') > 0 == before.count('<g class="node')
    assert document.count('<g class="frame') == before.count('<g class="frame') + 1


def test_the_search_jumps_to_a_node_and_unfolds_the_lines_around_it(page: Path) -> None:
    script = """
      search.focus(); search.value = "layers.3 Softmax"; look();
      dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
      document.documentElement.dataset.here = document.querySelector(".row.here").textContent;
    """
    assert written(opened(page, script=script), "here") == "Softmax /layers.3/attention/Softmax"


@pytest.mark.parametrize("width", [400, 1280])
def test_the_first_look_is_not_blank(page: Path, width: int, tmp_path: Path) -> None:
    blank = picture_bytes("about:blank", tmp_path, width)
    assert picture_bytes(page.as_uri(), tmp_path, width) > 4 * blank


def test_numbers_of_nodes_are_not_cut_off_where_lines_are(page: Path) -> None:
    script = """{
      const numbers = [...document.querySelectorAll(".row code + i")].map(each => each.getBoundingClientRect());
      const inside = numbers.filter(place => place.left > 0 && place.right <= tree.getBoundingClientRect().right);
      const codes = [...document.querySelectorAll(".row code")].filter(each => each.scrollWidth > each.clientWidth);
      document.documentElement.dataset.numbers = [numbers.length - inside.length, numbers.length > 3, codes.length > 0];
    }"""
    assert written(opened(page, 400, script), "numbers") == "0,true,true"


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_window(page: Path, width: int) -> None:
    assert written(opened(page, width, OVERFLOW), "wide") == ""


def test_the_page_is_dark_where_the_reader_wants_it(page: Path) -> None:
    papers = [written(opened(page, script=OVERFLOW, dark=dark), "paper") for dark in (False, True)]
    assert papers == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]


UNFOLD = """
  for (let step = 0; step < 60; step++)
    for (const key of ["ArrowDown", "ArrowRight"]) tree.dispatchEvent(new KeyboardEvent("keydown", { key }));
"""


def test_all_unfolded_rows_are_printed_whole_on_white_without_controls(page: Path) -> None:
    count = """
      document.documentElement.dataset.rows = `${rows.children.length} of ${shown.length}`;
      tree.style.width = "15rem"; // lines are longer
    """
    for script in ("", UNFOLD):
        document = printed(page, f"{count}{OVERFLOW}", before=script)
        assert [written(document, name) for name in ("cut", "wide", "controls")] == ["", "", ""]
        assert written(document, "paper") == "rgb(255, 255, 255)"
        rows, _, total = written(document, "rows").partition(" of ")
        assert rows == total
    assert int(total) > 60
    assert sheets(page) == 2
