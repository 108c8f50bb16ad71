"""Edits made on a model: one or many, all or nothing."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from onnxjson.checking import Finding
from onnxjson.display import visible
from onnxjson.document import Model, Tensor
from onnxjson.edits.declaration import Edit, check_expectation, name_of
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.script import Script
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import EditError, OnnxJsonError, ParameterError, PatchError, SelectorError
from onnxjson.patching import Patch
from onnxjson.structure import check_structure

Change = Edit | Script | Patch
"""What changes a model."""


class Result(NamedTuple):
    """A model after edits, and what came of each of them."""

    model: Model
    outcomes: tuple[Outcome, ...]
    files: dict[Path, Tensor]
    """Values that go into .npy files; see `write_files`."""

    @property
    def matches(self) -> int:
        """How many elements all edits together were about."""
        return sum(outcome.matches for outcome in self.outcomes)


def apply(
    model: Model,
    changes: Change | Iterable[Change],
    *,
    folder: str | Path | None = None,
    model_folder: str | Path | None = None,
) -> Model:
    """The model after edits, scripts or patches; all of them are made, or none.

    Args:
        model: stays as it is; what is not touched is shared.
        changes: one or several, made in their order.
        folder: where files that edits name are looked for; that of the script where they stand in one. Without either
            no file is read. What a script names must stand in its folder.
        model_folder: where the model stands, and its external data is looked for; `folder` if it is None.

    Raises:
        EditError: an edit cannot do what it is asked for, or what it did leaves the model in pieces.
        SelectorError: a selector finds nothing, or more than one thing where one is wanted.
        PatchError: a patch does not fit.
        OutputError, AccessDeniedError, FileError: a file that an edit makes cannot be written.
    """
    result = run(model, changes, folder=folder, model_folder=model_folder)
    write_files(result)
    return result.model


def write_files(result: Result) -> None:
    """Writes the files that edits make of values, such as those of initializers-to-inputs with ``save``.

    Raises:
        OutputError, AccessDeniedError, FileError: one cannot be written.
    """
    with files_written(result, None):
        return


@contextmanager
def files_written(result: Result, model_file: Path | None) -> Iterator[None]:
    """`write_files`; the files go again if not all of them can be written, or the body fails to save the model.

    Args:
        result: what edits gave.
        model_file: where the body saves the model; None where that is no file.
    """
    with ExitStack() as stack:
        if result.files:
            from onnxjson.constants.archives import write_npy
            from onnxjson.external_files import removed_on_failure
            from onnxjson.saving import save_file

            for path, tensor in result.files.items():
                save_file(path, lambda sink, tensor=tensor: write_npy(tensor, sink), replace=False)  # type: ignore[misc]
                stack.enter_context(removed_on_failure(path, path if model_file is None else model_file))
        yield


def plan(model: Model, changes: Change | Iterable[Change], *, folder: str | Path | None = None) -> Patch:
    """The patch that `apply` would make; see there for arguments and errors. No file is written."""
    return Patch.between(model, run(model, changes, folder=folder).model)


def run(
    model: Model,
    changes: Change | Iterable[Change],
    *,
    folder: str | Path | None = None,
    model_folder: str | Path | None = None,
) -> Result:
    """`apply`, with what came of each edit."""
    steps = list(_steps(changes, None if folder is None else Path(folder)))
    workspace = Workspace(model)
    workspace.model_folder = _model_folder(folder, model_folder)
    outcomes = []
    for position, step in enumerate(steps):
        try:
            outcomes.append(_made(workspace, step))
        except (EditError, SelectorError, PatchError) as error:
            raise _placed(error, step.change, position, len(steps)) from error
    if workspace.can_be_wrong and workspace.model is not model:
        _check(model, workspace, steps)
    return Result(workspace.model, tuple(outcomes), workspace.files)


class _Step(NamedTuple):
    """One change."""

    change: Edit | Patch
    folder: Path | None
    """Where the files that it names are looked for."""
    is_contained: bool = False
    """Whether they must stand in that folder, since nobody named them but a script."""


def _model_folder(folder: str | Path | None, model_folder: str | Path | None) -> Path | None:
    found = folder if model_folder is None else model_folder
    return None if found is None else Path(found)


def _steps(changes: Change | Iterable[Change], folder: Path | None) -> Iterable[_Step]:
    if isinstance(changes, Edit | Patch):
        yield _Step(changes, folder)
    elif isinstance(changes, Script):
        for edit in changes.edits:
            yield _Step(edit, folder or changes.folder, is_contained=True)
    elif isinstance(changes, str | bytes | Path) or not isinstance(changes, Iterable):
        raise TypeError(f"edits, scripts and patches are applied, not {type(changes).__name__}; Script.load reads one")
    else:
        for change in changes:
            yield from _steps(change, folder)


def _made(workspace: Workspace, step: _Step) -> Outcome:
    change = step.change
    if isinstance(change, Patch):
        workspace.replace_model(change.apply(workspace.model))
        return Outcome(sum(1 for _ in change.units()))
    workspace.folder = step.folder
    workspace.is_contained = step.is_contained
    outcome = change.change(workspace)
    check_expectation(change, outcome)
    return outcome


def _placed(error: OnnxJsonError, step: Edit | Patch, position: int, count: int) -> OnnxJsonError:
    """The error with the edit that it is about, where that is one of several."""
    if count == 1:
        return error
    what = name_of(step) if isinstance(step, Edit) else "a patch"
    message = f"edit {position + 1} of {count:,} ({what}): {_without(str(error), what)}"
    if isinstance(error, PatchError):
        return PatchError(message, error.address, error.expected, error.found)
    if isinstance(error, EditError):
        return type(error)(message, error.address, position)
    return type(error)(message)


def _without(message: str, name: str) -> str:
    return message.removeprefix(f"{name}: ")


def new_findings(before: Model, after: Model) -> list[Finding]:
    """What is wrong with the structure of a model and was not before."""
    found = check_structure(after)
    if not found:
        return []
    known = Counter([_kind(finding) for finding in check_structure(before)])
    new = []
    for finding in found:
        kind = _kind(finding)
        known[kind] -= 1
        if known[kind] < 0:
            new.append(finding)
    return new


def _kind(finding: Finding) -> tuple[str, str]:
    # Messages name nodes by their positions, which an edit may move.
    return finding.code, re.sub(r"[0-9]+", "0", finding.message)


def _check(before: Model, after: Workspace, steps: Sequence[_Step]) -> None:
    """Do nothing if the model hangs together as well as before.

    Raises:
        EditError: something is wrong that was not; it says which edit made it so.
    """
    new = new_findings(before, after.model)
    if not new:
        return
    finding, more = new[0], len(new) - 1
    hint = f"; {finding.hint}" if finding.hint else ""
    others = f" (and {more:,} more)" if more else ""
    what = f"the model would be broken: {visible(finding.address, 200)}: {finding.message}{hint}{others}"
    if len(steps) == 1:
        name = name_of(steps[0].change) if isinstance(steps[0].change, Edit) else "the patch"
        raise EditError(f"{name}: {what}", finding.address)
    # Which edit it was is worth finding out only now: all of them once more, looked at one by one.
    workspace = Workspace(before)
    workspace.model_folder = after.model_folder
    known = before
    for position, step in enumerate(steps):
        _made(workspace, step)
        left = {_kind(each) for each in new_findings(known, workspace.model)}
        if any(_kind(each) in left for each in new):
            name = name_of(step.change) if isinstance(step.change, Edit) else "a patch"
            raise EditError(f"edit {position + 1} of {len(steps):,} ({name}): {what}", finding.address, position)
        known = workspace.model
    raise EditError(what, finding.address)


__all__ = ["Change", "ParameterError", "Result", "apply", "files_written", "new_findings", "plan", "run", "write_files"]
