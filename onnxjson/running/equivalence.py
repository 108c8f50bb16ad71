"""Whether a model computes the same before and after a conversion that should not matter, on a few random inputs."""

from pathlib import Path
from typing import Final

from onnxjson.model.constants import RANDOM
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Model, Node
from onnxjson.model.errors import EditError, OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.model.walking import stored_bytes, tensors_of
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.tasks import Settings
from onnxjson.running.verification import Plan, Verifier
from onnxjson.running.worker import Worker

_SECONDS: Final = 5.0
"""Time limit for everything; a model that runs in about a second ends within it."""
_MOST_BYTES: Final = 128 << 20
"""Bytes up to which models are run with their weights."""
_SETTINGS: Final = Settings(engines=("onnxruntime",))


def require_same_results(before: Model, after: Model, folder: Path | None, worker: Worker) -> tuple[str, ...]:
    """Raise if two models compute something else on random inputs; return a remark if that is not known.

    Args:
        folder: where the external data of both is; None if there is none.

    Raises:
        EditError: an output differs.
    """
    size = sum(map(stored_bytes, tensors_of(before)))
    drawing = [ref.address for ref in Index(before).nodes() if _is_random(ref.node)]
    if drawing:
        return _not_compared(f"{drawing[0]} draws random numbers")
    if size > _MOST_BYTES:
        return _not_compared(f"its weights have {size:,} bytes")
    path = None if folder is None else folder / "model.onnx"
    plan = Plan(seeds=2, settings=_SETTINGS, timeout=_SECONDS)
    try:
        with Verifier(TwoModels(before, after, (path, path)), plan, worker=worker) as verifier:
            result = verifier.result()
    except OnnxJsonError as error:
        return _not_compared(str(error))
    if any([each.verdict == "different" for each in result.runs]):
        names = listed([f'"{visible(each.name)}"' for each in result.outputs if each.failed])
        raise EditError(f"the result would have other outputs: {names} differs on random inputs")
    problems = [each.problem for each in result.runs if each.problem]
    return () if result.equal else _not_compared(problems[0] if problems else result.doubt)


def _is_random(node: Node) -> bool:
    return node.op_type in RANDOM or (node.op_type == "Dropout" and any(node.input[2:]))


def _not_compared(reason: str) -> tuple[str, ...]:
    return (f"the results were not compared with those before: {reason}",)
