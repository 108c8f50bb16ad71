"""Seeds of long proofs, a part of which runs by default and all with ``tests/run --all``."""

from typing import Any

import pytest


def seeds(count: int, *, always: int) -> list[Any]:
    """The seeds from 0 to `count`, as parameters; those from `always` on are exhaustive."""
    return [pytest.param(seed, marks=pytest.mark.exhaustive if seed >= always else ()) for seed in range(count)]


def portions(count: int, *, always: int, size: int) -> list[Any]:
    """The seeds from 0 to `count`, as parameters that are ranges of `size`; those from `always` on are exhaustive."""
    return [
        pytest.param(
            range(first, min(first + size, count)),
            marks=pytest.mark.exhaustive if first >= always else (),
            id=f"{first}-{min(first + size, count) - 1}",
        )
        for first in range(0, count, size)
    ]
