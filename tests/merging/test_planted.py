"""Two independent edits, one on each side and names of one side scrambled, merge to a model with both."""

import pytest

from onnxjson.merging.merge import merge
from tests.editing.graphs import EXPORTED, exported
from tests.merging.planting import has_both, pair


@pytest.mark.parametrize("name", EXPORTED)
def test_pairs_of_independent_edits_merge_to_both(name: str) -> None:
    base = exported(name)
    tried = 0
    for seed in range(12):
        given = pair(base, seed)
        if given is None:
            continue
        tried += 1
        merged = merge(given.base, given.ours.target, given.theirs.target)
        assert has_both(given, merged), (seed, given.edits, merged.conflicts)
    assert tried > 1
