"""Amounts that depend on dimensions without a size: sums of products such as ``4096*N + 12*N*S``."""

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from math import prod
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
        self.terms = terms if all(terms.values()) else {term: factor for term, factor in terms.items() if factor}
        if len(self.terms) > _MOST_TERMS:
            raise UnknownAmountError(f"a formula of more than {_MOST_TERMS} terms")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | Amount) and self.terms == as_amount(other).terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __add__(self, other: "Size") -> "Amount":
        if isinstance(other, int) and not other:
            return self
        total = dict(self.terms)
        for term, factor in as_amount(other).terms.items():
            total[term] = total.get(term, 0) + factor
        return Amount(total)

    __radd__ = __add__

    def __mul__(self, other: "Size") -> "Amount":
        if isinstance(other, int):
            return self if other == 1 else Amount({term: factor * other for term, factor in self.terms.items()})
        total: dict[Term, int] = {}
        for one, factor in self.terms.items():
            for another, by in other.terms.items():
                term = tuple(sorted(one + another))
                total[term] = total.get(term, 0) + factor * by
        return Amount(total)

    __rmul__ = __mul__

    def __sub__(self, other: "Size") -> "Amount":
        rest = dict(self.terms)
        for term, factor in as_amount(other).terms.items():
            rest[term] = rest.get(term, 0) - factor
        return Amount(rest)

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


@cache
def named(name: str) -> Amount:
    """Return the size of a dimension that has only a name; an expression such as ``2*N`` is put in parentheses."""
    return Amount({(name if name.isidentifier() else f"({name})",): 1})


def plain(size: Size) -> int | str:
    """Return a size for a report: a number, or the text of a formula."""
    if isinstance(size, int):
        return size
    return size.terms.get((), 0) if not any(size.terms) else str(size)


def sum_sizes(sizes: Iterable[Size]) -> Size:
    """Return the sum of sizes."""
    number, terms = 0, dict[Term, int]()
    for size in sizes:
        if isinstance(size, int):
            number += size
        else:
            for term, factor in size.terms.items():
                terms[term] = terms.get(term, 0) + factor
    return Amount(terms) + number if terms else number


@lru_cache(4096)
def product(sizes: tuple[Size, ...]) -> Size:
    """Return the product of sizes; 1 for none."""
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


def value_at(size: Size, sizes: Mapping[str, int]) -> int:
    """Return the value of a formula, given the sizes of all of its names."""
    by_text = {str(named(name)): number for name, number in sizes.items()}
    return sum([factor * prod([by_text[name] for name in term]) for term, factor in as_amount(size).terms.items()])


def is_at_least(one: Size, other: Size) -> bool:
    """Whether an amount is at least another one, whatever sizes the dimensions have."""
    if isinstance(one, int) and isinstance(other, int):
        return one >= other
    left, right = as_amount(one).terms, as_amount(other).terms
    return all([left.get(term, 0) >= right.get(term, 0) for term in (*left, *right)])


def largest(candidates: Iterable[Size]) -> list[Size]:
    """Return the amounts that may be the largest, each once; one of them if they can be compared."""
    greatest: list[Size] = []
    for size in candidates:
        if not any([is_at_least(each, size) for each in greatest]):
            greatest = [each for each in greatest if not is_at_least(size, each)] + [size]
    return greatest
