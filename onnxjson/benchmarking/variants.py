"""Variants of a model: the passes that make one, and how its session optimises; and session settings to try.

::

    both=onnxoptimizer,onnxsim          passes, one after the other
    plain=@off                          the model as it is, in a session that optimises nothing
    offline=onnxruntime{level=all}@off  optimised before, so not again
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, get_args

import msgspec

from onnxjson.display import visible
from onnxjson.errors import ParameterError
from onnxjson.passes import Step, parse_step
from onnxjson.running.tasks import Level, Settings
from onnxjson.suggestions import suggest

LEVELS: Final[tuple[Level, ...]] = get_args(Level)
_LEVEL: Final = re.compile(rf"@({'|'.join(LEVELS)})$")
_MODES: Final = ("sequential", "parallel")
_BESIDE: Final = 2
"""Operators side by side in parallel mode if nobody says how many."""


class Variant(NamedTuple):
    """One way to make and run a model."""

    name: str
    steps: tuple[Step, ...] = ()
    level: Level | None = None
    """Of its session; that of all the others if it is None."""

    @property
    def is_exact(self) -> bool:
        """Whether it is to compute the same as the original."""
        return all(step.subject.is_exact for step in self.steps)


def parse_variant(text: str) -> Variant:
    """The variant that ``NAME=PASS,PASS...@LEVEL`` spells; all of it but the name may be missing.

    Raises:
        ParameterError: it spells none.
    """
    name, mark, rest = text.partition("=")
    if not mark or not name.strip() or "{" in name:
        raise ParameterError(f"{visible(text)} is no variant; write NAME=PASS,PASS, such as both=onnxoptimizer,onnxsim")
    found = _LEVEL.search(rest)
    passes = rest[: found.start()] if found else rest
    steps = tuple([parse_step(word) for word in _words(passes) if word.strip()])
    level = next((each for each in LEVELS if found and found[1] == each), None)
    return Variant(name.strip(), steps, level)


def _words(text: str) -> Iterator[str]:
    """The parts between commas that stand in no braces and brackets."""
    depth = start = 0
    for place, character in enumerate(text):
        depth += (character in "{[") - (character in "}]")
        if character == "," and not depth:
            yield text[start:place]
            start = place + 1
    yield text[start:]


PRESETS: Final[dict[str, tuple[str, ...]]] = {
    "seed": (
        "original=",
        "+ onnxoptimizer=onnxoptimizer",
        "+ onnxsim=onnxsim",
        "+ onnxoptimizer + onnxsim=onnxoptimizer,onnxsim",
        "onnxruntime off=@off",
        "onnxruntime basic=onnxruntime{level=basic}@off",
        "onnxruntime extended=onnxruntime{level=extended}@off",
        "onnxruntime all=onnxruntime{level=all}@off",
        "int8 dynamic=quantize-dynamic",
        "int8 static qdq=quantize-static",
        "int8 static qoperator=quantize-static{format=qoperator}",
    ),
    "quantized": (
        "original=",
        "int8 dynamic=quantize-dynamic",
        "int8 dynamic per channel=quantize-dynamic{per_channel=true}",
        "int8 static qdq=quantize-static",
        "int8 static qdq per channel=quantize-static{per_channel=true}",
        "int8 static qoperator=quantize-static{format=qoperator}",
        "float16=float16{keep_io_types=true}",
        "mixed precision=mixed-precision",
    ),
}
"""Variants as `parse_variant` reads them, by the name of the set."""

ORIGINAL: Final = Variant("original")


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """Session settings to try; every combination. None where those of all the others count."""

    threads: tuple[int, ...] | None = None
    modes: tuple[str, ...] | None = None
    levels: tuple[Level, ...] | None = None
    beside: tuple[int, ...] = (_BESIDE,)
    """Operators side by side, in parallel mode."""

    def settings(self, base: Settings) -> list[Settings]:
        """All combinations, each once."""
        found: dict[Settings, None] = {}
        modes = self.modes or (_MODES[bool(base.parallel)],)
        beside = self.beside if self.modes else (base.parallel or _BESIDE,)
        for threads, mode, level in itertools.product(
            self.threads or (base.threads,), modes, self.levels or (base.level,)
        ):
            for count in beside if mode == "parallel" else (0,):
                made = msgspec.structs.replace(base, threads=threads, parallel=count, level=level)
                found[made] = None
        return list(found)


_KEYS: Final = ("threads", "mode", "level", "parallel")


def is_grid_word(text: str) -> bool:
    """Whether a text is ``KEY=VALUE,VALUE...`` of a grid."""
    return text.partition("=")[0] in _KEYS and "=" in text


def parse_grid(words: Sequence[str]) -> Grid:
    """The grid that words such as ``threads=1,2`` and ``mode=sequential,parallel`` spell.

    Raises:
        ParameterError: they spell none.
    """
    said: dict[str, list[str]] = {}
    for word in [part for each in words for part in each.split()]:
        key, mark, rest = word.partition("=")
        if not mark or key not in _KEYS:
            hint = suggest(key, _KEYS) or f"there are {', '.join(_KEYS)}"
            raise ParameterError(f"--tune: {visible(word)} is no KEY=VALUE,VALUE; {hint}")
        values = [value for value in rest.split(",") if value]
        if not values:
            raise ParameterError(f"--tune: {key}= has no value to try")
        said.setdefault(key, []).extend(values)
    for key, choices in (("mode", _MODES), ("level", LEVELS)):
        for value in said.get(key, ()):
            if value not in choices:
                hint = suggest(value, choices) or f"there are {', '.join(choices)}"
                raise ParameterError(f"--tune: {visible(value)} is no {key}; {hint}")
    return Grid(
        threads=_counts(said, "threads"),
        modes=tuple(said["mode"]) if said.get("mode") else _MODES if said.get("parallel") else None,
        levels=tuple([level for level in LEVELS if level in said["level"]]) if said.get("level") else None,
        beside=_counts(said, "parallel") or (_BESIDE,),
    )


def _counts(said: dict[str, list[str]], key: str) -> tuple[int, ...] | None:
    values = said.get(key)
    if not values:
        return None
    for value in values:
        if not value.isdecimal() or int(value) > 1024:
            raise ParameterError(f"--tune: {visible(value)} is no number of threads; write {key}=1,2,4")
    return tuple(dict.fromkeys(map(int, values)))
