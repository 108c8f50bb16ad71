"""Jobs of the sandboxed process: native analysis by onnx with its messages as findings, passes and tasks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnxjson.model.dimensions import INVENTED
from onnxjson.model.display import visible
from onnxjson.model.errors import Finding, OnnxJsonError
from onnxjson.running.expansion import ExpansionError, refuse_expansion
from onnxjson.running.shape_inference import inferred_shapes
from onnxjson.running.worker_protocol import ALLOWED, Answer, Request

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TypeProto, ValueInfoProto

MESSAGE_LENGTH: Final = 1000

MAX_FINDINGS: Final = 1000

_INFERENCE_ERROR: Final = re.compile(r"(?=\(op_type:)")

_DONE: Final = Answer(outcome="done")

_SIMPLER_OPSET: Final = 20
"""The operator set of nodes that stand for others, in a model that does not import the default domain."""

_SAME_SHAPE: Final = frozenset((
    "BiasGelu", "FastGelu", "Gelu", "GroupNormalization", "MeanVarianceNormalization", "QuickGelu", "RotaryEmbedding",
    "SimplifiedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
))  # fmt: skip
"""Operators, some of them of onnxruntime, whose first output is like their first input; onnx does not infer it."""

_ROUNDS: Final = 12
"""Maximum number of times that types are inferred with more constants."""

_SHAPE_ELEMENTS: Final = 1024
"""Maximum number of elements of a constant that may be a shape."""


def prepare(request: Request | None) -> None:
    """Import the modules of a job, or of all jobs, once, before children are forked; a child imports its optimizer."""
    import onnx.checker
    import onnx.inliner
    import onnx.shape_inference
    import onnx.version_converter

    if request is None:
        return
    if request.job == "infer_types":
        import onnx.reference  # noqa: F401
    if request.job == "run":
        from onnxjson.running import engines, executing  # noqa: F401
    if request.job == "text":
        import onnxjson.codecs.reading.exact_reader
        import onnxjson.codecs.reading.fast
        import onnxjson.codecs.reading.parts  # noqa: F401
        from onnxjson.running import checking  # noqa: F401
    if request.module is not None:
        import_module(request.module)


def run(request: Request, subject: bytes | str) -> tuple[Answer, bytes]:
    """Run the job of a request on a serialized model, or on a file (only checks, for external data or over 2 GB)."""
    ALLOWED.set(request.allowed)
    if request.job == "check":
        return _check(subject), b""
    if request.job == "text":
        assert isinstance(subject, bytes), "a text is passed as bytes"
        return _check_text(subject)
    if request.job != "run":
        try:
            refuse_expansion(subject)
        except ExpansionError as error:
            return Answer(outcome="failed", detail=str(error)), b""
    if request.job == "check_shapes":
        return _check_shapes(subject), b""
    assert isinstance(subject, bytes), "only checks read from a path"
    match request.job:
        case "infer_types":
            return _infer_types(subject)
        case "run":
            from onnxjson.running import executing

            executing.execute_task(subject, one_line)
            return _DONE, b""
        case "pass" | "pass_stages":
            try:
                return _run_pass(request, subject)
            except OnnxJsonError as error:  # Its message is complete without the name of its class.
                return Answer(outcome="failed", detail=one_line(str(error))), b""
    return _DONE, _changed(request, subject).SerializeToString()


def _check(model: bytes | str) -> Answer:
    from onnx import checker

    try:
        checker.check_model(model)
    except checker.ValidationError as error:
        return _findings("check-model", [str(error)])
    return _DONE


def _check_text(text: bytes) -> tuple[Answer, bytes]:
    """Check a text of onnxjson; the bytes that are returned tell whether it has a model."""
    from onnxjson.running import checking

    model, found = checking.read_text(text)
    found = checking.of_text(text, model, found)[:MAX_FINDINGS]
    return Answer(outcome="done", findings=tuple(found)), b"" if model is None else b"model"


def _check_shapes(model: bytes | str) -> Answer:
    """Run the strict shape inference of onnx for its findings alone."""
    from onnx import checker, shape_inference

    try:
        if isinstance(model, str):
            checker.check_model(model, full_check=True)
        else:
            inferred_shapes(model, strict=True)
    except checker.ValidationError:
        return _DONE  # `_check` has reported it.
    except shape_inference.InferenceError as error:
        return _inference_findings(error)
    return _DONE


def _infer_types(model: bytes) -> tuple[Answer, bytes]:
    """Run the strict shape inference of onnx, and the other one where it fails; the result has the types alone.

    Where shapes stay open that follow from computations with constants, such as that of an Expand, it runs again with
    the results of these.
    """
    from onnx import ModelProto

    answer, inferred = _strictly_inferred(model)
    easier, unknown = ModelProto.FromString(model), _unknown(inferred.graph)
    if not any([each.domain in ("", "ai.onnx") for each in easier.opset_import]):
        easier.opset_import.add(version=_SIMPLER_OPSET)  # of the nodes that stand for those of other domains
    for _ in range(_ROUNDS if unknown else 0):
        if not _simplify(easier, inferred.graph):
            break
        again, better = _strictly_inferred(easier.SerializeToString())
        _add_types(inferred.graph, better.graph)
        if again.findings:
            answer = again
            break
        before, unknown = unknown, _unknown(inferred.graph)
        if unknown in (0, before):
            break
    _keep_types(inferred)
    return answer, inferred.SerializeToString()


def _keep_types(model: "ModelProto") -> None:
    """Leave the types of a model, and of its nodes those with subgraphs, at their places."""
    nodes = model.graph.node
    around = [any(each.HasField("g") or each.graphs for each in node.attribute) for node in nodes]
    del nodes[len(nodes) - next((at for at, kept in enumerate(reversed(around)) if kept), len(nodes)) :]
    for node, kept in zip(nodes, around, strict=False):
        if not kept:
            node.Clear()
    del model.graph.initializer[:], model.functions[:]


def _strictly_inferred(model: bytes) -> tuple[Answer, "ModelProto"]:
    from onnx import shape_inference

    answer = _DONE
    try:
        inferred = inferred_shapes(model, strict=True)
        known = {each.name for each in inferred.graph.value_info if each.type.tensor_type.HasField("shape")}
        if any(name not in known for node in inferred.graph.node for name in node.output):
            # With known values, the inference sometimes gives up where it continues without them.
            shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except shape_inference.InferenceError as error:
        answer = _inference_findings(error)
        inferred = inferred_shapes(model)
    return answer, inferred


def _changed(request: Request, model: bytes) -> "ModelProto":
    from onnx import ModelProto, inliner

    from onnxjson.running import opset_conversion

    if request.job == "inline_functions":
        return inliner.inline_local_functions(ModelProto.FromString(model))
    assert request.version is not None, "the request has a version"
    return opset_conversion.convert_version(ModelProto.FromString(model), request.version)


def _unknown(graph: "GraphProto") -> int:
    """Return the number of values without a known shape that nodes produce, with those in subgraphs."""
    known = _known(graph)
    inner = sum([_unknown(each) for node in graph.node for each in _bodies(node).values()])
    return inner + sum([name not in known for node in graph.node for name in node.output])


def _bodies(node: "NodeProto") -> "dict[str, GraphProto]":
    """Return the subgraphs of a node that has one for each name, such as If and Loop."""
    return {each.name: each.g for each in node.attribute if each.HasField("g")}


def _known(graph: "GraphProto") -> set[str]:
    return {each.name for each in (*graph.value_info, *graph.output) if _is_known(each.type.tensor_type)}


def _sizes(values: "Iterable[ValueInfoProto]") -> dict[str, list[int]]:
    """Return the dims of values that are all sizes."""
    typed = [(each.name, each.type.tensor_type) for each in values]
    sizes = {name: [each.dim_value for each in tensor.shape.dim] for name, tensor in typed if _is_known(tensor)}
    return {name: dims for name, dims in sizes.items() if min(dims, default=1) > 0}


def _add_types(graph: "GraphProto", better: "GraphProto") -> None:
    """Replace the types of a graph that are not known by those of a graph that is easier to infer."""
    for old, new in ((graph.value_info, better.value_info), (graph.output, better.output)):
        known = [each for each in old if _is_known(each.type.tensor_type)]
        types = {each.name: each for each in (*old, *new, *known)}
        del old[:]
        old.extend(types.values())
    for node, other in zip(graph.node, better.node, strict=True):
        bodies = _bodies(other)
        for name, body in _bodies(node).items():
            if name in bodies and [each.output for each in body.node] == [each.output for each in bodies[name].node]:
                _add_types(body, bodies[name])


def _is_known(tensor: "TypeProto.Tensor") -> bool:
    return tensor.HasField("shape") and all(
        each.HasField("dim_value") or (each.dim_param and not each.dim_param.startswith(INVENTED))
        for each in tensor.shape.dim
    )


def _simplify(model: "ModelProto", inferred: "GraphProto") -> bool:
    """Replace computations with small constants by their results, and operators by others with the same shapes.

    `inferred` is the graph with the types that are known: where they have sizes, the result of Shape is a constant.
    Where a condition is a constant, both branches become the one that runs. Return whether any node was replaced.
    """
    return _Simplified(tuple(model.opset_import), model.ir_version > 3).simplify(model.graph, inferred, {}, {})


class _Simplified(NamedTuple):
    """What holds for all graphs of a model that is simplified."""

    opsets: "tuple[OperatorSetIdProto, ...]"
    inputs_vary: bool
    """Whether an input that has an initializer is no constant."""

    def simplify(
        self, graph: "GraphProto", inferred: "GraphProto", sizes: dict[str, list[int]], small: dict[str, Any]
    ) -> bool:
        """Simplify a graph and its subgraphs, given the sizes and small constants of the graphs around."""
        is_inner = bool(small or sizes)
        sizes = sizes | _sizes((*graph.input, *inferred.value_info))
        constants = {
            node.output[0]: attribute.t
            for node in graph.node
            if node.op_type == "Constant" and node.output
            for attribute in node.attribute
            if attribute.HasField("t")
        }
        small = small | _small({each.name: each for each in graph.initializer} | constants)
        for given in graph.input if self.inputs_vary else ():
            small.pop(given.name, None)
        replaced = is_inner and _add_constants(graph, small)
        for node, typed in zip(graph.node, inferred.node, strict=True):
            bodies, known = _bodies(node), _bodies(typed)
            if node.op_type == "If" and len(bodies) == 2 and node.input[:1] and node.input[0] in small:
                taken = "then_branch" if small[node.input[0]].any() else "else_branch"
                other = "else_branch" if taken == "then_branch" else "then_branch"
                if bodies[taken] != bodies[other]:
                    bodies[other].CopyFrom(bodies[taken])
                    replaced = True
                known[other] = known[taken]
            for name, body in bodies.items():
                replaced = self.simplify(body, known[name], sizes, small) or replaced
            if not bodies and node.output[:1] and node.output[0] not in constants:
                replaced = self._simpler(graph, node, sizes, small) or replaced
        return replaced

    def _simpler(
        self, graph: "GraphProto", node: "NodeProto", sizes: Mapping[str, Sequence[int]], small: dict[str, Any]
    ) -> bool:
        """Replace a node by a simpler one, if there is one; add its result to the small constants."""
        import numpy
        from onnx import TensorProto, helper, numpy_helper

        key, names = (node.domain, node.op_type), [name for name in node.input if name]
        values = {name: small[name] for name in names if name in small}
        if key == ("", "Shape") and names and names[0] in sizes:
            values = {names[0]: numpy.broadcast_to(numpy.False_, sizes[names[0]])}
        is_plain = len(node.output) == 1 and not any(each.graphs for each in node.attribute)
        if is_plain and (names or key == ("", "Constant")) and values.keys() == set(names):
            with suppress(Exception):  # the evaluator does not have the operator, or the node is invalid
                result = self._result(node, values)
                if result.size <= _SHAPE_ELEMENTS:
                    stored = numpy_helper.from_array(result)
                    node.CopyFrom(helper.make_node("Constant", [], node.output, value=stored))
                    small[node.output[0]] = result
                    return True
        elif names and node.op_type in _SAME_SHAPE and node.domain in ("", "com.microsoft"):
            node.CopyFrom(helper.make_node("Identity", node.input[:1], node.output[:1]))
            return True
        elif names and key == ("com.microsoft", "MatMulNBits"):
            dims = [each.i for letter in "KN" for each in node.attribute if each.name == letter]
            graph.initializer.add(name=f"{node.output[0]} weights", dims=dims, data_type=TensorProto.FLOAT)
            node.CopyFrom(helper.make_node("MatMul", [names[0], f"{node.output[0]} weights"], node.output[:1]))
            return True
        return False

    def _result(self, node: "NodeProto", values: Mapping[str, Any]) -> Any:
        """Compute the only output of a node; alone, without a model, it would be of the newest opset."""
        from onnx import TypeProto, helper
        from onnx.reference import ReferenceEvaluator

        inputs = [helper.make_value_info(name, TypeProto()) for name in values]
        outputs = [helper.make_value_info(name, TypeProto()) for name in node.output]
        graph = helper.make_graph([node], "", inputs, outputs)
        results: Any = ReferenceEvaluator(helper.make_model(graph, opset_imports=self.opsets)).run(None, dict(values))
        return results[0]


def _add_constants(graph: "GraphProto", small: Mapping[str, Any]) -> bool:
    """Add the constants that the nodes of a subgraph take from outside; onnx does not look there for their values."""
    from onnx import numpy_helper

    stored = {each.name for each in graph.initializer}.union([name for node in graph.node for name in node.output])
    names = {name for node in graph.node for name in node.input if name in small} - stored
    graph.initializer.extend([numpy_helper.from_array(small[name], name) for name in sorted(names)])
    return bool(names)


def _small(tensors: "Mapping[str, TensorProto]") -> dict[str, Any]:
    """Return the values of the tensors that may be shapes."""
    from math import prod

    from onnx import TensorProto, numpy_helper

    values = {}
    for name, tensor in tensors.items():
        if tensor.data_location != TensorProto.EXTERNAL and prod(tensor.dims) <= _SHAPE_ELEMENTS:
            with suppress(Exception):  # whatever is wrong with it, its value is not known
                values[name] = numpy_helper.to_array(tensor)
    return values


def _run_pass(request: Request, model: bytes) -> tuple[Answer, bytes]:
    """Run a pass, whole or part by part, with the module that runs passes; it encodes the result."""
    assert request.module is not None, "the request has a module"
    executing = import_module(request.module)
    if request.job == "pass_stages":
        return _DONE, executing.staged(request.declaration, model)
    made, remarks = executing.executed(request.declaration, model)
    return Answer(outcome="done", remarks=tuple([one_line(each) for each in remarks])), made


def one_line(text: str) -> str:
    """Turn a message of native code into one line that is safe to print."""
    return visible(" ".join(text[: MESSAGE_LENGTH * 4].split()), MESSAGE_LENGTH)


def _inference_findings(error: Exception) -> Answer:
    head, *each = _INFERENCE_ERROR.split(str(error))
    return _findings("check-shapes", each or [head])


def _findings(code: str, messages: list[str]) -> Answer:
    findings = [Finding(severity="error", code=code, message=one_line(text)) for text in messages[:MAX_FINDINGS]]
    return Answer(outcome="done", findings=tuple(findings))
