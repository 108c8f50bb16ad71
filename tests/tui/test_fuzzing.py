"""Random keys: what always holds, holds; `python -m tests.tui.fuzzing` presses many more."""

import random
from pathlib import Path

import pytest

from tests.tui.fuzzing import fuzz, merged, models


@pytest.mark.parametrize(
    ("seed", "size"),
    [
        (1, (80, 24)),
        (2, (120, 40)),
        pytest.param(3, (60, 20), marks=pytest.mark.exhaustive),
        pytest.param(4, (160, 45), marks=pytest.mark.exhaustive),
    ],
)
def test_random_keys_break_nothing(seed: int, size: tuple[int, int]) -> None:
    exports = [] if seed % 2 else sorted((Path(__file__).parent.parent / "models").glob("*.onnx"))
    pressed, _ = fuzz(models(random.Random(seed), exports), seed, 400, size)
    assert pressed


@pytest.mark.parametrize("seed", [1, 2, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_random_keys_on_conflicts_lose_nothing(seed: int) -> None:
    pressed, _ = fuzz(merged(random.Random(seed)), seed, 100, (80, 24) if seed % 2 else (60, 20))
    assert pressed
