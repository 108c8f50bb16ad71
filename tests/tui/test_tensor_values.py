"""The elements of a tensor as rows: slices, every dtype, what is read and what is not."""

from pathlib import Path

import numpy
import pytest

from onnxjson.model.dimensions import SliceError, parse_slice, slice_text
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import BITS, DATA_TYPE_NAMES
from onnxjson.model.elements import byte_length
from onnxjson.model.errors import EditError
from onnxjson.model.payloads import FileSlice, SourceFile
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson_tui.rows.tensor import SparseGrid, ValueGrid


@pytest.mark.parametrize(
    "text",
    ["[0, :, 3]", "", "...", "1", "-1, ..., -2", "[:, 1:3, ::2]", "::-1", "[2:0:-1,...]", " [ 0 , : ] ", "5:, 0,"],
)
def test_a_slice_picks_what_numpy_picks(text: str) -> None:
    array = numpy.arange(3 * 4 * 5).reshape(3, 4, 5)
    picks = parse_slice(text, array.shape)
    indexes = tuple([list(pick) if isinstance(pick, range) else [pick] for pick in picks])
    wanted = eval(f"array[{text.strip().strip('[]').rstrip(',') or '...'}]", {"array": array})
    assert array[numpy.ix_(*indexes)].reshape(-1).tolist() == wanted.reshape(-1).tolist()
    assert parse_slice(slice_text(picks, array.shape), array.shape) == picks


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[3]", "dimension 0 has 3 elements, so 3 is out of range"), ("[x]", "x is not an integer"),
        ("[0, 0, 0, 0]", "3 dimensions, but 4 are given"), ("[..., ...]", "may occur only once"),
        ("[::0]", "step must not be 0"), ("[1:2:3:4]", "too many colons"), ("[,]", "nothing is not an integer"),
    ],
)  # fmt: skip
def test_a_slice_that_is_wrong_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(SliceError, match=said):
        parse_slice(text, (3, 4, 5))


def _rows(grid: ValueGrid) -> list[list[str]]:
    return [grid.texts(row, 0, grid.columns) for row in range(grid.rows)]


def test_the_last_dimension_goes_to_the_right_and_the_others_down() -> None:
    array = numpy.arange(2 * 3 * 4, dtype=numpy.int32).reshape(2, 3, 4)
    grid = ValueGrid(from_numpy(array), parse_slice("", array.shape))
    assert _rows(grid) == [[str(each) for each in row] for row in array.reshape(6, 4).tolist()]
    assert [grid.row_label(row) for row in range(6)] == [f"[{a},{b},:]" for a in range(2) for b in range(3)]
    assert grid.column_label(3) == "3"


def test_a_slice_of_one_dimension_is_broken_into_rows_of_ten() -> None:
    array = numpy.arange(3 * 25, dtype=numpy.int64).reshape(3, 25)
    grid = ValueGrid(from_numpy(array), parse_slice("1", array.shape))
    rows = _rows(grid)
    assert rows[0] == [str(each) for each in range(25, 35)]
    assert rows[2] == [str(each) for each in range(45, 50)]
    assert [grid.row_label(row) for row in range(3)] == ["[1,0]", "[1,10]", "[1,20]"]


def test_columns_with_others_between_them_are_found() -> None:
    array = numpy.arange(70 * 90, dtype=numpy.float32).reshape(70, 90)
    grid = ValueGrid(from_numpy(array), parse_slice("[::-3, 1::2]", array.shape))
    assert _rows(grid) == [[f"{each:.6g}" for each in row] for row in array[::-3, 1::2].tolist()]
    column = ValueGrid(from_numpy(array), parse_slice("[:, 7]", array.shape))
    assert [each for row in _rows(column) for each in row if each] == [f"{each:.6g}" for each in array[:, 7].tolist()]


