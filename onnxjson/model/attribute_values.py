"""Values that attributes of operators may have, beyond what their types say: texts, and the axes of Transpose.

The schemas of onnx state the texts in their documentation only; the table is taken from there.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from onnxjson.model import operators
from onnxjson.model.display import counted, listed, suggest, visible
from onnxjson.model.document import Attribute, Function, Graph, Node
from onnxjson.model.errors import Finding

_PADDING: Final = "NOTSET SAME_UPPER SAME_LOWER VALID"
_DIRECTION: Final = "forward reverse bidirectional"
_TRANSFORM: Final = "NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT"
_LOSS: Final = "none sum mean"
_SCATTER: Final = "none add mul max:18 min:18"
_BRANCHES: Final = "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT BRANCH_EQ BRANCH_NEQ LEAF"

_TEXTS: Final = {
    "auto_pad": dict.fromkeys(
        ("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "LpPool", "MaxPool", "QLinearConv"), _PADDING
    ),
    "direction": {**dict.fromkeys(("GRU", "LSTM", "RNN"), _DIRECTION), "BitShift": "LEFT RIGHT"},
    "reduction": {
        **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), _LOSS),
        **dict.fromkeys(("ScatterElements", "ScatterND"), _SCATTER),
    },
    "mode": {
        "DepthToSpace": "DCR CRD",
        "GridSample": "bilinear nearest bicubic linear cubic",
        "Pad": "constant reflect edge wrap:19",
        "Resize": "nearest linear cubic",
        "RoiAlign": "avg max",
        "SpaceToDepth": "DCR CRD",
        "TensorScatter": "linear circular",
        "TfIdfVectorizer": "TF IDF TFIDF",
        "Upsample": "nearest linear bilinear",
        "ai.onnx.preview.training::Momentum": "nesterov standard",
    },
    "coordinate_transformation_mode": {
        "Resize": "half_pixel half_pixel_symmetric:19 pytorch_half_pixel align_corners asymmetric "
        "tf_half_pixel_for_nn tf_crop_and_resize",
        "RoiAlign": "half_pixel output_half_pixel",
    },
    "nearest_mode": {"Resize": "round_prefer_floor round_prefer_ceil floor ceil"},
    "keep_aspect_ratio_policy": {"Resize": "stretch not_larger not_smaller"},
    "padding_mode": {"GridSample": "zeros border reflection"},
    "activation": {"CausalConvWithState": "silu swish none"},
    "approximate": {"Gelu": "none tanh"},
    "update_rule": {"LinearAttention": "linear gated delta gated_delta"},
    "round_mode": {"Cast": "up down nearest", "CastLike": "up down nearest"},
    "case_change_action": {"StringNormalizer": "LOWER UPPER NONE"},
    "pixel_format": {"ImageDecoder": "RGB BGR Grayscale"},
    "norm": {"ai.onnx.ml::Normalizer": "MAX L1 L2"},
    "aggregate_function": {"ai.onnx.ml::TreeEnsembleRegressor": "AVERAGE SUM MIN MAX"},
    "cast_to": {"ai.onnx.ml::CastMap": "TO_FLOAT TO_STRING TO_INT64"},
    "map_form": {"ai.onnx.ml::CastMap": "DENSE SPARSE"},
    "kernel_type": dict.fromkeys(
        ("ai.onnx.ml::SVMClassifier", "ai.onnx.ml::SVMRegressor"), "LINEAR POLY RBF SIGMOID"
    ),
    "nodes_modes": dict.fromkeys(
        ("ai.onnx.ml::TreeEnsembleClassifier", "ai.onnx.ml::TreeEnsembleRegressor"), _BRANCHES
    ),
    "post_transform": {
        f"ai.onnx.ml::{each}": _TRANSFORM
        for each in (
            *("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor"),
            *("TreeEnsembleClassifier", "TreeEnsembleRegressor"),
        )
    },
}  # fmt: skip
"""Attribute -> operator -> its texts, each with the version of the operator set that added it if that is later."""


WINDOWED: Final = frozenset(_TEXTS["auto_pad"])
"""Operators with a window over the axes of their input."""

_WINDOW: Final = {
    **dict.fromkeys(("kernel_shape", "strides", "dilations", "output_padding"), "one for each axis"),
    "pads": "the padding before each axis, then that after each",
}
"""Attributes with numbers for each axis of a window, and which."""


def accepted_texts(domain: str, op_type: str, attribute: str, opset: int) -> Mapping[str, int]:
    """Return the texts that an attribute of an operator may have, and the versions that added them; none if any is.

    Those that were added after the version `opset` are among them.
    """
    texts = _TEXTS.get(attribute, {}).get(operators.operator_name(domain, op_type), "")
    return {text: int(since or 1) for text, _, since in [each.partition(":") for each in texts.split()]}


def text_mistakes(node: Node, opset: int) -> Iterator[tuple[Attribute, str, str]]:
    """Iterate over the attributes of a node with a text that its operator does not accept: message and hint."""
    domain, op_type = operators.plain_domain(node.domain), node.op_type or ""
    shown = visible(op_type)
    for attribute in node.attribute:
        stored = attribute.strings if attribute.s is None else (attribute.s,)
        if not stored or attribute.ref_attr_name:
            continue
        texts = [_decoded(each) for each in stored]
        name = visible(attribute.name or "")
        if None in texts:
            hint = "in proto-JSON, write bytes such as strings in base64"
            yield attribute, f'the attribute "{name}" of {shown} is not valid UTF-8', hint
            continue
        accepted = accepted_texts(domain, op_type, attribute.name or "", opset)
        for text in texts if accepted else ():
            since = accepted.get(text or "", 0)
            if since > opset:
                message = f'the attribute "{name}" of {shown} may be "{text}" since version {since}'
                yield attribute, message, f"the model imports {opset}"
                break
            if not since:
                known = [each for each, version in accepted.items() if version <= opset]
                message = f'the attribute "{name}" of {shown} must not be "{visible(text or "", 40)}"'
                every = listed(known, len(known), word="or")
                yield attribute, message, suggest(text or "", known) or f"it may be {every}"
                break


def check_perms(nodes: Sequence[Node], address: str, rank_of: Callable[[str], int | None]) -> Iterator[Finding]:
    """Iterate over the findings about the axes of Transpose nodes of the graph at an address."""
    for position in [place for place, node in enumerate(nodes) if node.op_type == "Transpose" and not node.domain]:
        node = nodes[position]
        perm = next((each.ints for each in node.attribute if each.name == "perm" and not each.ref_attr_name), None)
        if perm is not None and (message := perm_mistake(perm, rank_of(node.input[0]) if node.input else None)):
            at = f"{address}/node/{position}/attribute/perm"
            yield Finding(severity="error", code="wrong-attribute-value", address=at, message=message)


def check_windows(nodes: Sequence[Node], address: str, rank_of: Callable[[str], int | None]) -> Iterator[Finding]:
    """Iterate over the findings about attributes with numbers for each axis of a window, in the graph at an address."""
    for position, node in enumerate(nodes):
        if node.domain or node.op_type not in WINDOWED:
            continue
        given = {each.name: each.ints for each in node.attribute if each.ints and not each.ref_attr_name}
        rank = rank_of(node.input[1]) if node.op_type.startswith("Conv") and len(node.input) > 1 else None
        axes = rank - 2 if rank is not None else len(given.get("kernel_shape", ()))
        for name, meaning in _WINDOW.items() if axes > 0 else ():
            count = 2 * axes if name == "pads" else axes
            if name in given and len(given[name]) != count:
                message = f"{name} has {counted(len(given[name]), 'number')}, but the window has {axes} axes"
                at = f"{address}/node/{position}/attribute/{name}"
                hint = f"write {counted(count, 'number')}: {meaning}"
                yield Finding(severity="error", code="wrong-attribute-value", address=at, message=message, hint=hint)


def perm_mistake(perm: Sequence[int], rank: int | None) -> str:
    """Describe what is wrong with the attribute ``perm`` of a Transpose; "" if nothing is, as far as is known."""
    if rank is not None and len(perm) != rank:
        return f"perm has {len(perm)} axes, but the input has {rank} dimensions"
    if sorted(perm) != list(range(len(perm))):
        return f"perm must have each of the axes 0 to {len(perm) - 1} once, but it is {list(perm[:16])}"
    return ""


def stated_ranks(graph: Graph | Function) -> dict[str, int]:
    """Return the numbers of dimensions of values as far as a graph states them."""
    values = (*graph.value_info, *((*graph.input, *graph.output) if isinstance(graph, Graph) else ()))
    ranks = {each.name or "": len(each.shape) for each in values if each.shape is not None}
    constants = graph.initializer if isinstance(graph, Graph) else ()
    return ranks | {each.name or "": len(each.dims) for each in constants}


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None
