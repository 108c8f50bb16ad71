"""What one side renames or takes away, and the other side's additions speak of."""

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.merging.merge import merge
from onnxjson.model.document import DeviceConfiguration, Model, NodeDeviceConfiguration
from tests.editing.graphs import model_of
from tests.merging.models import node


def shaped(size: str, outputs: str = "y", y: str | None = None) -> Model:
    """A model with a dimension of some size in all of its types."""
    types = ", ".join(f"float[{(y if name == 'y' else None) or size},3] {name}" for name in outputs.split())
    return model_of(
        f"""<ir_version: 10, opset_import: ["" : 20]>
        g (float[{size},3] x) => ({types}) {{ h = Relu(x) y = Abs(h) }}"""
    )


@pytest.mark.parametrize("size", ["4", "M"])
def test_an_output_that_is_added_has_the_size_that_the_other_side_gave_to_its_dimension(size: str) -> None:
    merged = merge(shaped("N"), shaped(size), shaped("N", "y h"))
    assert merged.is_clean
    assert merged.model == shaped(size, "y h")


def test_a_name_within_an_expression_follows() -> None:
    theirs = onnxjson.apply(shaped("N", "y h"), onnxjson.edits.SetDim(tensor="h", axis=1, size="2*N"))
    merged = merge(shaped("N"), shaped("M"), theirs)
    assert merged.is_clean
    assert merged.model.graph is not None
    assert '"2*M"' in str(merged.model.graph.output).replace("'", '"')


def test_a_dimension_that_got_several_sizes_is_a_conflict_with_one_more_use_of_it() -> None:
    merged = merge(shaped("N"), shaped("4", y="5"), shaped("N", "y h"))
    assert not merged.is_clean
    assert all(each.at.startswith(("/graph/input", "/graph/output")) for each in merged.conflicts)


def test_a_dimension_that_one_side_still_uses_is_left_alone() -> None:
    merged = merge(shaped("N"), shaped("N", y="M"), shaped("N", "y h"))
    assert merged.is_clean
    assert merged.model == shaped("N", "y h", y="M")


def placed(model: Model, position: int, name: str) -> Model:
    """A model with a node that is placed by a device configuration."""
    return node(position, device_configurations=(NodeDeviceConfiguration(name),))(model)


def configured(*names: str) -> Model:
    """A model with device configurations."""
    return replace(shaped("N"), configuration=tuple([DeviceConfiguration(name, 2) for name in names]))


@pytest.mark.parametrize("theirs", [placed(configured("b"), 1, "b"), configured()])
def test_a_node_is_not_placed_by_a_configuration_that_the_other_side_renamed_or_took_away(theirs: Model) -> None:
    base = placed(configured("a"), 1, "a")
    ours = placed(base, 0, "a")
    if not theirs.configuration:
        base, ours = configured("a"), placed(configured("a"), 0, "a")
    merged = merge(base, ours, theirs)
    assert [each.at.rpartition("/")[0] for each in merged.conflicts] == [
        "/configuration",
        "/graph/node/0/device_configurations",
    ]
    assert len({each.id for each in merged.conflicts}) == 1


def test_a_configuration_that_nobody_took_away_is_no_conflict() -> None:
    base = configured("a", "c")
    merged = merge(base, placed(base, 0, "a"), configured("a"))
    assert merged.is_clean
    assert merged.model == placed(configured("a"), 0, "a")
