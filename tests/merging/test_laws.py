"""Laws of merges on random triples; `python -m tests.merging.laws 20000` holds them of as many as the issue asks."""

import pytest

from tests.merging.laws import require_laws
from tests.merging.triples import triple


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_merges_of_random_triples_keep_the_laws(first: int) -> None:
    for seed in range(first, first + 20):
        try:
            require_laws(triple(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("seed", [8466, 12883, 13349, 14372, 16078])
def test_merges_that_once_broke_a_law(seed: int) -> None:
    require_laws(triple(seed, texts=False))


def test_nodes_that_come_back_behind_one_maker_keep_the_order_of_their_slots() -> None:
    require_laws(triple(18539, texts=True))


def test_graphs_of_nodes_that_only_the_merge_pairs_are_pairs_too() -> None:
    require_laws(triple(8905, texts=True))


def test_a_base_that_is_refused_as_a_whole_is_refused_one_by_one_too() -> None:
    require_laws(triple(14419, texts=True))
