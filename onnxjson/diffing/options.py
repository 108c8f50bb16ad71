"""What a comparison can be asked for, in words: the same in Python and on the command line."""

from typing import Final, Literal, get_args

Ignored = Literal["metadata", "docs", "names", "order", "weights"]
"""What a comparison can leave out."""

IGNORABLE: Final[tuple[Ignored, ...]] = get_args(Ignored)

WeightsComparison = Literal["exact", "tolerance", "skip"]
"""How elements are compared: by bits, within a tolerance, or not at all."""

WEIGHTS_COMPARISONS: Final[tuple[WeightsComparison, ...]] = get_args(WeightsComparison)
