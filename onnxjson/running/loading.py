"""Whether onnxruntime loads a model, tried in the sandboxed process; what no longer loads is not written.

onnxruntime loads the model with its own optimizations, which compute what can be computed in advance and so find
shapes that do not fit and that the inference of onnx leaves unknown. Then it runs once on random inputs, if that takes
under a second. Constants of big models become inputs: only their types matter here.
"""

import os
import re
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.document import Model, Node
from onnxjson.model.errors import FeedError, LimitError, OnnxJsonError, UnloadableError
from onnxjson.model.index import Index
from onnxjson.model.operators import function_key, operator_key, plain_domain
from onnxjson.model.tensors import is_external
from onnxjson.model.types import innermost
from onnxjson.model.walking import replace_records, stored_bytes, tensors_of
from onnxjson.running.inputs import InputOptions, free_inputs, inputs_of
from onnxjson.running.light_model import with_inputs
from onnxjson.running.sandbox import MAX_INLINE_BYTES, Outcome, execute, pack_model
from onnxjson.running.tasks import Failed, Opened, Output, Refused, RunTask, Settings
from onnxjson.running.value_types import tensor_type
from onnxjson.running.values import packed_values
from onnxjson.running.worker import Worker
from onnxjson.running.worker_protocol import allowed_limits
from onnxjson.storage.weights import missing

if TYPE_CHECKING:
    from onnxjson.running.values import Values

ENGINE: Final = "onnxruntime"

_WHOLE: Final = 128 << 20
"""Bytes up to which a model is loaded with its weights and run; the weights of bigger ones become inputs."""

_RUN_SECONDS: Final = 1.0

_RUN_SIZES: Final = ((2,), (1,), (64,))
"""Sizes of open dimensions that are tried."""

_RUN_BYTES: Final = 16 << 20
"""Maximum bytes of the values of such sizes."""

_DOMAINS: Final = frozenset((
    "", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft", "com.microsoft.dml",
    "com.microsoft.experimental", "com.microsoft.nchwc", "com.ms.internal.nhwc", "org.pytorch.aten",
))  # fmt: skip
"""Domains whose operators onnxruntime has without an extension."""

_HEAD: Final = re.compile(r"(?:onnxruntime: )?\[ONNXRuntimeError\] : [0-9]+ : (\w+) : ")
_TOO_NEW: Final = re.compile(r"Unsupported model IR version: .*|Opset [0-9]+ is under development.*")
_NOT_IMPLEMENTED: Final = "NOT_IMPLEMENTED"
_CRASHED: Final = "crashed"
"""Beginning of the outcome of a process that native code ended."""

_TEXTS: Final = frozenset(("doc_string", "metadata_props", "producer_name", "producer_version", "model_version"))
"""Fields of records that have no effect in onnxruntime."""


Ran = Literal["", "runs", "slow", "fails", "not-run"]


class Loading(msgspec.Struct, frozen=True, kw_only=True):
    """Whether onnxruntime loads a model."""

    state: Literal["loads", "fails", "too-new", "not-tried"]
    """"too-new" if this onnxruntime does not know its ir_version or operator set yet."""
    reason: str = ""
    """Why it fails or was not tried, on one line; visible text."""
    address: str = ""
    """Address of the node at which it fails; "" if unknown."""
    is_certain: bool = True
    """Whether the model is at fault; false if onnxruntime lacks the operator for a dtype, or got no weights."""
    ran: Ran = ""
    """What the run on random inputs did; "" if not wanted."""
    run_problem: str = ""
    """Why it fails, or was not made."""