@pytest.mark.parametrize("data_type", sorted(BITS), ids=DATA_TYPE_NAMES.__getitem__)
def test_every_dtype_is_shown_from_any_place_on(data_type: int) -> None:
    count = 37
    length = byte_length(data_type, count)
    assert length is not None
    raw = numpy.random.default_rng(data_type).integers(0, 2 if data_type == 9 else 120, length, dtype=numpy.uint8)
    tensor = Tensor((count,), data_type=data_type, raw_data=raw.tobytes())
    whole = to_numpy(tensor)
    found = [each for row in _rows(ValueGrid(tensor, parse_slice("", (count,)))) for each in row if each]
    assert len(found) == count
    single = [_rows(ValueGrid(tensor, parse_slice(str(place), (count,))))[0][0] for place in range(count)]
    assert single == found
    if whole.dtype.kind in "iu":
        assert found == [str(each) for each in whole.tolist()]
    elif data_type not in (9, 14, 15):
        numbers = numpy.array([float(each) for each in found])
        assert numpy.allclose(numbers, whole.astype(numpy.float64), rtol=1e-5, equal_nan=True)


def test_strings_are_shown_visible() -> None:
    tensor = Tensor((2,), data_type=8, string_data=(b"plain", b"\x1b[31m\xff"))
    assert _rows(ValueGrid(tensor, parse_slice("", (2,)))) == [['"plain"', '"\\u{1b}[31m\\u{dcff}"']]


def test_scalars_and_empty_tensors() -> None:
    assert _rows(ValueGrid(Tensor((), data_type=1, raw_data=bytes(4)), ())) == [["0"]]
    assert ValueGrid(Tensor((0, 3), data_type=1, raw_data=b""), parse_slice("", (0, 3))).rows == 0
    assert ValueGrid(Tensor((3, 0), data_type=1, raw_data=b""), parse_slice("", (3, 0))).rows == 0


def test_an_element_that_the_bytes_do_not_have_cannot_be_edited() -> None:
    grid = ValueGrid(Tensor((3,), data_type=1, raw_data=bytes(4)), parse_slice("", (3,)))
    assert grid.exact(0, 0) == ["0.0"]
    with pytest.raises(EditError, match="do not have this element"):
        grid.exact(0, 2)
    texts = ValueGrid(Tensor((2,), data_type=8, string_data=(b"a", b"\xff")), parse_slice("", (2,)))
    assert texts.exact(0, 0) == ['"a"']
    with pytest.raises(EditError, match="not UTF-8"):
        texts.exact(0, 0, 2)


def test_of_a_big_tensor_only_what_is_seen_is_read(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    with file.open("wb") as stream:
        stream.truncate(400 << 20)
    reads: list[int] = []

    class Counting(SourceFile):
        __slots__ = ()

        def read_at(self, offset: int, length: int) -> bytes:
            reads.append(length)
            return super().read_at(offset, length)

    tensor = Tensor((10_240, 10_240), data_type=1, raw_data=FileSlice(Counting(file), 0, 400 << 20))
    grid = ValueGrid(tensor, parse_slice("", tensor.dims))
    assert grid.texts(3200, 1600, 32) == ["0"] * 32
    assert sum(reads) == 32 * 4
    column = ValueGrid(tensor, parse_slice("[:, 5]", tensor.dims))
    assert len(column.texts(0, 0, 32)) == 10
    assert sum(reads) <= 2 * 32 * 4


def test_the_elements_of_a_sparse_tensor_have_their_places() -> None:
    values = from_numpy(numpy.array([1.5, 2.5], numpy.float32))
    assert [SparseGrid(values, numpy.array([1, 7]), (2, 4)).row_label(row) for row in range(2)] == ["[0,1]", "[1,3]"]
    grid = SparseGrid(values, numpy.array([[0, 1], [1, 3]]), (2, 4))
    assert [grid.row_label(row) for row in range(2)] == ["[0,1]", "[1,3]"]
    assert _rows(grid) == [["1.5"], ["2.5"]]
