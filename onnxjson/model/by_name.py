"""Collections of things of a model by their names."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypeVar, overload

from onnxjson.model.display import suggest, visible

Item = TypeVar("Item")


class Named(dict[str, Any]):
    """Things by their names; a change of this dictionary would not change what they are of, so it is refused."""

    def __init__(self, items: Iterable[tuple[str, Any]], refusal: str) -> None:
        super().__init__(items)
        self._refusal = refusal

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(self._refusal)

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse

    def __missing__(self, name: object) -> NoReturn:
        raise KeyError(_missing(name, self))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class NamedValues(tuple[Item, ...]):
    """Inputs, outputs or nodes of a model in their order; ``values["x"]`` is the first of that name."""

    __slots__ = ()

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, place: SupportsIndex | str) -> Item: ...

        @overload
        def __getitem__(self, place: slice) -> tuple[Item, ...]: ...

        def __getitem__(self, place: SupportsIndex | str | slice) -> Item | tuple[Item, ...]: ...
    else:

        def __getitem__(self, place):
            """Return the value of a name, or at a position."""
            if not isinstance(place, str):
                return super().__getitem__(place)
            for value in self:
                if value.name == place:
                    return value
            raise KeyError(_missing(place, [value.name or "" for value in self]))


def _missing(name: object, known: Collection[str]) -> str:
    if isinstance(name, str):
        hint = suggest(name, known)
    else:
        hint = "write a name" + (f", such as {visible(next(iter(known)))!r}" if known else "")
    return f"there is no {visible(str(name))!r}{f'; {hint}' if hint else ''}"