def try_loading(
    model: Model,
    folder: Path | None,
    worker: Worker | None = None,
    *,
    runs: bool = True,
    reads_files: bool = True,
) -> Loading:
    """Load a model in onnxruntime, and run it once on random inputs.

    Args:
        folder: where the external data of the model is; None if there is none.
        runs: whether to run it, too; models above 128 MiB are only loaded.
        reads_files: whether to read big constants in other files; otherwise such a model is only loaded.
    """
    if (reason := _not_triable(model)) is not None:
        return Loading(state="not-tried", reason=reason)
    with nullcontext(worker) if worker is not None else Worker() as sandbox:
        attempt = _Attempt(folder, sandbox)
        try:
            sandbox.start()
            tensors = list(tensors_of(model))
            size = sum(map(stored_bytes, tensors))
            is_known = not missing(model) and (folder is not None or not any(map(is_external, tensors)))
            if size <= _WHOLE and is_known and (reads_files or not any(map(is_external, tensors))):
                return attempt.load(model, runs=runs)
            light = model if model.graph is None else msgspec.structs.replace(model, graph=with_inputs(model.graph))
            of_light = attempt.load(light, runs=False)
            if of_light.state == "fails" and size <= MAX_INLINE_BYTES and is_known:
                # An operator may need a constant where it got an input.
                return attempt.load(model, runs=False)
            certain = of_light.is_certain and of_light.state != "fails"
            if runs and of_light.state == "loads":
                problem = f"its weights, {size:,} bytes, are not loaded"
                of_light = msgspec.structs.replace(of_light, ran="not-run", run_problem=problem)
            return msgspec.structs.replace(of_light, is_certain=certain)
        except OnnxJsonError as error:
            return Loading(state="not-tried", reason=str(error))


def require_loadable(
    before: Model,
    after: Model,
    folder: Path | None,
    worker: Worker | None = None,
    *,
    advice: str = f"; nothing was written; {UnloadableError.option} writes it anyway",
) -> tuple[str, ...]:
    """Raise if onnxruntime loads a model before a change and not after it; return remarks for the user.

    Every command that edits a model asks this, and it decides itself which changes cannot matter: those of texts alone.
    With known sizes of all inputs, a result that fails on random inputs is refused too, unless the model failed before.

    Args:
        folder: where the external data of both is; None if there is none.
        advice: the end of the message.

    Raises:
        UnloadableError: the result does not load any more; the message names the node and the reason.
    """
    if _reads_alike(before, after):
        return ()
    loaded = try_loading(after, folder, worker, runs=not has_open_sizes(after), reads_files=False)
    not_tried = (f"the result was not tried in onnxruntime: {loaded.reason}",)
    if loaded.state == "not-tried":
        return not_tried
    run_fails = loaded.ran == "fails"
    if loaded.state == "loads" and not run_fails:
        return ()
    was = try_loading(before, folder, worker, runs=run_fails, reads_files=False)
    if was.state != "loads" or (run_fails and was.ran != "runs"):
        return not_tried if loaded.state == "too-new" else ()
    does, reason = ("runs", loaded.run_problem) if run_fails else ("loads", loaded.reason)
    where = f"{loaded.address}: " if loaded.address else ""
    raise UnloadableError(
        f"onnxruntime {does} the model before the change, but not the result: {where}{reason}{advice}", loaded.address
    )


def _reads_alike(one: object, other: object) -> bool:
    """Whether two records differ in texts alone."""
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_reads_alike, one, other))
    if isinstance(one, msgspec.Struct):
        fields = [name for name in one.__struct_fields__ if name not in _TEXTS]
        return all([_reads_alike(getattr(one, name), getattr(other, name)) for name in fields])
    return one == other


def has_open_sizes(model: Model) -> bool:
    """Whether sizes of inputs have to be chosen for a run."""
    types = [tensor_type(innermost(declared), 0, name) for name, declared in free_inputs(model).items()]
    shapes = [None if found is None else found[1] for found in types]
    return any([shape is None or not all([isinstance(size, int) for size in shape]) for shape in shapes])


def _not_triable(model: Model) -> str | None:
    """Return why onnxruntime cannot judge a model; None if it can."""
    if find_spec(ENGINE) is None:
        return "onnxruntime is not installed"
    if model.graph is None:
        return "the model has no graph"
    functions = {function_key(each) for each in model.functions}
    for ref in Index(model).node_refs:
        if plain_domain(ref.node.domain) not in _DOMAINS and operator_key(ref.node) not in functions:
            name = visible(f"{ref.node.domain}::{ref.node.op_type}")
            return f"it has custom operators, such as {name} ({ref.address})"
    return None


