"""What a benchmark found, as lines, Markdown, CSV and bars."""

import csv
from itertools import pairwise
from xml.etree import ElementTree

import msgspec
import pytest

from onnxjson.optimizing.variants import BenchReport, BenchRow
from onnxjson.rendering.bench_report import (
    TIME_COLUMNS,
    report_csv,
    report_data,
    report_lines,
    report_markdown,
    report_svg,
)
from onnxjson.rendering.tables import cells
from onnxjson.running.tasks import Settings

ALL = Settings(level="all")
ROW = BenchRow(
    model="m.onnx",
    variant="original",
    settings=ALL,
    engine="onnxruntime 1.31.1",
    providers=("CPUExecutionProvider",),
    nodes=1234,
    parameters=25_600_000,
    bytes=102_400_000,
    verdict="same",
    largest_difference=0.0,
    times=(0.0301, 0.0285, 0.0295),
    starts=(0.5,),
    offline_starts=(0.25,),
)
OTHER = msgspec.structs.replace(
    ROW, variant="模型\x1b[31m" + "long " * 20, times=(0.02, 0.5), verdict="differs", is_exact=False, passes=("p",)
)
FAILED = BenchRow(
    model="m.onnx", variant="broken|", settings=ALL, verdict="fails", problem="it <crashed>", passes=("p",)
)


def report(*rows: BenchRow, is_tuned: bool = False) -> BenchReport:
    return BenchReport(rows=rows, sizes={"m.onnx": {"N": 4}}, rounds=3, is_tuned=is_tuned)


def text(found: BenchReport, width: int = 80) -> list[str]:
    return ["".join(span.text for span in line) for line in report_lines(found, width)]


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(width: int) -> None:
    lines = text(report(ROW, OTHER, FAILED), width)
    assert max(map(cells, lines)) <= width
    whole = "\n".join(lines)
    for word in ("29.5", "25,600,000", "102,400.0", "1,234", "500", "250", "differs", "fails", "it <crashed>", "N=4"):
        assert word in whole
    assert "\x1b" not in whole


def test_columns_that_say_nothing_are_left_out() -> None:
    words = [word for line in text(report(ROW, OTHER)) if line.startswith("optimization") for word in line.split()]
    assert not {"loss", "metric", "session"} & set(words)
    scored = msgspec.structs.replace(ROW, scores={"metric": 0.5, "loss": 0.125, "words": 3.0})
    heads = [line for line in text(report(scored, OTHER), 160) if line.startswith("optimization")]
    assert heads[0].split()[1:8] == ["parameters", "ms", "p95", "speed-up", "loss", "metric", "words"]


def test_speed_up_is_the_time_of_the_original_by_that_of_a_row() -> None:
    fast = msgspec.structs.replace(ROW, variant="fast", times=(0.01,), passes=("p",))
    found = report(ROW, fast, FAILED)
    lines = text(found)
    head = next(line for line in lines if "speed-up" in line)
    assert [line.split()[4] for line in lines[lines.index(head) + 1 :][:3]] == ["1x", "2.95x", "-"]
    assert max(map(cells, lines)) <= 80
    assert [row["speedup"] for row in csv.DictReader(report_csv(found).splitlines())] == ["1", "2.95", ""]
    assert report_data(found)["rows"][1]["time"]["speedup"] == pytest.approx(2.95)
    assert not any(line.startswith("optimization") and "speed-up" in line for line in text(report(ROW)))


def test_a_sentence_says_how_many_rows_were_verified_and_how() -> None:
    wrong = msgspec.structs.replace(ROW, verdict="differs")
    rows = [
        msgspec.structs.replace(ROW, compared=3),
        msgspec.structs.replace(OTHER, compared=3, largest_difference=2.0, largest_share=0.04),
        msgspec.structs.replace(wrong, compared=3),
        FAILED,
        msgspec.structs.replace(FAILED, verdict="", problem=""),
    ]
    said = " ".join(" ".join(text(report(*rows), 160)).split())
    assert (
        "verified on 3 sets of values: outputs of 1 of 5 rows are equal within the tolerance, "
        "1 trades accuracy, by up to 4.0% of the largest, 1 differs, 1 fails, 1 not compared"
    ) in said


def test_the_best_session_is_marked_and_said() -> None:
    slow = msgspec.structs.replace(ROW, settings=Settings(level="off", threads=2, parallel=3), times=(0.04,))
    wrong = msgspec.structs.replace(ROW, settings=Settings(level="basic"), times=(0.01,), verdict="differs")
    found = report(ROW, slow, wrong, is_tuned=True)
    assert list(found.best.values()) == [ROW]
    lines = text(found)
    assert any(line.startswith("original *") and " all " in line for line in lines)
    assert any("off 2t 3p" in line for line in lines)
    assert "best of original: --threads 1 --level all --parallel 0 (sequential), 29.5 ms" in lines
    assert [row["best"] for row in report_data(found)["rows"]] == [True, False, False]


