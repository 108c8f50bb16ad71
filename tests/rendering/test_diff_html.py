"""``rendering.diff_html`` and ``rendering.drawings``, read by an HTML parser of its own."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

import onnxjson
from onnxjson.diffing.events import Detail, Event, Member
from onnxjson.rendering import diff_html as page
from onnxjson.rendering.diff_html import SCRIPT, STYLE
from onnxjson.rendering.diff_report import Nodes, report
from onnxjson.rendering.drawings import LARGEST, Arrow, Picture, Shape, pictures, svg
from onnxjson.rendering.layered_layout import BETWEEN_BOXES, Box, lay_out
from tests.editing.graphs import model_of
from tests.rendering.differences import (
    HOSTILE,
    Made,
    align,
    example,
    hostile,
    hostile_names,
    model,
    networks,
    node,
    tensor,
)

VOID = {"meta", "input", "path", "polygon", "rect"}
ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "ul", "li", "a", "table", "thead",
    "tbody", "tr", "th", "td", "article", "header", "span", "code", "div", "figure", "figcaption", "svg", "g",
    "rect", "text", "path", "polygon", "details", "summary", "del", "ins", "input", "select", "option",
    "footer", "script", "b", "button", "section",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "class", "href", "id", "type", "placeholder",
    "aria-label", "aria-live", "autocomplete", "value", "hidden", "data-state", "xmlns", "role", "width",
    "height", "viewbox", "d", "points", "x", "y", "rx",
}  # fmt: skip


class Page(HTMLParser):
    """The elements of a page, checked for being closed in their order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.comments: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def html_of(made: Made, *names: str) -> str:
    return "".join(page.diff_html(report(made, *(names or ("before.onnx", "after.onnx")))))


def page_of_change(base: str, target: str) -> str:
    """Return the page about two graphs with these nodes."""
    before, after = (model_of(f"g (float[4] x) => (float[4] y) {{ {nodes} }}") for nodes in (base, target))
    return onnxjson.diff(before, after).to_html()


@pytest.fixture(scope="module")
def found() -> Page:
    return Page(html_of(example()))


def test_page_says_what_happened(found: Page) -> None:
    text = " ".join(each for texts in found.texts.values() for each in texts)
    for part in ("16 nodes before, 12 after, 7 matched", "MatMul+Add -> Gemm", "verified equal", "DIFFERENT RESULTS",
                 "[1, 1, 1, 1]", "[0, 0, 0, 0]", "@/graph/node/6 @/graph/node/7", "BatchNormalization"):  # fmt: skip
        assert part in text


def test_each_changed_pattern_is_drawn_before_and_after(found: Page) -> None:
    drawings = [attributes["aria-label"] for tag, attributes in found.elements if tag == "svg"]
    assert drawings == [
        "before: none of its nodes", "after: Gelu",
        "before: Conv, BatchNormalization", "after: Conv",
        "before: MatMul, Add", "after: Gemm",
        "before: Identity", "after: none of its nodes",
    ]  # fmt: skip


def test_changes_without_effect_are_folded_behind_the_others(found: Page) -> None:
    text = html_of(example())
    folded = text[text.index("9 changes without effect on results") :]
    assert "renamed</span><h3>" in folded
    assert "fused</span><h3>" not in folded
    assert text.index(">attribute-changed</span>") < text.index(">opset-changed</span>") < text.index(">renamed</span>")


def test_long_lists_of_values_are_folded() -> None:
    same, _ = networks()
    member = Member(("/graph",), ("/graph",), "", tuple(Detail("value", None, f"v{n}") for n in range(100)), 1040)
    text = html_of(Made(align(same, same), [Event("value-info-changed", "value_info added", (member,))]))
    assert "<details><summary>1,040 changes</summary>" in text
    assert "1,040 changes without effect on results" in text


def test_sizes_have_no_colour_of_good_or_bad() -> None:
    text = html_of(example())
    assert not re.search('class="[^"]*(?:more|less)', text)
    assert 'class="number">-128 bytes<' in text


def test_several_models_are_sections_of_one_page() -> None:
    shown = report(example(), "before.onnx", "after.onnx")
    sections = [f'<section id="m{n}">{"".join(page.diff_section(shown, f"m{n}"))}</section>' for n in range(2)]
    read = Page("".join(page.html_page("2 models", sections, "onnxjson diff")))
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids)) > 10
    assert {(each["href"] or "")[1:] for tag, each in read.elements if tag == "a"} <= set(ids)


def test_the_drawing_of_a_merge_shows_the_constant_that_is_left() -> None:
    base = model(
        [node("Add", "image copy", "a"), node("Mul", "a kept", "scores")], [tensor("copy", 1), tensor("kept", 1)], 17
    )
    target = model([node("Add", "image kept", "a"), node("Mul", "a kept", "scores")], [tensor("kept", 1)], 17)
    member = Member(("/graph/initializer/0", "/graph/node/0"), ("/graph/initializer/0",), "copy")
    _, after = pictures(member, Nodes(align(base, target))) or (None, None)
    assert after is not None
    assert [(shape.title, shape.status) for shape in after.shapes if shape.status == "constant"] == [
        ("kept", "constant")
    ]