class _Attempt(NamedTuple):
    folder: Path | None
    worker: Worker

    def load(self, model: Model, *, runs: bool) -> Loading:
        """Load a model; where it fails, again with names of the nodes by which the message places it."""
        feeds, problem = self._feeds(model) if runs else ([], "")
        outcome = self._execute(model, feeds)
        if outcome.first(Opened) is not None:
            ran: Ran = "" if not runs else "not-run" if problem else _run_of(outcome)
            address = ""
            if ran == "fails":
                marked = MarkedNodes(model)
                again = self._execute(marked.model, feeds).first(Failed)
                message, address = marked.read("" if again is None else again.problem)
                failed = outcome.first(Failed)
                problem = _plain(message or ("" if failed is None else failed.problem))
            return Loading(state="loads", ran=ran, run_problem=problem, address=address)
        refused = outcome.first(Refused)
        if refused is None:
            state: Literal["fails", "not-tried"] = "fails" if outcome.problem.startswith(_CRASHED) else "not-tried"
            return Loading(state=state, reason=f"onnxruntime {outcome.problem or 'was interrupted'}")
        if (too_new := _TOO_NEW.search(refused.problem)) is not None:
            return Loading(state="too-new", reason=f"it is newer than this onnxruntime: {too_new[0].strip()}")
        marked = MarkedNodes(model)
        refused = self._execute(marked.model, ()).first(Refused) or refused
        message, address = marked.read(refused.problem)
        kind = _HEAD.match(message)
        certain = kind is None or kind[1] != _NOT_IMPLEMENTED
        return Loading(state="fails", reason=_plain(message), address=address, is_certain=certain)

    def _execute(self, model: Model, feeds: "list[Values] | tuple[()]") -> Outcome:
        sent = pack_model(model, self.folder)
        task = RunTask(
            subject=sent.subject,
            settings=Settings(engines=(ENGINE,), level="all"),
            feeds=tuple(map(packed_values, feeds)),
            run_seconds=_RUN_SECONDS,
        )
        limits = allowed_limits()
        return execute(self.worker, task, timeout=limits.wall_seconds, size=sent.size, memory=limits.memory)

    def _feeds(self, model: Model) -> "tuple[list[Values], str]":
        """Return random values for each run, and why there are none."""
        runs: list[Values] = []
        problem = ""
        inputs = inputs_of(model, InputOptions(), self.worker)
        for cycle in _RUN_SIZES if has_open_sizes(model) else _RUN_SIZES[:1]:
            try:
                values = inputs.feeds({}, (0,), cycle=cycle)[0]
            except (FeedError, LimitError) as error:
                problem = problem or str(error)
                continue
            if not runs or sum([len(packed_values(each)) for each in (*runs, values)]) <= _RUN_BYTES:
                runs.append(values)
        return runs, "" if runs else problem


def _run_of(outcome: Outcome) -> Ran:
    if outcome.first(Output) is not None:
        return "runs"
    return "slow" if outcome.first(Failed) is None else "fails"


def _plain(message: str) -> str:
    """Return a message of onnxruntime without what every message has."""
    return _HEAD.sub("", message.partition("RuntimeException: ")[2] or message, count=1)


class MarkedNodes:
    """A copy of a model in which each node has a name of its own, by which messages of native code place it."""

    def __init__(self, model: Model) -> None:
        mark = f"node-{os.urandom(4).hex()}-"
        names: list[str] = []

        def number(node: Node) -> Node:
            names.append(node.name or "")
            return msgspec.structs.replace(node, name=f"{mark}{len(names) - 1}")

        self.model = replace_records(model, Node, number, shared=False)
        self._names = names
        self._addresses = {ref.node.name: ref.address for ref in Index(self.model).nodes()}
        self._marked = re.compile(f"{mark}([0-9]+)")

    def read(self, message: str) -> tuple[str, str]:
        """Return a message with the names of the model, and the address of the first node that it names, or ""."""
        first = self._marked.search(message)
        address = "" if first is None else self._addresses.get(first[0], "")
        return self._marked.sub(lambda match: visible(self._names[int(match[1])]), message), address
