"""Numbers for computations: two nodes have one number if, and only if, they provably compute the same values.

By exact hash-consing over the operator with its attributes and the numbers of the inputs (value numbering); nothing is
believed for a hash alone.
"""

from typing import Final

from onnxjson.matching.columns import SHIFT, SLOT, Columns, Interner
from onnxjson.matching.ordering import by_dependence

UNKNOWN: Final = 1 << 40
"""From here on, numbers of computations that only one graph has."""


def number(columns: Columns, interner: Interner, *, add: bool = True) -> list[int]:
    """The number of each node's computation.

    Args:
        columns: a graph.
        interner: has the numbers that are known.
        add: whether computations that are not known get one. Else theirs are from UNKNOWN on, each another.
    """
    known = interner.forward
    codes, starts = columns.code_list, columns.start_list
    labels: list[int] = columns.label.tolist()
    commutative: list[bool] = columns.commutative.tolist()
    numbers = [0] * len(columns)
    unknown = UNKNOWN
    for position in by_dependence(columns):
        inputs = codes[starts[position] : starts[position + 1]]
        if not add and inputs and inputs[0] >= 0 and numbers[inputs[0] >> SHIFT] >= UNKNOWN:
            numbers[position] = unknown
            unknown += 1
            continue
        key = [code if code < 0 else numbers[code >> SHIFT] << SHIFT | (code & SLOT) for code in inputs]
        if commutative[position]:
            key.sort()
        place = (labels[position], *key)
        found = known.get(place)
        if found is None:
            if add:
                found = known[place] = len(known)
            else:
                found = unknown
                unknown += 1
        numbers[position] = found
    return numbers