def test_few_different_values_stand_beside_the_pattern() -> None:
    same, _ = networks()
    members = tuple(
        Member((f"/graph/node/{n}",), (f"/graph/node/{n}",), "p", (Detail("attribute pads", "[0]", f"[{n % 2}1]"),))
        for n in range(5)
    )
    text = html_of(Made(align(same, same), [Event("attribute-changed", "Conv.pads", members)]))
    header = text[text.index("<article") : text.index("</header>")]
    assert "[01]" in header
    assert "[11]" in header


def test_every_link_leads_to_a_place_on_the_page(found: Page) -> None:
    ids = {attributes["id"] for _, attributes in found.elements if "id" in attributes}
    links = {attributes["href"] or "" for tag, attributes in found.elements if tag == "a"}
    assert links
    assert {link.removeprefix("#") for link in links} <= ids


def test_table_holds_every_node(found: Page) -> None:
    states = [attributes["data-state"] for tag, attributes in found.elements if "data-state" in attributes]
    assert len(states) == 21
    assert states.count("removed") == 9
    assert states.count("added") == 5


@pytest.mark.parametrize("made", [example(), hostile()], ids=["example", "hostile"])
def test_page_loads_nothing_and_its_policy_allows_only_its_own_style_and_script(made: Made) -> None:
    text = html_of(made)
    policy = next(
        attributes["content"] or ""
        for tag, attributes in Page(text).elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (STYLE, SCRIPT)]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert text.index("Content-Security-Policy") < text.index("<style>")
    assert "url(" not in STYLE
    assert "@import" not in STYLE


@pytest.mark.parametrize("names", [("before.onnx", "after.onnx"), hostile_names()], ids=["plain", "hostile"])
def test_hostile_names_add_no_element_attribute_or_script(names: tuple[str, str]) -> None:
    text = html_of(hostile(), *names)
    read = Page(text)
    assert {tag for tag, _ in read.elements} <= ELEMENTS
    for tag, attributes in read.elements:
        assert attributes.keys() <= ATTRIBUTES, (tag, attributes)
    assert read.comments == []
    assert ("".join(read.texts["script"]), "".join(read.texts["style"])) == (SCRIPT, STYLE)
    assert text.count("<script") == text.count("</script") == 1
    assert text.count("<style") == text.count("</style") == 1
    shown = text.replace(STYLE, "").replace(SCRIPT, "")
    assert all(line.isprintable() for line in shown.splitlines())
    hrefs = [attributes["href"] or "" for tag, attributes in read.elements if tag == "a"]
    assert all(re.fullmatch(r"#e[0-9]+", href) for href in hrefs)


def test_page_does_for_phones_for_paper_and_for_the_dark() -> None:
    assert "@media (max-width:" in STYLE
    assert "@media print" in STYLE
    assert "prefers-color-scheme: dark" in STYLE
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in html_of(example())


def test_big_models_list_only_what_changed() -> None:
    nodes = [node("Relu", f"v{n}", f"v{n + 1}") for n in range(page.MOST_ROWS + 10)]
    big = model(nodes, (), 17)
    other = model([*nodes[:-1], node("Gelu", nodes[-1].input[0], "last")], (), 17)
    member = Member((f"/graph/node/{len(nodes) - 1}",), (f"/graph/node/{len(nodes) - 1}",))
    text = html_of(Made(align(big, other), [Event("replaced", "Relu -> Gelu", (member,))]))
    assert text.count("<tr data-state=") == 2
    assert "changed nodes of 4,011" in text


def test_very_many_patterns_end_in_a_sentence() -> None:
    same, _ = networks()
    member = Member(("/graph/node/0",), ("/graph/node/0",))
    events = [Event("field-changed", f"{n}", (member,)) for n in range(page.MOST_EVENTS + 5)]
    text = html_of(Made(align(same, same), [*events, Event("renamed", "nodes", (member,))]))
    assert text.count("<article") == page.MOST_EVENTS
    assert "6 more patterns not shown" in text
    ids = set(re.findall(r' id="(e[0-9]+)"', text))
    assert set(re.findall(r'href="#(e[0-9]+)"', text)) <= ids


def test_same_models() -> None:
    same, _ = networks()
    text = html_of(Made(align(same, same), equal=True))
    assert "The same: 16 nodes." in text
    Page(text)


def test_small_change_is_drawn_with_its_boundary_on_both_sides() -> None:
    made = example()
    before, after = pictures(made.events[3].members[0], Nodes(made.alignment)) or (None, None)
    assert before is not None
    assert after is not None
    assert [(shape.title, shape.status) for shape in before.shapes] == [
        ("active", "value"), ("same", "value"), ("Relu", "context"), ("Identity", "removed"), ("MaxPool", "context"),
    ]  # fmt: skip
    assert [(shape.title, shape.status) for shape in after.shapes] == [
        ("active", "value"), ("Relu", "context"), ("MaxPool", "context"),
    ]  # fmt: skip
    assert {(arrow.start, arrow.end) for arrow in before.arrows} == {(2, 0), (0, 3), (3, 1), (1, 4)}


