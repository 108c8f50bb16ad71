"""Amounts that depend on dimensions without a size: sums of products such as ``4096*N + 12*N*S``."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

Term: TypeAlias = tuple[str, ...]
"""The names whose product is one term, sorted; none for the constant one."""

_MOST_TERMS: Final = 64


class UnknownAmountError(Exception):
    """An amount cannot be computed; the text is the reason."""


class Amount:
    """A sum of products of names, with whole coefficients; names are dimensions, which are at least 0."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Term, int]) -> None:
        """Keep the terms that are not zero."""
        self.terms = {term: factor for term, factor in terms.items() if factor}
        if len(self.terms) > _MOST_TERMS:
            raise UnknownAmountError(f"a formula of more than {_MOST_TERMS} terms")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | Amount) and self.terms == as_amount(other).terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __add__(self, other: "Size") -> "Amount":
        total = Counter(self.terms)
        for term, factor in as_amount(other).terms.items():
            total[term] += factor
        return Amount(total)

    __radd__ = __add__

    def __mul__(self, other: "Size") -> "Amount":
        total = Counter[Term]()
        for one, factor in self.terms.items():
            for another, by in as_amount(other).terms.items():
                total[tuple(sorted(one + another))] += factor * by
        return Amount(total)

    __rmul__ = __mul__

    def __sub__(self, other: "Size") -> "Amount":
        return self + as_amount(other) * -1

    def __rsub__(self, other: "Size") -> "Amount":
        return self * -1 + other

    def __floordiv__(self, other: int) -> "Amount":
        if any([factor % other for factor in self.terms.values()]):
            raise UnknownAmountError(f"({self}) is divided by {other}")
        return Amount({term: factor // other for term, factor in self.terms.items()})

    def __str__(self) -> str:
        ordered = sorted(self.terms.items(), key=lambda each: (-len(each[0]), each[0]))
        words = ["*".join([*([str(factor)] if factor != 1 or not term else []), *term]) for term, factor in ordered]
        return " + ".join(words).replace("+ -", "- ") or "0"


Size: TypeAlias = int | Amount
"""A number, or a formula of dimensions without a size."""


def as_amount(size: Size) -> Amount:
    """Return a size as a formula."""
    return size if isinstance(size, Amount) else Amount({(): size})


def named(name: str) -> Amount:
    """Return the size of a dimension that has only a name; an expression such as ``2*N`` is put in parentheses."""
    return Amount({(name if name.isidentifier() else f"({name})",): 1})


def plain(size: Size) -> int | str:
    """Return a size for a report: a number, or the text of a formula."""
    if isinstance(size, int):
        return size
    return size.terms.get((), 0) if not any(size.terms) else str(size)


def product(sizes: Iterable[Size]) -> Size:
    """Return the product of sizes; 1 for none."""
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


def is_at_least(one: Size, other: Size) -> bool:
    """Whether an amount is at least another one, whatever sizes the dimensions have."""
    if isinstance(one, int) and isinstance(other, int):
        return one >= other
    return all([factor >= 0 for factor in as_amount(one - other).terms.values()])


def largest(candidates: Iterable[Size]) -> list[Size]:
    """Return the amounts that may be the largest, each once; one of them if they can be compared."""
    found: list[Size] = []
    for size in candidates:
        if not any([is_at_least(each, size) for each in found]):
            found = [each for each in found if not is_at_least(size, each)] + [size]
    return found
