"""What the files are called in which the models of variants are kept."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path


def file_names(made: Sequence[tuple[str, str]]) -> list[str]:
    """Where variants may be kept, each in a file of its own: ``m-int8-dynamic.onnx``.

    Args:
        made: the names of a model and of a variant.
    """
    found: dict[str, None] = {}
    for model, variant in made:
        stem = Path(model).name.removesuffix(".json").removesuffix(".onnx")
        name = f"{stem}-{re.sub(r'[^A-Za-z0-9_.]+', '-', variant).strip('-') or 'variant'}"
        number = next(each for each in itertools.count(1) if _numbered(name, each) not in found)
        found[_numbered(name, number)] = None
    return list(found)


def _numbered(name: str, number: int) -> str:
    return f"{name}{'' if number == 1 else f'-{number}'}.onnx"
