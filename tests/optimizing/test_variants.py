"""Variants and grids as words."""

import pytest

from onnxjson.model.errors import ParameterError
from onnxjson.optimizing.variants import PRESETS, parse_grid, parse_variant
from onnxjson.running.tasks import Settings


@pytest.mark.parametrize(("text", "name", "steps", "level"), [
    ("plain=", "plain", [], None),
    ("plain=@off", "plain", [], "off"),
    ("both = onnxoptimizer, onnxsim", "both", ["onnxoptimizer", "onnxsim"], None),
    ("a=onnxsim{fold=false,skip=[x,y]},prune@basic", "a", ['onnxsim{fold=false,skip=["x", "y"]}', "prune"], "basic"),
    ("twice=onnxslim*@all", "twice", ["onnxslim*"], "all"),
])  # fmt: skip
def test_a_variant_is_a_name_with_passes_and_a_level(text: str, name: str, steps: list[str], level: str | None) -> None:
    found = parse_variant(text)
    assert (found.name, [str(step).replace(", ", ",") for step in found.steps], found.level) == (
        name, [step.replace(", ", ",") for step in steps], level
    )  # fmt: skip


@pytest.mark.parametrize("text", ["onnxsim", "=onnxsim", "onnxsim{fold=false}", "a=onnxsimm", "a=onnxsim@most"])
def test_what_is_no_variant_is_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        parse_variant(text)


def test_presets_are_variants_and_only_quantized_ones_trade_numbers() -> None:
    for texts in PRESETS.values():
        found = [parse_variant(text) for text in texts]
        assert len({each.name for each in found}) == len(found)
        assert [each.is_exact for each in found] == [
            not each.name.startswith(("int8", "float16", "mixed")) for each in found
        ]


def test_a_grid_is_every_combination_once() -> None:
    found = parse_grid(["threads=1,2 mode=sequential,parallel", "level=all,basic"]).settings(Settings(level="off"))
    assert [(each.threads, each.parallel, each.level) for each in found] == [
        (threads, parallel, level) for threads in (1, 2) for parallel in (0, 2) for level in ("basic", "all")
    ]


def test_what_a_grid_does_not_name_stays() -> None:
    base = Settings(level="basic", threads=3, parallel=4, providers=("A",))
    assert parse_grid(["threads=1"]).settings(base) == [
        Settings(level="basic", threads=1, parallel=4, providers=("A",))
    ]
    assert [each.parallel for each in parse_grid(["mode=parallel", "parallel=2,8"]).settings(base)] == [2, 8]
    assert [each.parallel for each in parse_grid(["parallel=2"]).settings(base)] == [0, 2]
    assert [each.binding for each in parse_grid(["binding=on,off"]).settings(base)] == [True, False]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("thread=1", "did you mean"),
        ("mode=both", "not a mode"),
        ("binding=maybe", "not a binding"),
        ("level=most", "not a level"),
        ("threads=x", "not a number"),
    ],
)
def test_what_is_no_grid_is_refused(word: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        parse_grid([word])
