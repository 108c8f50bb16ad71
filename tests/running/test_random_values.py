import numpy as np
import pytest

from onnxjson.model.dtypes import DATA_TYPE_NAMES
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson.running.random_values import SPREADS, random_array

TYPES = [number for number in DATA_TYPE_NAMES if number]


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("data_type", TYPES, ids=DATA_TYPE_NAMES.__getitem__)
def test_every_dtype_has_finite_values_that_the_seed_decides(data_type: int, spread: str) -> None:
    made = [
        from_numpy(random_array(data_type, (4, 5), np.random.default_rng(7), spread=spread), "x")  # type: ignore[arg-type]
        for _ in range(2)
    ]
    assert made[0] == made[1]
    tensor = made[0]
    assert (tensor.dims, tensor.data_type, tensor.name) == ((4, 5), data_type, "x")
    array = to_numpy(tensor)
    if array.dtype != object:
        assert np.isfinite(array.astype(np.complex128)).all()
    if (DATA_TYPE_NAMES[data_type], spread) != ("int2", "positive"):  # whose only positive value is 1
        assert len(set(array.reshape(-1).tolist())) > 1


@pytest.mark.parametrize("dims", [(), (0,), (2, 0, 3), (1, 1, 1)])
@pytest.mark.parametrize("data_type", TYPES, ids=DATA_TYPE_NAMES.__getitem__)
def test_every_shape_is_kept(data_type: int, dims: tuple[int, ...]) -> None:
    assert from_numpy(random_array(data_type, dims, np.random.default_rng(0))).dims == dims


def test_integers_stay_in_their_range() -> None:
    array = random_array(7, (1000,), np.random.default_rng(0), low=3, high=5)
    assert set(array.tolist()) == {3, 4, 5}
    assert set(random_array(2, (1000,), np.random.default_rng(0), low=-9, high=1).tolist()) == {0, 1}
    narrow = random_array(22, (1000,), np.random.default_rng(0), spread="wide").astype(int)
    assert set(narrow.tolist()) == set(range(-8, 8))


@pytest.mark.parametrize("data_type", [0, 99])
def test_dtype_that_does_not_exist_is_refused(data_type: int) -> None:
    with pytest.raises(TypeError, match="data type"):
        random_array(data_type, (1,), np.random.default_rng(0))
