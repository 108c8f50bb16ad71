from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from onnxjson.running.comparisons import EXACT, TOLERANCES, Tolerance, compare, tolerance_of

NAN, INFINITY = float("nan"), float("inf")


def test_nan_equals_nan_and_infinity_the_same_infinity() -> None:
    values = np.array([NAN, INFINITY, -INFINITY, 0.0, 1.0], np.float32)
    comparison = compare(values, np.array([NAN, INFINITY, -INFINITY, -0.0, 1.0], np.float32))
    assert comparison.equal
    assert comparison.close
    assert (comparison.largest_absolute, comparison.worst) == (0.0, None)


@pytest.mark.parametrize(
    ("one", "other"), [(NAN, 1.0), (1.0, NAN), (INFINITY, 1.0), (INFINITY, -INFINITY), (NAN, INFINITY)]
)
def test_what_is_finite_on_one_side_only_is_outside_of_any_tolerance(one: float, other: float) -> None:
    loose = Tolerance(absolute=1e30, relative=1e30, of_scale=1e30)
    found = compare(np.array([5.0, one], np.float32), np.array([6.0, other], np.float32), loose)
    assert not found.close
    assert (found.unequal, found.outside, found.worst) == (2, 1, (1,))


def test_figures_are_those_of_the_worst_element() -> None:
    comparison = compare(np.array([[1.0, 100.0], [-2.0, 0.0]]), np.array([[1.0, 101.0], [-2.5, 0.0]]))
    assert (comparison.elements, comparison.unequal, comparison.outside) == (4, 2, 2)
    assert (comparison.largest_absolute, comparison.largest_relative, comparison.worst) == (1.0, 0.25, (0, 1))
    assert comparison.cosine == pytest.approx(0.99998, abs=1e-4)


def test_the_relative_difference_from_zeros_alone_is_infinite() -> None:
    assert compare(np.array([0.0, 0.0]), np.array([0.0, 0.1])).largest_relative == INFINITY
    assert compare(np.array([0.0, 2.0]), np.array([0.1, 1.0])).largest_relative == 0.5


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [(np.float64, np.int64), (np.float32, np.int32), (np.float16, np.int16), (ml_dtypes.bfloat16, np.int16)],
)
def test_units_in_the_last_place_are_counted_across_zero(dtype: Any, bits: Any) -> None:
    one: NDArray[Any] = np.array([1.0, 0.0, -1.0], dtype)
    other: NDArray[Any] = (one.view(bits) + np.array([1, 1, -1], bits)).view(dtype)
    assert compare(one, other).largest_ulp == 1
    tiny: NDArray[Any] = np.array([1], bits).view(dtype)
    assert compare(tiny, -tiny).largest_ulp == 2


def test_units_in_the_last_place_do_not_overflow() -> None:
    for dtype in (np.float64, np.float32, np.float16):
        top = np.finfo(dtype).max
        assert (compare(np.array([top]), np.array([-top])).largest_ulp or 0) > 2 ** (np.dtype(dtype).itemsize * 8 - 2)


def test_error_of_sums_that_cancel_goes_with_the_largest_element() -> None:
    base, target = np.array([1000.0, 1e-3], np.float32), np.array([1000.0, 2e-3], np.float32)
    assert compare(base, target).close
    assert not compare(base[1:], target[1:]).close
    assert not compare(base, target, Tolerance(relative=1e-4)).close


@pytest.mark.parametrize("mask", [-3.4e38, -1e9, -1e4])
def test_values_of_a_mask_excuse_nothing_beside_them(mask: float) -> None:
    base = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
    base[np.triu_indices(16, 1)] = mask
    target = base.copy()
    target[3, 2] += 0.01
    assert not compare(base, target).close
    target[3, 2] = base[3, 2] + 1e-6
    assert compare(base, target).close


@pytest.mark.parametrize("mask", [-3.4e38, -1e9])
def test_one_value_of_a_mask_excuses_nothing_beside_it(mask: float) -> None:
    base = np.array([[0.5, -2.0, 3.0, 0.1, -0.7, 1.5, 0.9, mask]], np.float32)
    target = base.copy()
    target[0, :7] *= -1
    found = compare(base, target)
    assert (found.outside, found.scale) == (7, 3.0)
    assert compare(base, base * np.float32(1 + 1e-6)).close


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_scores_are_not_measured_by_the_boxes_they_are_joined_with(axis: int) -> None:
    random = np.random.default_rng(0)
    boxes, scores = random.uniform(0, 640, (4, 5, 20)), random.uniform(0, 1e-3, (4, 5, 20))
    base = np.concatenate([boxes, scores], axis).astype(np.float32)
    assert not compare(base, np.concatenate([boxes, scores * 1.5], axis).astype(np.float32)).close
    moved = scores.copy()
    moved[1, 2, 3] += 1e-5
    assert compare(base, np.concatenate([boxes, moved], axis).astype(np.float32)).outside == 1
    moved[1, 2, 3] = scores[1, 2, 3] + 1e-9
    assert compare(base, np.concatenate([boxes, moved], axis).astype(np.float32)).close