def test_drawings_stay_small() -> None:
    nodes = [node("Add", f"v{n} w{n}", f"v{n + 1}") for n in range(500)]
    big, none = model(nodes, (), 17), model([], (), 17)
    member = Member(tuple(f"/graph/node/{n}" for n in range(500)), ())
    before, after = pictures(member, Nodes(align(big, none))) or (None, None)
    assert before is not None
    assert after is not None
    assert len(before.shapes) <= LARGEST
    assert before.left_out > 400


def test_changes_that_are_about_no_node_have_no_drawing() -> None:
    made = example()
    assert pictures(Member(("/opset_import/0",), ("/opset_import/0",)), Nodes(made.alignment)) is None


def test_boxes_do_not_touch_and_lines_go_down() -> None:
    boxes = [Box(40 + 10 * (n % 5), 20 + n % 3) for n in range(30)]
    edges = [(n, m) for n in range(30) for m in range(n + 1, 30) if (n * 7 + m * 3) % 11 == 0]
    layout = lay_out(boxes, edges)
    for n, (box, centre) in enumerate(zip(boxes, layout.centres, strict=True)):
        assert centre.x - box.width / 2 >= -1e-6
        assert centre.x + box.width / 2 <= layout.width + 1e-6
        assert centre.y + box.height / 2 <= layout.height + 1e-6
        for other, place in list(zip(boxes, layout.centres, strict=True))[n + 1 :]:
            apart = abs(centre.x - place.x) - (box.width + other.width) / 2
            assert abs(centre.y - place.y) > (box.height + other.height) / 2 or apart >= BETWEEN_BOXES - 1e-6
    for start, end in edges:
        assert layout.centres[start].y < layout.centres[end].y
    assert lay_out(boxes, edges) == layout


def test_names_are_whole_on_several_lines_and_states_have_a_mark() -> None:
    name = "/encoder/layers.11/attention/self/query/MatMul_output_0"
    drawing = svg(Picture((Shape("Add", name, "added"), Shape("Mul", "m", "context")), (), 0), "names")
    texts = re.findall(r"<text[^>]*>(.*?)</text>", drawing)
    assert texts[0] == "+ Add"
    assert "".join(texts[1:-2]) == name
    assert max(map(len, texts)) <= 30
    assert texts[-2:] == ["Mul", "m"]


def test_an_empty_side_says_why() -> None:
    new = Event("inserted", "Abs", (Member((), ("/graph/node/1",)),))
    sides = Picture((), (), 0), Picture((Shape("Abs", "z", "added"),), (), 0)
    text = "".join(page.event_article("e0", new, sides, says_verdict=False))
    assert "nothing: these nodes are new" in text
    assert "+ Abs" in text


@pytest.mark.parametrize(
    ("base", "target", "verdict"),
    [
        ("y = Relu(x)", "y = Abs(x)", ("open", "may change the results; onnxjson verify compares the outputs")),
        ("t = Relu(x) y = Abs(t)", "t2 = Relu(x) y = Abs(t2)", ("good", "Nothing changes what the model computes")),
    ],
)
def test_a_page_begins_with_a_verdict(base: str, target: str, verdict: tuple[str, str]) -> None:
    match = re.search(r'</h1>\n<p class="verdict (.*?)">(.*?)</p>', page_of_change(base, target))
    assert match is not None
    assert match[1] == verdict[0]
    assert match[2].endswith(verdict[1])


def test_cycles_and_loops_are_drawn_all_the_same() -> None:
    boxes = [Box(40, 20)] * 3
    layout = lay_out(boxes, [(0, 1), (1, 2), (2, 0), (1, 1)])
    assert len(layout.lines) == 4
    assert all(len(line) >= 2 for line in layout.lines)
    assert lay_out([], []).centres == ()
    svg(Picture((Shape("a", "", "value"),), (Arrow(0, 0, "changed"),), 0), "loop")


@pytest.mark.parametrize("name", HOSTILE)
def test_drawing_of_a_hostile_name_has_only_its_own_elements(name: str) -> None:
    from onnxjson.model.display import visible

    shown = visible(name, 400)
    drawing = svg(Picture((Shape(shown, shown, "added"), Shape(shown, "", "value")), (Arrow(0, 1, "added"),), 0), shown)
    read = Page(drawing)
    tags = [tag for tag, _ in read.elements]
    assert tags.count("text") >= 3  # long names have several lines
    assert [tag for tag in tags if tag != "text"] == [
        "svg",
        "path",
        "polygon",
        "g",
        "title",
        "rect",
        "g",
        "title",
        "rect",
    ]
    assert read.elements[0][1]["aria-label"] == shown
