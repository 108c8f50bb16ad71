"""Ready components: small models for what stands before and behind many networks, kept as texts in this package."""

from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from onnxjson import api
from onnxjson.display import visible
from onnxjson.document import Model
from onnxjson.errors import ParameterError
from onnxjson.suggestions import suggest

_ENDING: Final = ".onnx.json"


class Component(NamedTuple):
    """A ready component."""

    number: str
    """Such as Z003."""
    name: str
    """Such as nms-single-class."""
    model: Model

    @property
    def summary(self) -> str:
        """What it does."""
        return self.model.doc_string or ""


@cache
def components() -> tuple[Component, ...]:
    """All components, by number."""
    folder = resources.files("onnxjson.making") / "components"
    found = []
    for each in folder.iterdir():
        if each.name.endswith(_ENDING):
            number, _, name = each.name.removesuffix(_ENDING).partition("-")
            found.append(Component(number, name, api.loads(each.read_bytes())))
    return tuple(sorted(found, key=lambda each: each.number))


def component(which: str) -> Component:
    """The component of a number or name.

    Raises:
        ParameterError: there is none.
    """
    for each in components():
        if which.lower() in (each.number.lower(), each.name):
            return each
    names = [name for each in components() for name in (each.number, each.name)]
    hint = suggest(which, names) or f"there are {', '.join(each.number for each in components())}"
    raise ParameterError(f'there is no component "{visible(which)}"; {hint}')
