"""Every command, pass, edit and report on planted models; each runner has a row in the table."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from onnx import ModelProto

import onnxjson
from onnxjson import edits
from onnxjson.codecs import serde
from onnxjson.editing.declaration import Edit
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.optimizing.passes.catalogue import NAMES, Step
from onnxjson.optimizing.passes.declaration import Pass
from onnxjson.optimizing.passes.transformers import ExtractAdapters
from onnxjson.patterns.rule_files import SHIPPED
from tests.hostile.canary.payloads import PAYLOADS
from tests.hostile.canary.positions import Part, add_blocks, complete_model, external_model, valid_model
from tests.hostile.canary.tripwires import acting_markdown, acting_markup
from tests.hostile.canary.watching import Watch
from tests.optimizing.sweep import all_passes
from tests.tui import every_edit

REPORTS: Final = ("text", "unified", "json", "markdown", "html", "patch")

SELECTORS: Final = ("op:Relu", "op:If", "@/graph/node/0", "@/functions/0", "*canary*", "attr:*")


def write(folder: Path, name: str, model: ModelProto) -> Path:
    """Write a model to a file; return its path."""
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def show(watch: Watch) -> None:
    """show, check, convert, fmt and tensor, on a model of every field and on one that can be run."""
    complete, _ = complete_model(watch.planter)
    for model in (complete, valid_model(watch.planter)):
        path = write(watch.folder, "m.onnx", model)
        names = [model.graph.node[0].name, model.graph.initializer[0].name, model.graph.node[0].output[0]]
        for more in ((), ("--json",), *[("--", selector) for selector in (*SELECTORS, *names)]):
            watch.command("show", "show", path, *more)
        watch.command("show", "show", path, "op:Relu", "--doc")
        for more in ((), ("--json",), ("--deep",), ("--deep", "--strict", "--json")):
            watch.command("check --deep" if "--deep" in more else "check", "check", path, *more)
        text, proto_json = watch.folder / "m.onnx.json", watch.folder / "m.json"
        watch.command("convert", "convert", path, "-o", text)
        watch.command("convert", "convert", path, "-o", "-", "--to", "json", "--weights", "digest")
        watch.command("convert", "convert", path, "-o", proto_json, "--to", "protojson", "--lossy")
        watch.command("convert", "convert", text, "-o", watch.folder / "again.onnx")
        watch.command("convert", "convert", proto_json, "-o", watch.folder / "again.onnx")
        watch.command("convert", "convert", path, "-o", watch.folder / "out.onnx", "--externalize", "--threshold", "1")
        watch.command("convert", "convert", path, "-o", watch.folder / "b.onnx.json", "--weights", "blobs")
        watch.command("fmt", "fmt", text)
        for name in names:
            watch.command("tensor get", "tensor", "get", path, "--", name)
        watch.command("tensor get", "tensor", "get", path, "*", "-o", watch.folder / "all.npz")


_LOCATED: Final = tuple([payload for payload in PAYLOADS if payload.family == "location"])


def external(watch: Watch) -> None:
    """Commands that read external data: first locations outside the folder, then other payloads as locations."""
    for _ in _LOCATED:
        with watch.planter.only(_LOCATED):
            path = write(watch.folder, "x.onnx", external_model(watch.planter))
        watch.command("external data", "convert", path, "-o", watch.folder / "in.onnx", "--internalize")
        watch.command("external data", "tensor", "get", path, "w")
        watch.command("external data", "check", "--deep", path)
        watch.command("external data", "run", path)
    for _ in range(2):
        path = write(watch.folder, "x.onnx", external_model(watch.planter))
        lines: tuple[tuple[str, ...], ...] = (
            ("show",), ("show", "w"), ("check",), ("optimize", "-p", "onnxsim", "--dry-run"),
        )  # fmt: skip
        for command, *options in lines:
            watch.command("external data", command, path, *options)
        for more in ((), ("--trust-links",)):
            watch.command("external data", "convert", path, "-o", watch.folder / "in.onnx", "--internalize", *more)
        watch.command("external data", "diff", path, path)


def reports(watch: Watch) -> None:
    """diff in every format, a patch applied, a merge and its conflicts."""
    planter, folder = watch.planter, watch.folder
    pairs = [(valid_model(planter), valid_model(planter)), (complete_model(planter)[0], complete_model(planter)[0])]
    for first, second in pairs:
        before, after = write(folder, "before.onnx", first), write(folder, "after.onnx", second)
        renamed = write(folder, "renamed.onnx", with_other_texts(first, watch))
        for target in (after, renamed):
            for form in REPORTS:
                page = form if form in ("html", "markdown") else ""
                watch.command(f"diff {form}", "diff", before, target, "--format", form, page=page)
            watch.command("diff text", "diff", before, target, "-v", "--matches")
            watch.command("diff --test-rewrites", "diff", before, target, "--test-rewrites")
            change = folder / "change.json"
            watch.command("diff patch", "diff", before, target, "--format", "patch", "-o", change)
            watch.command("apply", "apply", change, before, "-o", folder / "applied.onnx")
        merged = folder / "merged.onnx"
        watch.command("merge", "merge", before, renamed, after, "-o", merged)
        watch.command("merge", "merge", before, renamed, before, "-o", merged)
        watch.command("merge", "conflicts", merged)


def judgements(watch: Watch) -> None:
    """Cost, rules and patterns: what they say in every form, and what rules replace."""
    planter, folder = watch.planter, watch.folder
    for model in (valid_model(planter), complete_model(planter)[0]):
        path = write(folder, "judged.onnx", model)
        policy = folder / "policy.json"
        policy.write_text('{"format": "onnxjson-policy/1", "budgets": {"macs": "<= 1", "opset": "<= 1"}}')
        watch.command("show --cost", "show", path, "--cost")
        for form in ("text", "json", "sarif", "github", "junit"):
            watch.command(f"check {form}", "check", path, "--policy", policy, "--format", form)
        watch.command("find", "find", path, "*(...)", "--overlapping")
        watch.command("find --why", "find", path, "Softmax(MatMul($x, ?w))", "--why", "--json")
        watch.command("find --rules", "find", path, "--rules", SHIPPED)


def with_other_texts(model: ModelProto, watch: Watch) -> ModelProto:
    """The model with other docs, metadata and names of nodes, so that a diff pairs its nodes and reports these."""
    changed = ModelProto()
    changed.CopyFrom(model)
    changed.doc_string = watch.planter.text("changed model doc_string")
    for node in changed.graph.node:
        node.name = watch.planter.name("changed node name")
        node.doc_string = watch.planter.text("changed node doc_string")
        for entry in node.metadata_props:
            entry.value = watch.planter.text("changed metadata value")
        for attribute in node.attribute:
            if attribute.s:
                attribute.s = watch.planter.data("changed attribute")
    return changed


def analyses(watch: Watch) -> None:
    """Commands that evaluate a model: run, verify and bench."""
    watched = valid_model(watch.planter, 2)
    path = write(watch.folder, "m.onnx", watched)
    for more in ((), ("--profile", "1"), ("--engine", "reference"), ("--json", "--level", "off")):
        watch.command("run", "run", path, *more)
    for others in ((), ("--locate", "--samples", "1"), ("--engine", "reference", "--samples", "1")):
        watch.command("verify", "verify", path, path, *others)
    outs = [watch.folder / f"bench.{ending}" for ending in ("csv", "json", "md", "svg")]
    more_outs = [word for out in outs for word in ("-o", os.fspath(out))]
    watch.command("bench", "bench", path, "-n", "1", "--warm-up", "0", "--samples", "1", *more_outs)
    marks = [*acting_markdown(outs[2].read_text()), *acting_markup(outs[3].read_text())]
    watch.look("bench", ["bench"], marks=marks)


def every_edit_kind(watch: Watch) -> None:
    """Each edit on a model with planted neighbours, and edits whose parameters are payloads."""
    planter = watch.planter
    proto = onnxjson.to_proto(every_edit.model())
    add_blocks(proto, planter, 1, ("branches", "call"))
    model = serde.parse(proto.SerializeToString()).model
    for edit in every_edit.edits_for(watch.folder):
        _edited(watch, f"edit {type(edit).__name__}", model, edit)
    text, name = planter.text, planter.name
    planted: tuple[Callable[[], Edit], ...] = (
        lambda: edits.AddNode(
            op_type="Relu", input=("a",), output=(name("AddNode output"),), name=name("AddNode name")
        ),
        lambda: edits.AddNode(
            op_type=name("AddNode op_type"), domain=name("AddNode domain"), input=("a",), output=("new",)
        ),
        lambda: edits.SetAttribute(node="op:LeakyRelu", attribute=name("SetAttribute name"), value=text("its value")),
        lambda: edits.SetMetadata(key=name("SetMetadata key"), value=text("SetMetadata value")),
        lambda: edits.SetDoc(text=text("SetDoc text"), node="sum"),
        lambda: edits.Rename(kind="node", from_="sum", to=name("Rename node")),
        lambda: edits.Rename(kind="tensor", from_="a", to=name("Rename tensor")),
        lambda: edits.Rename(kind="dim", from_="N", to=name("Rename dim")),
        lambda: edits.Rename(kind="tensor", from_=name("Rename from"), to="other"),
        lambda: edits.SetName(node="output:d", name=name("SetName name")),
        lambda: edits.NameNodes(prefix=name("NameNodes prefix")),
        lambda: edits.Prefix(prefix=name("Prefix prefix"), kinds=("node", "tensor", "input", "output", "dim")),
        lambda: edits.AddInput(tensor=name("AddInput tensor"), type="float32[N,4]"),
        lambda: edits.SetShape(tensor="x", shape=(name("SetShape dim"), 4), propagate=False),
        lambda: edits.SetBatchSize(size=name("SetBatchSize size")),
        lambda: edits.DeleteNode(node=name("selector")),
        lambda: edits.SetTensor(tensor="w", file=text("SetTensor file")),
        lambda: edits.Combine(with_=text("Combine file"), join=("y=p",)),
    )  # fmt: skip
    for make in planted:
        try:
            edit = make()
        except (OnnxJsonError, ValueError):
            watch.look("edit with payloads", refused=True)
            continue
        _edited(watch, "edit with payloads", model, edit)


def _edited(watch: Watch, runner: str, model: Model, edit: Edit) -> None:
    outputs = []
    try:
        made = edits.run(model, edit, folder=watch.folder).model
        outputs = [onnxjson.dumps(made).encode("utf-8", "surrogateescape")]
        refused = False
    except OnnxJsonError as error:
        outputs, refused = [str(error).encode("utf-8", "surrogateescape")], True
    watch.look(runner, [type(edit).__name__], outputs, refused=refused)


def default_passes() -> list[Step]:
    """Return a step for every pass of the catalogue, with options where it would otherwise do nothing."""
    chosen: dict[str, Pass] = {"extract-adapters": ExtractAdapters(pattern="canary")}
    return [Step(chosen[name]) if name in chosen else parse_step(name) for name in NAMES]


def passes(watch: Watch, parts: tuple[Part, ...] = ("branches", "call"), *, each_part: bool = False) -> None:
    """Run every pass alone; with `each_part`, also every part of passes that have parts."""
    model = valid_model(watch.planter, 4, parts)
    parsed = serde.parse(model.SerializeToString()).model
    steps = [parse_step(name) for name in all_passes()] if each_part else default_passes()
    with Pipeline(keep_going=True, seconds=60) as pipeline:
        for step in steps:
            (made,) = pipeline.run(parsed, [step])
            said = f"{made.failure} {made.printed} {made.notes}".encode("utf-8", "surrogateescape")
            runner = f"pass {made.step.subject.__struct_config__.tag}"
            watch.look(runner, ["+".join(parts)], [made.after.data, said], refused=made.failure is not None)


def traces(watch: Watch) -> None:
    """A trace of passes and its reports."""
    path = write(watch.folder, "m.onnx", valid_model(watch.planter, 2, ("branches", "call")))
    steps, out = watch.folder / "steps", watch.folder / "o.onnx"
    words = ["-p", "onnxruntime", "-p", "onnxoptimizer", "-p", "name-nodes", "--trace", os.fspath(steps)]
    watch.command("optimize --trace", "optimize", path, *words, "-o", out)
    for form in ("text", "json", "markdown", "html"):
        page = form if form in ("html", "markdown") else ""
        watch.command(f"trace {form}", "trace", steps, "--format", form, page=page)
    watch.command("trace text", "trace", steps, "-v", "--node", "op:*")
