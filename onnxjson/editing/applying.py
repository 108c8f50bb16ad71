"""Apply edits, scripts and patches to a model: all of them or none."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.editing.declaration import Edit, Outcome, check_expectation, name_of
from onnxjson.editing.inference import propagate_types
from onnxjson.editing.script import Script
from onnxjson.editing.type_correction import correct_types
from onnxjson.editing.workspace import Workspace
from onnxjson.model.dimensions import with_dimension_names
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Model, Tensor, Type
from onnxjson.model.errors import (
    BrokenNodesError,
    EditError,
    Finding,
    NoMatchError,
    OnnxJsonError,
    PatchError,
    SelectorError,
)
from onnxjson.model.index import Index
from onnxjson.model.structure import check_structure
from onnxjson.patching.patch import Patch
from onnxjson.storage.external import file_of
from onnxjson.storage.external_files import NewFile, files_written

_SHOWN: Final = 6

Change = Edit | Script | Patch
"""Anything that changes a model."""

Check = Callable[[Model], Sequence[Finding]]
"""Finds mistakes in a model."""

Changes = Change | Iterable[Change | Iterable[Change]]
"""One or several changes, in their order."""


class Result(NamedTuple):
    """A model after edits, and the outcome of each of them."""

    model: Model
    outcomes: tuple[Outcome, ...]
    files: dict[Path, Tensor]
    """Values to write to .npy files; see `write_files`."""

    @property
    def matches(self) -> int:
        """Number of elements that all edits together selected."""
        return sum(outcome.matches for outcome in self.outcomes)

    def new_files(self) -> tuple[NewFile, ...]:
        """Return the values to write as files; see `onnxjson.storage.external_files.files_written`."""
        from onnxjson.storage.numpy_constants import write_npy

        return tuple([NewFile(path, partial(write_npy, tensor)) for path, tensor in self.files.items()])


def apply(
    model: Model, changes: Changes, *, folder: str | Path | None = None, model_folder: str | Path | None = None
) -> Model:
    """Return the model after edits, scripts or patches; all of them are applied, or none.

    Args:
        model: is not modified; unchanged records are shared with the result.
        changes: one or several, applied in their order.
        folder: where files that edits name are; the folder of the script by default. Without either,
            no file is read. Files that a script names must be in its folder.
        model_folder: where the model and its external data are; `folder` if it is None.

    Raises:
        EditError: an edit is not possible, or would leave an invalid model.
        SelectorError: a selector matches nothing, or more than one element where exactly one is needed.
        PatchError: a patch does not apply.
        OutputError, AccessDeniedError, FileError: a file of an edit cannot be written.
    """
    result = run(model, changes, folder=folder, model_folder=model_folder)
    write_files(result)
    return result.model


def write_files(result: Result) -> None:
    """Write the .npy files of edits, such as those of initializers-to-inputs with ``save``.

    Raises:
        OutputError, AccessDeniedError, FileError: a file cannot be written.
    """
    with files_written(result.new_files()):
        return


def plan(model: Model, changes: Changes, *, folder: str | Path | None = None) -> Patch:
    """Return the patch with the effect of `apply`; see `apply` for arguments and errors. No file is written."""
    return Patch.between(model, run(model, changes, folder=folder).model)


def run(
    model: Model,
    changes: Changes,
    *,
    folder: str | Path | None = None,
    model_folder: str | Path | None = None,
    force: bool = False,
) -> Result:
    """`apply`, and return the outcome of each edit as well; no file is written.

    With `force`, nodes that cannot have the shapes afterwards are remarks and not an error.
    """
    if not isinstance(model, Model):
        order = "write apply(model, change)" if isinstance(changes, Model) else "onnxjson.load reads a file"
        raise TypeError(f"a model is changed, not {type(model).__name__}; {order}")
    workspace = Workspace(model)
    workspace.is_forced = force
    files_folder = folder if model_folder is None else model_folder
    workspace.model_folder = default_folder(model) if files_folder is None else Path(files_folder)
    steps, outcomes = apply_changes(workspace, changes, None if folder is None else Path(folder))
    if workspace.can_be_wrong and workspace.model is not model:
        _check(model, workspace, steps)
    notes = settle_types(workspace, is_one=len(steps) == 1)
    if notes and outcomes:
        outcomes = (*outcomes[:-1], outcomes[-1]._replace(notes=(*outcomes[-1].notes, *notes)))
    return Result(workspace.model, outcomes, workspace.files)


def default_folder(model: Model) -> Path | None:
    """Return the folder of the external data of a loaded model, if it has some."""
    file = file_of(model)
    return None if file is None else file.parent


def apply_changes(
    workspace: Workspace, changes: Changes, folder: Path | None = None
) -> "tuple[Sequence[_Step], tuple[Outcome, ...]]":
    """Apply changes to a workspace without checking the result; return them one by one, and their outcomes."""
    steps = list(_steps(changes, folder))
    outcomes = []
    for position, step in enumerate(steps):
        try:
            outcomes.append(_apply_step(workspace, step))
        except (EditError, SelectorError, PatchError) as error:
            if len(steps) > 1:
                _name_step(error, step.change, position, len(steps))
            raise
    return steps, tuple(outcomes)


class _Step(NamedTuple):
    change: Edit | Patch
    folder: Path | None
    """Folder of the files that it names."""
    is_contained: bool = False
    """Whether they must be in that folder, since only a script names them."""


def _steps(changes: Changes, folder: Path | None) -> Iterable[_Step]:
    if isinstance(changes, Edit | Patch):
        yield _Step(changes, folder)
    elif isinstance(changes, Script):
        for edit in changes.edits:
            yield _Step(edit, folder or changes.folder, is_contained=True)
    elif isinstance(changes, str | bytes | Path) or not isinstance(changes, Iterable):
        named = [each.__name__ for each in Edit.__subclasses__() if name_of(each) == str(changes)]
        reading = "onnxjson.Patch.load(path) or onnxjson.edits.Script.load(path) reads one"
        hint = f"write onnxjson.edits.{named[0]}(...)" if named else reading
        raise TypeError(f"edits, scripts and patches are applied, not {type(changes).__name__}; {hint}")
    elif hasattr(type(changes), "patch"):
        raise TypeError(f"a {type(changes).__name__} is not applied, but its patch is; write .patch after it")
    else:
        for change in changes:
            yield from _steps(change, folder)


def _apply_step(workspace: Workspace, step: _Step) -> Outcome:
    change = step.change
    notes = propagate_types(workspace) if isinstance(change, Patch) or change.reads_shapes else ()
    if isinstance(change, Patch):
        workspace.replace_model(change.apply(workspace.model))
        workspace.keep_types()
        return Outcome(sum(1 for _ in change.units()), notes)
    workspace.folder = step.folder
    workspace.is_contained = step.is_contained
    before = workspace.model
    try:
        outcome = change.change(workspace)
    except NoMatchError as error:
        if not change.if_any and change.expect != 0:
            raise
        workspace.replace_equivalent(before)
        outcome = Outcome(0, (f"nothing is changed: {error}",))
    check_expectation(change, outcome)
    return outcome._replace(notes=(*notes, *outcome.notes))


def _name_step(error: OnnxJsonError, change: Edit | Patch, position: int, count: int) -> None:
    """Let an error name its step among several."""
    name = name_of(change) if isinstance(change, Edit) else "a patch"
    error.places = (f"edit {position + 1} of {count:,} ({name})", *[place for place in error.places if place != name])
    if isinstance(error, EditError):
        error.position = position


def settle_types(workspace: Workspace, *, is_one: bool = False) -> tuple[str, ...]:
    """Correct the stated types after all edits, and return remarks; `is_one` after one edit.

    Raises:
        EditError: nodes cannot have the shapes that follow, and no edit allows that.
    """
    notes = propagate_types(workspace)
    complaints = workspace.complaints
    if complaints and not is_one:
        # Later edits may have corrected mistakes of earlier ones.
        complaints = dict(correct_types(workspace.before, workspace.index, workspace.model_folder).complaints)
    if workspace.examples:
        sized = with_dimension_names(workspace.model, workspace.examples)
        where = ", ".join([f"{visible(name)}={size}" for name, size in workspace.examples.items()])
        wrong = correct_types(workspace.before, Index(sized), workspace.model_folder).complaints
        complaints = {**{place: f"{text} (for {where})" for place, text in wrong.items()}, **complaints}
    if complaints and not workspace.is_forced:
        what = f"shape inference fails at {listed(_grouped(complaints), _SHOWN, '; ')}"
        hint = "if the change needs another one, write both into one script (`onnxjson apply --help`)"
        if workspace.is_resized:
            fixed = "set-batch-size also changes the constants that fix a batch, set-dim with `follow` those of an axis"
            hint = f"{fixed}; {hint}"
        raise BrokenNodesError(f"{what}; {hint}", next(iter(complaints)))
    return (
        *notes,
        *[f"shape inference fails at {text}" for text in complaints.values()],
        *_shapeless_outputs(workspace),
    )


def _grouped(complaints: Mapping[str, str]) -> list[str]:
    """Return the complaints about nodes at addresses; of those with one reason, the first and the number of others."""
    by_reason: dict[str, list[str]] = {}
    for address, text in complaints.items():
        by_reason.setdefault(text.rpartition(f" ({address}): ")[2], []).append(text)
    counts = [(first, len(others)) for first, *others in by_reason.values()]
    return [f"{first} (and {counted(count, 'more node')})" if count else first for first, count in counts]


def _lacks_shape(stated: Type | None) -> bool:
    return stated is not None and stated.tensor_type is not None and stated.tensor_type.shape is None


def _shapeless_outputs(workspace: Workspace) -> tuple[str, ...]:
    """Return a remark about outputs that have no shape, if there are more of them than before the edits."""
    before, after = (
        [each.name or "" for each in (model.graph.output if model.graph else ()) if _lacks_shape(each.type)]
        for model in (workspace.before, workspace.model)
    )
    if len(after) <= len(before):
        return ()
    names = ", ".join([f'"{visible(name)}"' for name in after if name not in before])
    return (f"the checker of onnx requires shapes of outputs, but that of {names} is not known; set-shape states it",)


def new_findings(before: Model, after: Model, check: Check = check_structure) -> list[Finding]:
    """Return the mistakes of a model that were not there before; those of its structure by default."""
    findings = check(after)
    if not findings:
        return []
    known = Counter([_kind(finding) for finding in check(before)])
    new = []
    for finding in findings:
        kind = _kind(finding)
        known[kind] -= 1
        if known[kind] < 0:
            new.append(finding)
    return new


def _kind(finding: Finding) -> tuple[str, str]:
    # Messages name nodes by their positions, which edits change.
    return finding.code, re.sub(r"[0-9]+", "0", finding.message)


def broken_text(new: Sequence[Finding]) -> str:
    """Return the message for a change that would break a model."""
    finding, more = new[0], len(new) - 1
    hint = f"; {finding.hint}" if finding.hint else ""
    others = f" (and {more:,} more)" if more else ""
    return f"the model would be broken: {visible(finding.address, 200)}: {finding.message}{hint}{others}"


def _check(before: Model, after: Workspace, steps: Sequence[_Step]) -> None:
    """Raise unless the model is as valid as before."""
    new = new_findings(before, after.model)
    if not new:
        return
    error = EditError(broken_text(new), new[0].address)
    if len(steps) == 1:
        error.add_place(name_of(steps[0].change) if isinstance(steps[0].change, Edit) else "the patch")
        raise error
    # Apply the edits again, one by one, to find the one that caused the mistake.
    workspace = Workspace(before)
    workspace.model_folder = after.model_folder
    known = before
    for position, step in enumerate(steps):
        _apply_step(workspace, step)
        left = {_kind(finding) for finding in new_findings(known, workspace.model)}
        if any(_kind(finding) in left for finding in new):
            _name_step(error, step.change, position, len(steps))
            break
        known = workspace.model
    raise error
