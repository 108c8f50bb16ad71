"""`Pass`: one optimizer, declared once for Python, the command line and recipes.

A subclass is the declaration: its docstring says what it does, its fields are the options, ``tag`` is its name::

    class Example(Pass, frozen=True, kw_only=True, tag="example"):
        \"""What it does, in one line.\"""

        packages = ("example-package",)

        strength: Annotated[int, Meta(ge=1, description="How much.")] = 1

        def run(self, model: bytes, folder: Path) -> bytes:
            import example_package  # only here, in the guarded process
            ...
"""

import sys
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, Self

from onnxjson.editing.declaration import Declared, name_of
from onnxjson.model.display import suggest, visible
from onnxjson.model.errors import ParameterError
from onnxjson.optimizing.passes.stages import PartStage

if TYPE_CHECKING:
    from onnxjson.model.document import Model
    from onnxjson.optimizing.passes.new_files import NewFile


_LEAST: Final = 3
"""Characters of a word from which names that hold it are shown."""

_SHOWN: Final = 3


class Changed(NamedTuple):
    """What a pass made that runs in this process."""

    model: "Model"
    notes: tuple[str, ...] = ()
    files: "tuple[NewFile, ...]" = ()


class Pass(Declared, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="pass", eq=False):
    """The base of all passes. Options are checked when one is made; `ParameterError` says what does not fit."""

    packages: ClassVar[tuple[str, ...]] = ()
    """Distributions that it needs beyond those of this package."""
    extra: ClassVar[str | None] = None
    """The extra of this package that installs them, None where nothing more is needed."""
    part: ClassVar[str | None] = None
    """The option, a list of texts, that a word after a colon stands for: ``onnxoptimizer:eliminate_identity``."""
    parts: ClassVar[dict[str, str]] = {}
    """The words that it may hold, and what each does, in one line."""
    is_guarded: ClassVar[bool] = True
    """Whether `run` belongs into the guarded process; code of this package does not."""
    is_own_code: ClassVar[bool] = False
    """Whether it is code of the user, which may run without the box of `onnxjson.running.box`."""
    is_exact: ClassVar[bool] = True
    """Whether a model is to compute the same after it; else it trades numbers for size or speed."""

    texts: ClassVar[Literal["folded", "moved", "run"]] = "folded"
    """How it uses texts that code could evaluate, for which it gets placeholders: it may compute constants from them,
    only moves them, or computes from what the model returns for samples. If a result would depend on such a text, the
    pass is refused. The user's own code (`is_own_code`) gets the model as it is."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for word in getattr(self, self.part) if self.part else ():
            if word not in self.parts:
                hint = near(word, self.parts) or f"`onnxjson passes {self.name}` shows all"
                raise ParameterError(f'{self.name} has no "{visible(word)}"; {hint}')

    @property
    def name(self) -> str:
        """Its name, such as ``onnxsim``."""
        return name_of(self)

    def within(self, folder: Path) -> Self:
        """The same with the files that it names looked for in a folder."""
        return self

    def reads(self) -> tuple[str, ...]:
        """Absolute paths of the files and folders that `run` reads; of others it sees only those of its packages."""
        return ()

    def with_dimensions(self, names: Mapping[str, str]) -> Self:
        """The same for a model in which dimensions have other names.

        Args:
            names: those that changed, and what they are now.
        """
        return self

    def run(self, model: bytes, folder: Path) -> bytes:
        """What the optimizer makes of a model. Runs in the guarded process, where it may crash, hang or exit.

        Args:
            model: serialised; every tensor stands in it.
            folder: an empty one of its own, for optimizers that work on files; it is thrown away afterwards.

        Returns:
            The serialised result.
        """
        raise NotImplementedError

    def stages(self, model: bytes, folder: Path) -> Iterable[PartStage]:
        """What each part of the optimizer does to a model, as far as it can be told; the last one ends as `run` does.

        Runs in the guarded process, apart from `run`: however long it takes and whatever becomes of it, the result is
        there already. See `run` for the arguments.
        """
        return ()

    def measure(self, before: bytes, after: bytes) -> None:
        """Report what the pass cost, as remarks; both models are serialized and have their own texts.

        Runs in the guarded process, after `run`.
        """

    def change(self, model: "Model", model_folder: Path | None) -> "Changed":
        """Of a pass that is not guarded: what it makes. It runs in this process, and writes nothing."""
        raise NotImplementedError

    @classmethod
    def available(cls) -> str | None:
        """Why it cannot be used here, and what to do; None where it can. Nothing is imported."""
        missing = [package for package in cls.packages if not is_installed(package)]
        if not missing:
            return None
        several = len(missing) > 1
        install = f"'onnxjson[{cls.extra}]'" if cls.extra else " ".join(missing)
        return (
            f"it needs {' and '.join(missing)}, which {'are' if several else 'is'} not installed; "
            f"{sys.executable} -m pip install {install}"
        )


def near(word: str, names: Collection[str]) -> str:
    """``did you mean "a"?`` with names that are like a word, or hold it; "" where there are none."""
    holding = [name for name in names if len(word) >= _LEAST and word in name]
    # A part by its bare name, before what only holds it.
    holding = sorted(holding, key=lambda name: name.rpartition(":")[2] != word)[:_SHOWN]
    if holding:
        return "did you mean " + " or ".join([f'"{name}"' for name in holding]) + "?"
    return suggest(word, names)


@cache
def is_installed(package: str) -> bool:
    """Whether a distribution is installed for this Python."""
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
