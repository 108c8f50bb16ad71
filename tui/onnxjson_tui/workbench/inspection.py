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
from onnxjson_tui.screens.comparison import ANOTHER, ComparisonScreen, comparison_unsaved, comparison_with
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


async def _tensor(bench: Workbench, arguments: Arguments) -> None:
    here = require_here(bench)
    found = tensors_of(bench, here)
    if not found:
        bench.say("the node has no inputs and no outputs")
        return
    constants = [each for each in found if each[1].tensor is not None]
    chosen: str | None = "t0"
    if len(constants) != 1 or arguments.number is not None:
        most = max([cells(label) for label, _, _ in found])
        choices = [
            Choice(f"t{place}", f"{padded(label, most)}  {visible(ref.name, 300)}", detail)
            for place, (label, ref, detail) in enumerate(found)
        ]
        chosen = await bench.choose("Which tensor?", choices)
    else:
        found = constants
    if chosen is not None:
        bench.drawer.find(TensorPage).show_tensor(found[int(chosen[1:])][1])


def tensors_of(bench: Workbench, here: NodeRef) -> list[tuple[str, TensorRef, str]]:
    """Return the tensors in attributes, inputs and outputs of a node, constants first, with place and type."""
    index = bench.session.index
    found: list[tuple[str, TensorRef, str]] = []
    for segment, attribute in zip(attribute_segments(here.node.attribute), here.node.attribute, strict=True):
        address = f"{here.address}/attribute/{escape(segment)}"
        held: list[tuple[str, Tensor | SparseTensor]] = [
            (f"{address}/{field}", value)
            for field, value in (("t", attribute.t), ("sparse_tensor", attribute.sparse_tensor))
            if value is not None
        ]
        held += [(f"{address}/tensors/{place}", each) for place, each in enumerate(attribute.tensors)]
        for where, each in held:
            named = each.values if isinstance(each, SparseTensor) else each
            kind = (tensor_type_text(named) if named is not None else None) or ""
            ref = TensorRef((named.name if named is not None else None) or "", where, each, None)
            found.append((f"attribute {visible(attribute.name or '?', 60)}", ref, visible(kind, 100)))
    for what, names in (("in", here.node.input), ("out", here.node.output)):
        for slot, name in enumerate(names):
            ref_found = _value(bench, index, here, what, slot, name) if name else None
            if ref_found is not None:
                kind = value_type(here.scope, name) or ""
                found.append((f"{what}[{slot}]", ref_found, visible(kind, 100)))
    return sorted(found, key=lambda each: each[1].tensor is None)


def _value(bench: Workbench, index: Index, here: NodeRef, what: str, slot: int, name: str) -> TensorRef | None:
    defining_scope = index.defining_scope(here.scope, name)
    if defining_scope is not None and (position := defining_scope.initializers.get(name)) is not None:
        return TensorRef(
            name, f"{defining_scope.address}/initializer/{position}", defining_scope.initializer(name), defining_scope
        )
    field = "input" if what == "in" else "output"
    try:
        return select_tensor(bench.session.model, index, f"@{here.address}/{field}/{slot}")
    except OnnxJsonError:
        return None  # An undefined name is not a tensor.


def _on_page(method: str, otherwise: str = "") -> Run[Workbench]:
    """Return the action that calls a method of the open page, if the page has such a method."""

    def run(bench: Workbench, arguments: Arguments) -> Coroutine[Any, Any, None] | None:
        found: Callable[[], Coroutine[Any, Any, None] | None] | None = getattr(bench.drawer.page, method, None)
        if found is not None:
            return found()
        if otherwise:
            bench.say(otherwise)
        return None

    return run


def scroll(bench: Workbench, arguments: Arguments, *, step: int) -> None:
    """Move the cursor of a tensor to the right, or to the left for a negative step."""
    if bench.drawer.page is not None:
        bench.drawer.page.sideways(step * (arguments.number or 1))


