"""Every exception of the package, and the findings and conflicts that exceptions carry.

::

    OnnxJsonError                  65  base class of all errors below
    ├── DecodeError                65  the text or bytes are not a model       .findings
    │   └── WireError              65  the bytes are not valid protobuf  .offset
    ├── EncodeError                65  a format, such as proto-JSON, cannot represent a model        .findings
    ├── PatchError                 65  a patch does not fit a model                 .address
    ├── EditError                  65  an edit cannot be applied                 .address, .position
    │   ├── BrokenNodesError       65  an edit would leave nodes with incompatible shapes    .address
    │   ├── UnloadableError        65  onnxruntime loads a model before a change, but not after it    .address
    │   └── ParameterError          2  a parameter of an edit is missing, unknown or wrong
    ├── DifferenceError             1  a changed model has different results
    ├── ConflictError              16  a file contains merge conflicts          .conflicts
    ├── FeedError                  65  values do not fit the inputs of a model, or cannot be generated
    ├── MissingInputError          66  a file does not exist
    │   └── WeightsMissingError    66  a model has only the sha256 of some tensors     .count, .first
    ├── SelectorError               2  a selector matches nothing, or several things where one is required
    │   ├── NoMatchError            2  a valid selector matches nothing
    │   └── AddressError            2  an address without an element
    ├── LimitError                 71  too deep, too big, too many
    ├── OutputError                73  a file cannot be written, or already exists
    ├── FileError                  74  reading or writing a file failed
    ├── ChangedUnderneathError     75  a file changed after it was opened
    ├── WorkerError                76  native analysis crashed, hung or ran out of memory
    │   ├── EvaluationError        76  no engine runs a model, or it fails on its inputs
    │   └── PassError              76  a pass failed, or its result is not a model  .name, .printed
    ├── AccessDeniedError          77  permission denied
    └── UntrustedError             78  a location outside the model's folder, or a link

The number is the exit code of the command line. A message states what is wrong, where, and what to do; `str` composes
it from these parts.

`Finding` is the one type for everything that a reader, a checker or native analysis reports about a model. Codes are
stable; docs/findings.md lists them.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import msgspec

from onnxjson.model.display import visible

Severity = Literal["error", "warning"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An error, or a warning about something suspicious."""

    severity: Severity
    code: str
    """Stable and documented, such as ``duplicate-key``."""
    address: str = ""
    """The element, as an address of the records, such as ``/graph/node/3/attribute/pads``; "" for the whole model."""
    message: str
    """What was found, made visible and therefore safe to print."""
    hint: str = ""
    """The accepted values, or what to do."""
    file: str = ""
    line: int = 0
    """From 1; 0 where there is no text."""
    column: int = 0
    """From 1, in characters."""
    outline: str = ""
    """The line of the model's outline that has the node, made visible; "" where it is not known."""

    def __str__(self) -> str:
        file = visible(self.file, None)
        place = f"{file or 'text'}:{self.line}:{self.column}" if self.line else file
        head = f"{place}: " if place else ""
        where = "" if self.line or not self.address else f"{visible(self.address, None)}: "
        return f"{head}{where}{self.message}" + (f"; {self.hint}" if self.hint else "")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was too small, also to load a library."""
    return isinstance(error, MemoryError) or (isinstance(error, ImportError) and "failed to map" in str(error))


class OnnxJsonError(Exception):
    """The base of all errors that the package raises deliberately."""

    exit_code: ClassVar[int] = 65

    def __init__(self, sentence: str = "", *, place: str = "", hint: str = "") -> None:
        super().__init__(sentence)
        self.places: tuple[str, ...] = (place,) if place else ()
        """Where it is, the outermost first, such as a file and the name of an edit, unless the sentence states that."""
        self.hint = hint
        """What to do; "" if the sentence states that."""

    @property
    def sentence(self) -> str:
        """What is wrong."""
        return super().__str__()

    def __str__(self) -> str:
        text = ": ".join([*self.places, self.sentence])
        return f"{text}; {self.hint}" if self.hint else text

    def add_place(self, place: str) -> None:
        """Let the message begin with a place around the others, unless it does."""
        if self.places[:1] != (place,):
            self.places = (place, *self.places)


class DecodeError(OnnxJsonError):
    """Text or bytes are not a model; ``findings`` has every reason."""

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


class OtherJsonError(DecodeError):
    """A file is a JSON object of another program, with no key of a model."""


class WireError(DecodeError):
    """Bytes are not a serialised message; ``offset`` is the position of the first wrong byte."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} (byte {offset:,})")
        self.offset = offset