def test_few_elements_have_no_scale_of_their_own() -> None:
    base = np.full((2, 15), 1e-3, np.float32)
    base[0] = np.linspace(50, 100, 15)
    target = base.copy()
    target[1] += 1e-4
    assert compare(base, target).close
    assert not compare(np.repeat(base, 2, axis=1), np.repeat(target, 2, axis=1)).close
    zeros = np.concatenate([base, np.zeros((1, 15), np.float32)]).repeat(2, axis=1)
    target = zeros.copy()
    target[2, 0] = 1e-4
    assert compare(zeros, target).close


def test_joined_parts_may_be_computed_from_each_other() -> None:
    base = np.full((2, 20), 1e-7, np.float32)
    base[0] = np.linspace(0.5, 1, 20)
    target = base.copy()
    target[1] += 5e-10
    assert compare(base, target).close
    target[1] += 5e-9
    assert not compare(base, target).close


def test_noise_is_allowed_where_it_is_and_no_more_than_the_most() -> None:
    base, noise = np.array([1.0, 1.0, 1.0, 1.0]), np.array([0.1, 0.002, 0.0, 0.0])
    tolerance = Tolerance(relative=0.01)
    for gaps, outside in ([0.09, 0.019, 0.009, 0.0], 0), ([0.11, 0.0, 0.0, 0.0], 1), ([0.09, 0.021, 0.011, 0.0], 2):
        assert compare(base, base + gaps, tolerance, noise).outside == outside
        assert not compare(base, base + gaps, tolerance).close


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, ml_dtypes.int4, np.int8])
def test_integers_are_exact(dtype: Any) -> None:
    one: NDArray[Any] = np.array([0, 1, 1]).astype(dtype)
    other: NDArray[Any] = np.array([0, 1, 0]).astype(dtype)
    assert compare(one, one).equal
    found = compare(one, other)
    assert (found.close, found.unequal, found.worst) == (False, 1, (2,))


def test_integers_that_float64_cannot_tell_apart_differ() -> None:
    found = compare(np.array([2**62, 5]), np.array([2**62 + 1, 5]))
    assert (found.unequal, found.outside) == (1, 1)
    assert not found.close


def test_integers_may_be_given_a_tolerance() -> None:
    found = compare(np.array([10, 20], np.uint8), np.array([11, 20], np.uint8), Tolerance(absolute=1))
    assert (found.equal, found.close) == (False, True)


def test_strings_are_compared_as_they_are() -> None:
    one = np.array(["a", "é"], object)
    assert compare(one, one.copy()).equal
    assert compare(one, np.array(["a", "e"], object)).worst == (1,)


def test_complex_numbers_are_compared_by_their_distance() -> None:
    found = compare(np.array([3 + 4j], np.complex64), np.array([3 + 4j + 1e-6j], np.complex64))
    assert found.close
    assert not compare(np.array([3 + 4j], np.complex64), np.array([3 + 5j], np.complex64)).close


def test_other_shapes_are_a_problem_and_empty_arrays_are_equal() -> None:
    found = compare(np.zeros((2, 3)), np.zeros((3, 2)))
    assert (found.problem, found.close, found.equal) == ("shape [2, 3] against [3, 2]", False, False)
    empty = compare(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32))
    assert (empty.elements, empty.equal, empty.largest_absolute) == (0, True, None)


def test_scalars_have_a_place_too() -> None:
    assert compare(np.array(1.0), np.array(2.0)).worst == ()


def test_cosine_of_zeros_and_of_large_numbers() -> None:
    zeros, ones = np.zeros(3), np.ones(3)
    assert compare(zeros, zeros).cosine == 1.0
    assert compare(zeros, ones).cosine is None
    assert compare(ones, -ones).cosine == pytest.approx(-1)
    assert compare(ones * 1e300, ones * 1e300).cosine == pytest.approx(1)


def test_least_precise_dtype_decides() -> None:
    kinds = np.dtype(np.float32), np.dtype(np.float16)
    assert tolerance_of([kind.name for kind in kinds]) == TOLERANCES["float16"]
    assert tolerance_of(["int64"]) == EXACT
    assert compare(np.array([1.0], np.float32), np.array([1.001], np.float16)).close
    mine = {"float32": Tolerance(relative=0.5)}
    assert tolerance_of([kinds[0].name], mine) == Tolerance(relative=0.5)


def test_elements_that_are_finite_on_one_side_only_are_counted() -> None:
    base = np.array([1, np.nan, np.inf, np.inf, 2, np.nan], np.float32)
    target = np.array([1, np.nan, np.inf, -np.inf, np.nan, 3], np.float32)
    found = compare(base, target)
    assert (found.unequal, found.outside, found.nonfinite) == (3, 3, 3)
    assert found.worst == (3,)


def test_a_cosine_is_never_more_than_one() -> None:
    numbers = np.random.default_rng(0).standard_normal((200, 7)).astype(np.float32)
    assert all(abs(compare(each, -each).cosine or 0) <= 1 for each in numbers)
