"""What each pass of onnxscript's optimizer did, and each rule of its rewriter. Runs in the guarded process."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from onnxjson.passes.stages import READING, PartStage


@contextmanager
def watched(model: bytes, seen: Callable[[PartStage], None]) -> Iterator[None]:
    """Within the block, `seen` gets the model after each pass and each rule that changed it; `model` is the first."""
    import onnx_ir
    from onnx import ModelProto

    watch = _Watch(seen)
    watch.look(READING, onnx_ir.serde.deserialize_model(ModelProto.FromString(model)), model)
    base: Any = onnx_ir.passes.PassBase
    original = base.__call__
    base.__call__ = watch.wrapped(original)
    try:
        yield
    finally:
        base.__call__ = original


class _Watch:
    """Looks at the model after each pass."""

    def __init__(self, seen: Callable[[PartStage], None]) -> None:
        self._seen = seen
        self._last = b""
        self._is_within = False

    def look(self, name: str, model: Any, before: bytes | None = None) -> None:
        """Hand on the model if it is another one than before."""
        data = _serialised(model)
        if data != (self._last if before is None else before):
            self._seen(PartStage(name, data))
        self._last = data

    def wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """``PassBase.__call__`` that is looked at; what consists of passes is left to these."""
        from onnx_ir.passes import Sequential
        from onnxscript.rewriter import RewritePass

        def watched_call(subject: Any, given: Any, /) -> Any:
            if self._is_within or isinstance(subject, Sequential):
                return call(subject, given)
            self._is_within = True
            try:
                if isinstance(subject, RewritePass):
                    return self._rewritten(call, subject, given)
                result = call(subject, given)
            finally:
                self._is_within = False
            self.look(type(subject).__name__.removesuffix("Pass"), result.model)
            return result

        return watched_call

    def _rewritten(self, call: Callable[..., Any], subject: Any, given: Any) -> Any:
        """Runs a pass of rules, and on a copy of the model those that fired, one more each time."""
        from onnxscript.rewriter import RewritePass

        model = getattr(given, "model", given)
        before = _copied(model)
        with _fired(subject.rules.rules) as fired:
            result = call(subject, given)
        for count in range(1, len(fired)):
            made = _copied(before)
            subject_of_some = RewritePass(fired[:count])
            call(subject_of_some, made)
            self.look(_name(fired[count - 1]), made)
        self.look(_name(fired[-1]) if fired else "Rewrite", result.model)
        return result


@contextmanager
def _fired(rules: Any) -> Iterator[list[Any]]:
    """Within the block, the rules that rewrite something are put on the list, each once."""
    from onnxscript.rewriter import RewriteRule

    fired: list[Any] = []
    kind: Any = RewriteRule
    original = kind.try_rewrite

    def try_rewrite(rule: Any, *arguments: Any, **options: Any) -> Any:
        replacement = original(rule, *arguments, **options)
        if replacement is not None and not any(rule is each for each in fired):
            fired.append(rule)
        return replacement

    kind.try_rewrite = try_rewrite
    try:
        yield fired
    finally:
        kind.try_rewrite = original
        # The order of the rules is that in which they are tried.
        fired.sort(key=lambda rule: _place(rules, rule))


def _place(rules: Any, rule: Any) -> int:
    return next((place for place, each in enumerate(rules) if each is rule), 0)


def _name(rule: Any) -> str:
    return str(rule.name or type(rule).__name__)


def _copied(model: Any) -> Any:
    import onnx_ir

    return onnx_ir.serde.deserialize_model(copy.deepcopy(onnx_ir.serde.serialize_model(model)))


def _serialised(model: Any) -> bytes:
    import onnx_ir

    return bytes(onnx_ir.serde.serialize_model(model).SerializeToString())
