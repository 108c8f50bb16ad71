"""Quantiles and numbers of different elements."""

import math

import numpy
import pytest

from onnxjson.model.document import Tensor
from onnxjson.model.tensor_statistics import spread
from onnxjson.model.tensors import from_numpy


def test_quantiles_are_those_of_numpy() -> None:
    array = numpy.random.default_rng(5).normal(size=1000).astype(numpy.float32)
    found = spread(from_numpy(array), (0.0, 0.25, 1.0))
    assert found.is_exact
    assert found.looked_at == 1000
    wanted = numpy.quantile(array.astype(numpy.float64), (0.0, 0.25, 1.0)).tolist()
    assert [value for _, value in found.quantiles] == pytest.approx(wanted)
    assert found.distinct is None


def test_of_many_elements_every_nth_is_looked_at_and_it_says_so() -> None:
    # More than one piece of 768 KiB, a step that divides none of them.
    array = numpy.arange(500_000, dtype=numpy.int32)
    found = spread(from_numpy(array), (0.0, 0.5), most=1000)
    assert not found.is_exact
    assert found.looked_at == 1000
    assert found.elements == 500_000
    assert found.quantiles[1][1] == pytest.approx(250_000, rel=0.01)


def test_nans_are_left_out_and_nothing_finite_has_no_quantiles() -> None:
    found = spread(from_numpy(numpy.array([math.nan, 1.0, math.inf], dtype=numpy.float32)), (0.5,))
    assert found.quantiles == ((0.5, 1.0),)
    assert spread(from_numpy(numpy.array([math.nan], dtype=numpy.float32))).quantiles == ()
    assert spread(Tensor(dims=(0,), data_type=1, raw_data=b"")).quantiles == ()


def test_different_whole_numbers_are_counted_in_all_elements() -> None:
    assert spread(from_numpy(numpy.array([3, 3, -1, 7, 7], dtype=numpy.int8)), most=2).distinct == 3
    assert spread(from_numpy(numpy.arange(10_000, dtype=numpy.int64))).distinct is None
    assert spread(Tensor(dims=(4,), data_type=22, raw_data=b"\x21\x21")).distinct == 2


def test_it_can_be_ended_between_pieces() -> None:
    class EnoughError(Exception):
        pass

    def look() -> None:
        raise EnoughError

    with pytest.raises(EnoughError):
        spread(from_numpy(numpy.zeros(3, numpy.float32)), looked=look)