async def edit_tensor(bench: Workbench, arguments: Arguments) -> None:
    """Ask for the value of the element under the cursor of the tensor page, or of as many of its row as the count."""
    page = bench.drawer.page
    if not isinstance(page, TensorPage):
        bench.say("there is no constant to edit here; t on a node shows one")
        return
    edit, text, kind = page.place(arguments.number or 1)

    def mistake(typed: str) -> str:
        try:
            value = json_or_text(typed.strip() or text)
            from_json(value, kind if isinstance(value, list) else kind._replace(dims=()))
        except (ValueMistakeError, EncodeError) as error:
            return str(error)
        return ""

    answer = await ask(bench, f"[{edit.at or ''}] = ", text=text, mistake=mistake)
    if answer and answer.strip() not in ("", text):
        await make(bench, replace(edit, value=json_or_text(answer.strip())))


def check(bench: Workbench, arguments: Arguments) -> None:
    """Run the checker and the shape inference of onnx."""
    bench.drawer.open(ProblemsPage.name)
    bench.drawer.find(ProblemsPage).run_onnx_checks()


def _show_documentation(bench: Workbench, arguments: Arguments) -> None:
    here, model, width = require_here(bench), bench.session.model, text_width(bench)
    title = operator_name(here.node.domain, here.node.op_type, here.node.overload)
    # In a thread, since onnx is imported for the first answer.
    bench.jobs.start(
        "documentation",
        "looking up the operator",
        lambda: operator_lines(model, here, width),
        lambda lines: bench.app.push_screen(TextScreen(title, lines)),
        holds_keys=True,
    )


async def compare(bench: Workbench, arguments: Arguments) -> None:
    """Show the unsaved changes; without any, or if the user wants it, compare with a file or a revision."""
    other: str | None = arguments.text.strip()
    if not other and bench.session.is_changed:
        address = await bench.app.push_screen_wait(comparison_unsaved(bench))
        if address != ANOTHER:
            if address:
                bench.go(address)
            return
    if not other:
        choices = [Choice("file", "another file, or REV:path ...", "asks which")]
        committed = None if bench.session.opened.path is None else last_commit(bench.session.opened.path)
        if committed is not None:
            choices.append(Choice(committed, visible(committed, 200), "the last commit"))
        other = await bench.choose("Compare with", choices)
    if other == "file":
        other = await bench.ask("compare with ", complete=complete_path)
    if other and other.strip():
        await _show(bench, comparison_with(bench, other.strip()))


def last_commit(path: Path) -> str | None:
    """Return ``HEAD:path`` of a file in the repository of the current folder; None outside of it."""
    real = path.resolve()
    for folder in real.parents:
        if (folder / ".git").exists():
            is_here = Path.cwd().resolve().is_relative_to(folder)
            return f"HEAD:{real.relative_to(folder).as_posix()}" if is_here else None
    return None


async def _show(bench: Workbench, screen: ComparisonScreen) -> None:
    address = await bench.app.push_screen_wait(screen)
    if address:
        bench.go(address)


async def _run_pass(bench: Workbench, arguments: Arguments) -> None:
    from onnxjson.optimizing.passes.catalogue import entries
    from onnxjson_tui.screens import passes

    spec: str | None = arguments.text.strip()
    if not spec:
        hint = "enter options   esc cancel   type to search"
        name = await bench.choose("Run a pass", passes.pass_choices(), hint=hint)
        if name == passes.MORE:
            name = await bench.choose("Run a pass", passes.pass_choices(all_parts=True), hint=hint)
        if name is None:
            return
        entry = next(each for each in entries() if each.name == name)
        spec = await ask(
            bench,
            "pass ",
            text=passes.first_spec(entry),
            is_selected=False,
            hint=lambda typed: passes.spec_hint(entry, typed),
            mistake=passes.spec_mistake,
            complete=lambda typed: passes.spec_offers(entry, typed),
        )
    if spec and spec.strip():
        await _show(bench, passes.PassRun(bench, passes.closed_spec(spec)).screen())


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
        help="With the saved model; without changes, or with a second c, with another file or a revision.",
    ),
    Action(
        "run-pass", "run a pass", ("p",), _run_pass, "See", argument="[PASS]",
        help="Shows what it changes before it is applied.",
    ),
)  # fmt: skip
