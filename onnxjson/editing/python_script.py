"""Rewrite scripts in Python: files with ``def rewrite(model)``, run only if the user names them.

The function receives an `onnxjson.Model` and returns a model, an ``onnx.ModelProto``, a patch, or edits to apply.
Instead, the file may define ``rules`` for the rewriter of onnxscript.
"""

import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from msgspec.structs import replace

from onnxjson.editing.applying import Result, new_findings, run
from onnxjson.editing.declaration import Edit, Outcome, name_of
from onnxjson.editing.sandbox import Counts, reconcile
from onnxjson.editing.script import Script
from onnxjson.model.display import suggest, visible
from onnxjson.model.document import Graph, Model
from onnxjson.model.errors import EditError, OnnxJsonError
from onnxjson.patching.patch import Patch
from onnxjson.storage.identity import open_source

_FUNCTION: Final = "rewrite"
_RULES: Final = "rules"

_NO_MATCH: Final = "no rule matched; nothing changed"


class PythonScript:
    """A script that was run once, with its definitions."""

    def __init__(self, path: Path) -> None:
        """Run the file.

        Raises:
            MissingInputError, AccessDeniedError, FileError: the file cannot be read.
            EditError: the file fails, or defines neither ``rewrite`` nor ``rules``.
        """
        self.path = path
        source = open_source(path)
        module = ModuleType("rewrite_script")
        module.__file__ = str(path)
        try:
            code = compile(source.read_at(0, source.size), str(path), "exec")
            exec(code, module.__dict__)  # the user named this file to be run
        except (Exception, SystemExit) as error:
            raise _failed(path, error) from error
        self._rewrite = getattr(module, _FUNCTION, None)
        self._rules = getattr(module, _RULES, None)
        if not callable(self._rewrite) and self._rules is None:
            raise EditError(
                f"{path} defines neither `def rewrite(model)` nor `rules`; it needs one of them to change a model"
            )

    def run(self, model: Model, model_folder: Path | None = None) -> Result:
        """Apply the script to a model.

        Raises:
            EditError: it fails, returns something that cannot change a model, or leaves an invalid model.
            OnnxJsonError: one of its edits is not possible.
        """
        if not callable(self._rewrite):
            returned = self._rules
        else:
            try:
                returned = self._rewrite(model)
            except OnnxJsonError:
                raise
            except (Exception, SystemExit) as error:
                # A script that exits would end the program before anything is written, as if it had succeeded.
                raise _failed(self.path, error) from error
        return self._result(model, returned, model_folder)

    def prefixes(self, model: Model) -> Iterator[tuple[str, Model]]:
        """Yield the name of each edit or rule of a script, and the model after it and those before it.

        Raises:
            EditError, OnnxJsonError: see `run`.
        """
        made = self._rewrite(model) if callable(self._rewrite) else self._rules
        parts = list(made) if isinstance(made, Iterable) and not isinstance(made, str | bytes | Model | Patch) else []
        if not all([isinstance(each, Edit) or _is_rules(each) for each in parts]):
            return
        for count, each in enumerate(parts, 1):
            name = name_of(each) if isinstance(each, Edit) else getattr(each, "name", None) or type(each).__name__
            yield f"{count}: {name}", self._result(model, parts[:count], None).model

    def _result(self, model: Model, returned: Any, model_folder: Path | None) -> Result:
        if isinstance(returned, Edit | Script | Patch):
            return run(model, returned, folder=self.path.parent, model_folder=model_folder)
        if isinstance(returned, Model):
            return self._checked(model, returned)
        if getattr(getattr(returned, "DESCRIPTOR", None), "full_name", "") == "onnx.ModelProto":
            from onnxjson.codecs import serde

            return self._checked(model, serde.from_proto(returned))
        if _is_rules(returned):
            return self._checked(model, self._by_rules(model, returned), _NO_MATCH)
        if isinstance(returned, Iterable) and not isinstance(returned, str | bytes | Path):
            changes = list(returned)
            if all([isinstance(each, Edit | Script | Patch) for each in changes]):
                return run(model, changes, folder=self.path.parent, model_folder=model_folder)
            if changes and all([_is_rules(each) for each in changes]):
                return self._checked(model, self._by_rules(model, changes), _NO_MATCH)
        what = "nothing" if returned is None else f"a {type(returned).__name__}"
        raise EditError(
            f"{self.path}: rewrite returned {what}; it must return a model, edits, a patch or rules of onnxscript"
        )

    def _checked(self, before: Model, after: Model, note: str = "nothing changed") -> Result:
        """Return the result; `note` is for one that equals the model before."""
        new = new_findings(before, after)
        if new:
            raise EditError(f"{self.path}: the model would be broken: {new[0]}", new[0].address)
        count = sum(1 for _ in Patch.between(before, after).units())
        return Result(after, (Outcome(count, () if count else (note,)),), {})

    def _by_rules(self, model: Model, rules: Any) -> Model:
        try:
            from onnxscript import rewriter
        except ImportError as error:
            raise EditError(
                f"{self.path} has rules for onnxscript, which is not installed; pip install onnxscript"
            ) from error
        from onnxjson.codecs import serde

        try:
            rewritten = rewriter.rewrite(serde.to_proto(model), pattern_rewrite_rules=rules)
        except (Exception, SystemExit) as error:
            raise _failed(self.path, error) from error
        after = serde.from_proto(rewritten)
        if model.graph is None or not isinstance(after.graph, Graph):
            return after
        # The rewriter converts the whole model; everything that its rules do not affect is restored.
        same = replace(model, graph=reconcile(model.graph, after.graph, Counts()))
        return same if not new_findings(model, same) else after


def _failed(path: Path, error: BaseException) -> EditError:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = frames[-1].lineno if frames else getattr(error, "lineno", None)
    place = f"{path}:{line}" if line else str(path)
    hint = ""
    if isinstance(error, AttributeError) and error.name:
        hint = suggest(error.name, dir(error.obj))
    elif "does not change; write" in str(error):
        hint = "models do not change; return edits, such as edits.ReplaceNode(node=..., op_type=...)"
    return EditError(f"{place}: {type(error).__name__}: {visible(str(error), 300)}{f'; {hint}' if hint else ''}")


def _is_rules(made: Any) -> bool:
    return type(made).__module__.partition(".")[0] == "onnxscript"