class EncodeError(OnnxJsonError):
    """A model cannot be written in the requested form; ``findings`` names every element."""

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


class PatchError(OnnxJsonError):
    """A patch does not fit a model, or two patches do not follow each other."""

    def __init__(
        self, sentence: str, address: str = "", expected: object = None, actual: object = None, *, place: str = ""
    ) -> None:
        super().__init__(sentence, place=place)
        self.address = address
        """Where, in the model or in the base of the second patch."""
        self.expected = expected
        """The value that the patch expects there; None for nothing."""
        self.found = actual
        """The value that is there; None for nothing."""


class EditError(OnnxJsonError):
    """An edit cannot be applied; the model is unchanged."""

    def __init__(self, sentence: str, address: str = "", *, place: str = "", hint: str = "") -> None:
        super().__init__(sentence, place=place, hint=hint)
        self.address = address
        """Address in the model before the edit."""
        self.position: int | None = None
        """Position among several edits, from 0."""


class BrokenNodesError(EditError):
    """After an edit, nodes could not have the shapes that they compute."""


class UnloadableError(EditError):
    """onnxruntime loads a model before a change, but not after it."""

    option: ClassVar[str] = "--unloadable"
    """The option of commands that write such a model anyway."""


class ParameterError(EditError):
    """A parameter of an edit is missing, unknown, or has a value that does not fit."""

    exit_code = 2


class DifferenceError(OnnxJsonError):
    """A changed model does not compute the same results as before."""

    exit_code = 1


class FeedError(OnnxJsonError):
    """Values do not fit the inputs of a model, or none can be generated for one."""


class MissingInputError(OnnxJsonError):
    """A file does not exist."""

    exit_code = 66


class MissingFileError(MissingInputError, FileNotFoundError):
    """The file that `load` was given does not exist: an error of this package, and Python's FileNotFoundError."""


class WeightsMissingError(MissingInputError):
    """A model has only the sha256 of some of its tensors; their bytes are in another model or in a folder of blobs."""

    def __init__(self, message: str, count: int = 1, first: str = "") -> None:
        super().__init__(message)
        self.count = count
        """Number of tensors without bytes."""
        self.first = first
        """The first one, made visible."""


class SelectorError(OnnxJsonError):
    """A selector is misspelled, matches nothing, or matches several things where one is required."""

    exit_code = 2


class NoMatchError(SelectorError):
    """A selector is valid and matches nothing."""


class AddressError(SelectorError):
    """An address is misspelled, or the model has no element there."""


class LimitError(OnnxJsonError):
    """Something exceeds a limit (`onnxjson.model.limits`): too deep, too big, too many."""

    exit_code = 71


class OutputError(OnnxJsonError):
    """A file cannot be written at the requested place."""

    exit_code = 73


class FileError(OnnxJsonError):
    """The operating system could not read or write."""

    exit_code = 74


class ChangedUnderneathError(OnnxJsonError):
    """A file was changed by another program since it was opened."""

    exit_code = 75


class WorkerError(OnnxJsonError):
    """The sandboxed process for native analysis crashed, hung or ran out of memory."""

    exit_code = 76


class EvaluationError(WorkerError):
    """A model cannot be evaluated: no engine accepts it, or it fails on its inputs."""

    def __init__(self, message: str, side: int = 0) -> None:
        super().__init__(message)
        self.side = side
        """The failing model of two that are compared: 0 for the base, 1 for the target."""


class PassError(WorkerError):
    """A pass crashed, hung, failed, is not installed, or did not return a model; the model is unchanged."""

    def __init__(self, message: str, name: str = "", printed: str = "") -> None:
        super().__init__(message)
        self.name = name
        """The pass, as the user spelled it."""
        self.printed = printed
        """Its output, made visible."""


class AccessDeniedError(OnnxJsonError):
    """The operating system denies access."""

    exit_code = 77


class UntrustedError(OnnxJsonError):
    """A model names a file that it must not use."""

    exit_code = 78
