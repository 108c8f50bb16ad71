"""Work that is spread over processes."""

import os
from functools import partial

import pytest

from onnxjson.cli import processes


def _process(parent: int, number: int) -> tuple[int, bool]:
    """Fails in another process for odd numbers."""
    if os.getpid() != parent and number % 2:
        raise ValueError(number)
    return number, os.getpid() == parent


def test_work_after_a_slow_item_is_spread_and_failures_are_done_again_here(monkeypatch: pytest.MonkeyPatch) -> None:
    work = partial(_process, os.getpid())
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    assert processes._fitting() >= 1
    monkeypatch.setattr(processes, "_SLOW", 60.0)
    assert processes.spread(work, [0, 1, 2]) == [(0, True), (1, True), (2, True)]
    monkeypatch.setattr(processes, "_SLOW", 0.0)
    monkeypatch.setattr(processes, "_fitting", lambda: 2)
    assert processes.spread(work, [0, 1, 2]) == [(0, True), (1, True), (2, False)]
    with pytest.raises(ZeroDivisionError):
        processes.spread(partial(divmod, 1), [1, 0, 2])
