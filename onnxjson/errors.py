"""Every exception of the package.

::

    OnnxJsonError                  65  anything below; catch this one
    ├── DecodeError                65  text or bytes are not a model       .findings
    │   └── WireError              65  bytes that no protobuf writer made  .offset
    ├── EncodeError                65  a model has no such form (proto-JSON, a message too deep)  .findings
    ├── PatchError                 65  a patch does not fit a model                 .address
    ├── EditError                  65  an edit cannot do what it is asked for        .address, .position
    │   └── ParameterError          2  a parameter of an edit is missing, unknown or wrong
    ├── DifferenceError             1  a changed model does not compute the same
    ├── ConflictError              16  conflicts of a merge stand in a file          .conflicts
    ├── FeedError                  65  values do not fit the inputs of a model, or cannot be made up
    ├── MissingInputError          66  a file that is named is not there
    │   └── WeightsMissingError    66  a model has only the sha256 of some tensors     .count, .first
    ├── SelectorError               2  a selector that finds nothing, or more than one thing where one is wanted
    │   └── AddressError            2  an address at which nothing stands
    ├── LimitError                 71  too deep, too big, too many
    ├── OutputError                73  a file cannot be made, or stands in the way
    ├── FileError                  74  the system could not read or write
    ├── ChangedUnderneathError     75  a file is not the one that was opened
    ├── WorkerError                76  native analysis crashed, hung or ran out of memory
    │   ├── EvaluationError        76  no engine runs a model, or it fails on its inputs
    │   └── PassError              76  a pass failed, or what it gave is no model  .name, .printed
    ├── AccessDeniedError          77  the system forbids it
    └── UntrustedError             78  a location that leaves the model's folder, a link

The number is the exit code of the command line. A message says what is wrong, where, and what to do.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from onnxjson.checking import Finding
    from onnxjson.conflicts import Conflict


class OnnxJsonError(Exception):
    """The base of all errors that the package raises on purpose."""

    exit_code: ClassVar[int] = 65


class DecodeError(OnnxJsonError):
    """Text or bytes are not a model; ``findings`` holds every reason that was found."""

    def __init__(self, message: str, findings: "Sequence[Finding]" = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


class WireError(DecodeError):
    """Bytes are not a serialised message; ``offset`` is the byte at which that shows."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} (byte {offset:,})")
        self.offset = offset


class EncodeError(OnnxJsonError):
    """A model cannot be written in the form that was asked for; ``findings`` names every element."""

    def __init__(self, message: str, findings: "Sequence[Finding]" = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


class PatchError(OnnxJsonError):
    """A patch does not fit a model, or two patches do not follow each other."""

    def __init__(self, message: str, address: str = "", expected: object = None, found: object = None) -> None:
        super().__init__(message)
        self.address = address
        """Where, in the model or in the base of the second patch."""
        self.expected = expected
        """The value that the patch says stands there; None for nothing."""
        self.found = found
        """The value that stands there; None for nothing."""


class EditError(OnnxJsonError):
    """An edit cannot do what it is asked for; the model stays as it was."""

    def __init__(self, message: str, address: str = "", position: int | None = None) -> None:
        super().__init__(message)
        self.address = address
        """Where, in the model as the edit found it."""
        self.position = position
        """Of several edits, which one it was, from 0."""


class ParameterError(EditError):
    """A parameter of an edit is missing, unknown, or has a value that does not fit."""

    exit_code = 2


class DifferenceError(OnnxJsonError):
    """A changed model does not compute what it did before."""

    exit_code = 1


class ConflictError(OnnxJsonError):
    """Conflicts of a merge stand in a file, so that it is no model yet."""

    exit_code = 16

    def __init__(self, message: str, conflicts: "Sequence[Conflict]" = ()) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)


class FeedError(OnnxJsonError):
    """Values do not fit the inputs of a model, or none can be made up for one."""


class MissingInputError(OnnxJsonError):
    """A file that is named is not there."""

    exit_code = 66


class WeightsMissingError(MissingInputError):
    """A model has only the sha256 of some of its tensors; their bytes are in another model or in a folder of blobs."""

    def __init__(self, message: str, count: int = 1, first: str = "") -> None:
        super().__init__(message)
        self.count = count
        """How many tensors have no bytes."""
        self.first = first
        """The first one, made visible."""


class SelectorError(OnnxJsonError):
    """A selector is misspelled, finds nothing, or finds several things where one is wanted."""

    exit_code = 2


class AddressError(SelectorError):
    """An address is misspelled, or nothing stands there."""


class LimitError(OnnxJsonError):
    """Something is deeper, bigger or more than a limit allows."""

    exit_code = 71


class OutputError(OnnxJsonError):
    """A file cannot be made where it was asked for."""

    exit_code = 73


class FileError(OnnxJsonError):
    """The system could not read or write."""

    exit_code = 74


class ChangedUnderneathError(OnnxJsonError):
    """A file was changed by another program since it was opened."""

    exit_code = 75


class WorkerError(OnnxJsonError):
    """The guarded process for native analysis crashed, hung or ran out of memory."""

    exit_code = 76


class EvaluationError(WorkerError):
    """A model cannot be evaluated: no engine takes it, or it fails on the values of its inputs."""

    def __init__(self, message: str, side: int = 0) -> None:
        super().__init__(message)
        self.side = side
        """Of two models that are compared: 0 for the base, 1 for the target."""


class PassError(WorkerError):
    """A pass crashed, hung, failed, is not installed, or what it gave is no model; the model is as it was before it."""

    def __init__(self, message: str, name: str = "", printed: str = "") -> None:
        super().__init__(message)
        self.name = name
        """The pass, as it was spelled."""
        self.printed = printed
        """What it printed; made visible."""


class AccessDeniedError(OnnxJsonError):
    """The system does not allow it."""

    exit_code = 77


class UntrustedError(OnnxJsonError):
    """A model names a file that it has no business with."""

    exit_code = 78