def test_times_stand_apart_from_all_that_another_run_finds_again() -> None:
    again = [msgspec.structs.replace(row, times=(1.0,), starts=(2.0,), offline_starts=()) for row in (ROW, OTHER)]
    one, other = [report_data(report(*rows))["rows"] for rows in ((ROW, OTHER), again)]
    for rows in (one, other):
        for row in rows:
            row.pop("time")
    assert one == other
    tables = [list(csv.DictReader(report_csv(report(*rows)).splitlines())) for rows in ((ROW, OTHER), again)]
    differing = {key for row, same in zip(*tables, strict=True) for key in row if row[key] != same[key]}
    assert differing <= set(TIME_COLUMNS)


def test_markdown_has_a_row_for_each_variant_whatever_it_is_called() -> None:
    lines = report_markdown(report(ROW, FAILED)).splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 3
    assert rows[2].startswith("| broken\\| |")
    assert lines[-1] == "- broken\\|: it &lt;crashed>"


def test_the_chart_has_a_bar_for_each_time_that_fits() -> None:
    tree = ElementTree.fromstring(report_svg(report(ROW, OTHER, FAILED)))
    width = float(tree.attrib["width"])
    bars = tree.findall("{http://www.w3.org/2000/svg}rect")
    assert len(bars) == 2
    assert all(float(bar.attrib["x"]) + float(bar.attrib["width"]) < width for bar in bars)
    words = [each.text for each in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert "fails" in words
    assert all("\x1b" not in (word or "") for word in words)


def test_nothing_overlaps_in_the_chart_and_nothing_leaves_it() -> None:
    wide = msgspec.structs.replace(ROW, variant="W" * 80, settings=Settings(level="off", threads=16), bytes=2 * 10**9)
    slow = msgspec.structs.replace(wide, variant="slow", times=(9.0,), verdict="differs", is_exact=False)
    tree = ElementTree.fromstring(report_svg(report(ROW, OTHER, FAILED, wide, slow)))
    texts = [each for each in tree.iter("{http://www.w3.org/2000/svg}text") if each.text]
    spans: dict[float, list[tuple[float, float]]] = {}
    for each in texts:
        points = cells(each.text or "") * 6.6  # of a plain font of this size
        points += sum(letter in "MW" for letter in each.text or "") * 5.4
        points = float(each.attrib.get("textLength", points))
        x = float(each.attrib["x"])
        spans.setdefault(float(each.attrib["y"]), []).append(
            (x - points, x) if each.attrib.get("text-anchor") == "end" else (x, x + points)
        )
    heights = sorted(spans)
    assert all(below - above >= 12 for above, below in pairwise(heights))
    for row in spans.values():
        ordered = sorted(row)
        assert ordered[0][0] >= 0
        assert ordered[-1][1] <= float(tree.attrib["width"])
        assert all(left[1] < right[0] for left, right in pairwise(ordered))
    assert heights[-1] < float(tree.attrib["height"])


def test_nothing_measured_is_a_table_all_the_same() -> None:
    empty = report(BenchRow(model="m.onnx", variant="original", settings=ALL))
    assert any("nothing was measured" in line or "N=4" in line for line in text(empty))
    assert ElementTree.fromstring(report_svg(empty)) is not None
    assert report_csv(empty).count("\n") == 2


@pytest.mark.parametrize("name", ["=1+1.onnx", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\x1b]0;title\x07"])
def test_cells_of_csv_are_no_formulas_and_no_commands(name: str) -> None:
    row = msgspec.structs.replace(ROW, model=name, problem=name, passes=(name,))
    (found,) = csv.DictReader(report_csv(report(row)).splitlines())
    for cell in (found["model"], found["problem"], found["passes"]):
        assert cell[0] not in "=+-@\t\r\x1b"
        assert cell.isprintable()


@pytest.mark.parametrize(
    ("verdict", "one", "several"),
    [("differs", "1 differs", "2 differ"), ("fails", "1 fails", "2 fail"),
     ("", "1 not compared: an output is empty", "2 not compared: an output is empty")],
)  # fmt: skip
def test_verdicts_are_sentences(verdict: str, one: str, several: str) -> None:
    row = msgspec.structs.replace(ROW, verdict=verdict, compared=3)
    assert one in " ".join(" ".join(text(report(row))).split())
    assert several in " ".join(" ".join(text(report(row, row))).split())


def test_a_row_that_was_not_compared_is_not_fine() -> None:
    assert ROW.is_fine
    assert not msgspec.structs.replace(ROW, verdict="").is_fine
