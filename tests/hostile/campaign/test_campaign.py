"""A small share of each part of the campaign."""

from collections.abc import Callable, Iterator

import pytest

from tests.hostile.campaign.children import Outcome
from tests.hostile.campaign.commands import commands
from tests.hostile.campaign.crashers import crashers
from tests.hostile.campaign.guided import guided
from tests.hostile.campaign.journals import journals
from tests.hostile.campaign.machines import faults, has_strace, killed_calls, kills, memory
from tests.hostile.campaign.terminals import terminals

SHARES: list[tuple[Callable[[int, int], Iterator[Outcome]], int]] = [
    (commands, 40), (kills, 32), (memory, 14), (faults, 24), (killed_calls, 16), (journals, 80), (crashers, 15),
    (terminals, 30), (guided, 160),
]  # fmt: skip


@pytest.mark.parametrize(("part", "count"), SHARES, ids=lambda value: getattr(value, "__name__", ""))
def test_nothing_is_wrong_in_a_share(part: Callable[[int, int], Iterator[Outcome]], count: int) -> None:
    if part in (faults, killed_calls) and not has_strace():
        pytest.skip("strace is not installed")
    outcomes = list(part(count, 0))
    assert len(outcomes) >= count / 2
    assert [f"{each.name}: {each.problem}" for each in outcomes if each.problem] == []
