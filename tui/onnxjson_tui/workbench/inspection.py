"""Look closer: tensors and problems in the drawer, documentation, the drawing around a node, comparisons, passes."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from onnxjson.editing.spelling import json_or_text
from onnxjson.editing.values import ValueMistakeError
from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Function, Model, SparseTensor, Tensor
from onnxjson.model.errors import EncodeError, OnnxJsonError
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.operators import function_key, operator_key, operator_name, operator_signature
from onnxjson.patterns.names import TensorRef
from onnxjson.patterns.selectors import select_tensor
from onnxjson.rendering.node import documentation_fields, documentation_lines, opset_of
from onnxjson.rendering.tables import cells, padded, wrapped
from onnxjson.rendering.values import tensor_type_text, value_type
from onnxjson.storage.constant_reading import from_json
from onnxjson_tui.pages.problems import ProblemsPage
from onnxjson_tui.pages.tensor import TensorPage
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.rows.side_texts import wrap
from onnxjson_tui.screens.comparison import ANOTHER, ComparisonScreen
from onnxjson_tui.screens.comparisons import comparison_unsaved, comparison_with
from onnxjson_tui.session.opening import complete_path
from onnxjson_tui.shell.dialogs import TextScreen
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments, Run
from onnxjson_tui.workbench.editing import ask, make, require_here
from onnxjson_tui.workbench.helping import text_width

_NO_TENSOR: Final = "this needs a tensor; t on a node shows one"


def operator_lines(model: Model, ref: NodeRef, width: int) -> list[str]:
    """Return the documentation of the operator of a node, in visible lines of at most `width` columns."""
    key = operator_key(ref.node)
    function = next((each for each in model.functions if function_key(each) == key), None)
    if function is not None:
        return _of_function(function, width)
    opset = opset_of(model, ref)
    found = operator_signature(ref.node.domain, ref.node.op_type, opset)
    if found is not None:
        lines = documentation_lines(documentation_fields(found), width)
        return [piece for line in lines for piece in wrap(line, width)]
    name = visible(operator_name(*key))
    imported = f"opset {opset} of its domain is imported" if opset is not None else "its domain is not imported"
    return wrapped(
        f"{name} is neither an operator of the installed onnx nor a function of the model; {imported}.", width, indent=0
    )


def _of_function(function: Function, width: int) -> list[str]:
    name = visible(operator_name(function.domain, function.name, function.overload), 200)
    inputs = ", ".join([visible(each, 100) for each in function.input])
    outputs = ", ".join([visible(each, 100) for each in function.output])
    attributes = [visible(each, 100) for each in function.attribute]
    attributes += [f"{visible(each.name or '?', 100)} (has a default)" for each in function.attribute_proto]
    lines = wrapped(f"{name}, a function of the model", width, indent=0)
    lines += wrapped(f"{outputs or '()'} = {name}({inputs})", width, indent=2)
    if attributes:
        lines += ["", "  attributes", *[piece for each in attributes for piece in wrapped(each, width, indent=4)]]
    opsets = ", ".join([f"{visible(each.domain or 'ai.onnx', 60)} {each.version}" for each in function.opset_import])
    lines += [
        "",
        *wrapped(f"{counted(len(function.node), 'node')}; opsets {opsets or 'of the model'}; gs enters it", width),
    ]
    if function.doc_string:
        lines += ["", *wrapped(function.doc_string, width, indent=0)]
    return lines


async def _tensor(workbench: Workbench, arguments: Arguments) -> None:
    node_ref = require_here(workbench)
    tensors = tensors_of(workbench, node_ref)
    if not tensors:
        workbench.say("the node has no inputs and no outputs")
        return
    constants = [each for each in tensors if each[1].tensor is not None]
    chosen: str | None = "t0"
    if arguments.number is None:
        # The others have values only when the model runs.
        tensors = constants or tensors[-1:]
    if len(tensors) > 1:
        most = max([cells(label) for label, _, _ in tensors])
        choices = [
            Choice(f"t{place}", f"{padded(label, most)}  {visible(ref.name, 300)}", detail)
            for place, (label, ref, detail) in enumerate(tensors)
        ]
        chosen = await workbench.choose("Which tensor?", choices)
    if chosen is not None:
        workbench.drawer.find(TensorPage).show_tensor(tensors[int(chosen[1:])][1])


def tensors_of(workbench: Workbench, node_ref: NodeRef) -> list[tuple[str, TensorRef, str]]:
    """Return the tensors in attributes, inputs and outputs of a node, constants first, with place and type."""
    index = workbench.session.index
    tensors: list[tuple[str, TensorRef, str]] = []
    for segment, attribute in zip(attribute_segments(node_ref.node.attribute), node_ref.node.attribute, strict=True):
        address = f"{node_ref.address}/attribute/{escape(segment)}"
        held: list[tuple[str, Tensor | SparseTensor]] = [
            (f"{address}/{field}", value)
            for field, value in (("t", attribute.t), ("sparse_tensor", attribute.sparse_tensor))
            if value is not None
        ]
        held += [(f"{address}/tensors/{place}", tensor) for place, tensor in enumerate(attribute.tensors)]
        for where, tensor in held:
            named = tensor.values if isinstance(tensor, SparseTensor) else tensor
            kind = (tensor_type_text(named) if named is not None else None) or ""
            ref = TensorRef((named.name if named is not None else None) or "", where, tensor, None)
            tensors.append((f"attribute {visible(attribute.name or '?', 60)}", ref, visible(kind, 100)))
    stored = [ref.tensor for _, ref, _ in tensors]
    for what, names in (("in", node_ref.node.input), ("out", node_ref.node.output)):
        for slot, name in enumerate(names):
            ref_found = _value(workbench, index, node_ref, what, slot, name) if name else None
            if ref_found is not None:
                kind = value_type(node_ref.scope, name) or ""
                if any(each is ref_found.tensor for each in stored):
                    continue  # the output of a Constant
                tensors.append((f"{what}[{slot}]", ref_found, visible(kind, 100)))
    return sorted(tensors, key=lambda each: each[1].tensor is None)


def _value(workbench: Workbench, index: Index, node_ref: NodeRef, what: str, slot: int, name: str) -> TensorRef | None:
    defining_scope = index.defining_scope(node_ref.scope, name)
    if defining_scope is not None and (position := defining_scope.initializers.get(name)) is not None:
        return TensorRef(
            name, f"{defining_scope.address}/initializer/{position}", defining_scope.initializer(name), defining_scope
        )
    field = "input" if what == "in" else "output"
    try:
        return select_tensor(workbench.session.model, index, f"@{node_ref.address}/{field}/{slot}")
    except OnnxJsonError:
        return None  # An undefined name is not a tensor.


def _on_page(method: str, otherwise: str = "") -> Run[Workbench]:
    """Return the action that calls a method of the open page, if the page has such a method."""

    def run(workbench: Workbench, arguments: Arguments) -> Coroutine[Any, Any, None] | None:
        found: Callable[[], Coroutine[Any, Any, None] | None] | None = getattr(workbench.drawer.page, method, None)
        if found is not None:
            return found()
        if otherwise:
            workbench.say(otherwise)
        return None

    return run


def scroll(workbench: Workbench, arguments: Arguments, *, step: int) -> None:
    """Move the cursor of a tensor to the right, or to the left for a negative step."""
    if workbench.drawer.page is not None:
        workbench.drawer.page.sideways(step * (arguments.number or 1))


async def edit_tensor(workbench: Workbench, arguments: Arguments) -> None:
    """Ask for the value of the element under the cursor of the tensor page, or of as many of its row as the count."""
    page = workbench.drawer.page
    if not isinstance(page, TensorPage):
        workbench.say("there is no constant to edit here; t on a node shows one")
        return
    edit, text, kind = page.place(arguments.number or 1)

    def mistake(typed: str) -> str:
        try:
            value = json_or_text(typed.strip() or text)
            from_json(value, kind if isinstance(value, list) else kind._replace(dims=()))
        except (ValueMistakeError, EncodeError) as error:
            return str(error)
        return ""

    answer = await ask(workbench, f"[{edit.at or ''}] = ", text=text, mistake=mistake)
    if answer and answer.strip() not in ("", text):
        await make(workbench, replace(edit, value=json_or_text(answer.strip())))


def check(workbench: Workbench, arguments: Arguments) -> None:
    """Run the checker and the shape inference of onnx."""
    workbench.drawer.open(ProblemsPage.name)
    if workbench.pane == "inspector" and workbench.has_class("-short"):
        workbench.focus_pane("drawer")  # The drawer takes the place of the inspector.
    workbench.drawer.find(ProblemsPage).run_onnx_checks()


def _show_documentation(workbench: Workbench, arguments: Arguments) -> None:
    node_ref, model, width = require_here(workbench), workbench.session.model, text_width(workbench)
    title = operator_name(node_ref.node.domain, node_ref.node.op_type, node_ref.node.overload)
    # In a thread, since onnx is imported for the first answer.
    workbench.jobs.start(
        "documentation",
        "looking up the operator",
        lambda: operator_lines(model, node_ref, width),
        lambda lines: workbench.app.push_screen(TextScreen(title, lines)),
        holds_keys=True,
    )


async def compare(workbench: Workbench, arguments: Arguments) -> None:
    """Show the unsaved changes; without any, or if the user wants it, compare with a file or a revision."""
    other: str | None = arguments.text.strip()
    if not other and workbench.session.is_changed:
        address = await workbench.app.push_screen_wait(comparison_unsaved(workbench))
        if address != ANOTHER:
            if address:
                workbench.go(address)
            return
    if not other:
        choices = [Choice("file", "another file, or REV:path ...", "asks which")]
        committed = None if workbench.session.opened.path is None else last_commit(workbench.session.opened.path)
        if committed is not None:
            choices.append(Choice(committed, visible(committed, 200), "the last commit"))
        other = await workbench.choose("Compare with", choices)
    if other == "file":
        other = await workbench.ask("compare with ", complete=complete_path)
    if other and other.strip():
        await _show(workbench, comparison_with(workbench, other.strip()))


def last_commit(path: Path) -> str | None:
    """Return ``HEAD:path`` of a file in the repository of the current folder; None outside of it."""
    real = path.resolve()
    for folder in real.parents:
        if (folder / ".git").exists():
            is_here = Path.cwd().resolve().is_relative_to(folder)
            return f"HEAD:{real.relative_to(folder).as_posix()}" if is_here else None
    return None


async def _show(workbench: Workbench, screen: ComparisonScreen) -> None:
    address = await workbench.app.push_screen_wait(screen)
    if address:
        workbench.go(address)


async def _run_pass(workbench: Workbench, arguments: Arguments) -> None:
    from onnxjson.optimizing.passes.catalogue import entries
    from onnxjson_tui.screens import passes

    spec: str | None = arguments.text.strip()
    if not spec:
        hint = "enter options   esc cancel   type to search"
        name = await workbench.choose("Run a pass", passes.pass_choices(), hint=hint)
        if name == passes.MORE:
            name = await workbench.choose("Run a pass", passes.pass_choices(all_parts=True), hint=hint)
        if name is None:
            return
        entry = next(each for each in entries() if each.name == name)
        spec = await ask(
            workbench,
            "pass ",
            text=passes.first_spec(entry),
            is_selected=False,
            hint=lambda typed: passes.spec_hint(entry, typed),
            mistake=passes.spec_mistake,
            complete=lambda typed: passes.spec_offers(entry, typed),
        )
    if spec and spec.strip():
        await _show(workbench, passes.PassRun(workbench, passes.closed_spec(spec)).screen())


ACTIONS: Final[tuple[Action[Workbench], ...]] = (
    Action(
        "tensor", "values of a tensor", ("t",), _tensor, "See", footer="tensor",
        help="Of the node; S adds statistics, s a slice, e edits an element and 4e four of the row.",
    ),
    Action("check", "check with onnx", ("C",), check, "See", help="With its checker and its shape inference."),
    Action("documentation", "about the operator", ("g D",), _show_documentation, "Graph"),
    Action(
        "more", "statistics, whole message", ("S", "space"), _on_page("more"), "See", "drawer",
        help="Statistics and a histogram of the tensor; the problem of the row unabridged.",
    ),
    Action(
        "slice", "slice, such as [0, :, 3]", ("s",), _on_page("ask_slice", _NO_TENSOR), "See", "drawer"
    ),
    Action(
        "compare", "compare", ("c",), compare, "See", argument="[PATH|REV:PATH]", footer="compare",
        help="With the saved model. If nothing changed, or if you press c again, with another file or a revision.",
    ),
    Action(
        "run-pass", "run a pass", ("p",), _run_pass, "See", footer="pass", argument="[PASS]",
        help="Shows what it changes before it is applied.",
    ),
)  # fmt: skip
