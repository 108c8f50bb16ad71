import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import onnxjson
from onnxjson.model.errors import LimitError, MissingInputError, WorkerError
from onnxjson.running import server_process, worker_protocol
from onnxjson.running import worker as worker_module
from onnxjson.running.worker import Worker
from onnxjson.running.worker_protocol import Limits, Request

PACKAGE = Path(worker_module.__file__).parents[2]

PASSES = "onnxjson.optimizing.passes.executing"


def model(*nodes: onnx.NodeProto, **options: object) -> bytes:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None])
    graph = helper.make_graph(list(nodes), "g", [x], [y])
    return helper.make_model(graph, **options).SerializeToString()


GOOD = model(helper.make_node("Relu", ["x"], ["y"]))

UNDEFINED_INPUT = model(helper.make_node("Relu", ["z"], ["y"]))

WRONG_SHAPES = model(
    helper.make_node("MatMul", ["x", "x"], ["y"], name="product"), helper.make_node("Transpose", ["x"], ["t"], perm=[5])
)

ML = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]

# Type inference of some operators reads the type of an input that has none.
CRASHER = model(
    helper.make_node("LabelEncoder", ["z"], ["y"], domain="ai.onnx.ml", keys_int64s=[1], values_floats=[1.0]),
    opset_imports=ML,
)

HUNGRY = model(helper.make_node("Split", ["x"], ["y"], num_outputs=2 * 10**9))


def endless() -> bytes:
    """Functions that call the next one twice each: many seconds in 5 KB, just below the limit of expanded nodes."""
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)]
    functions = [
        helper.make_function(
            "f",
            f"F{depth}",
            ["x"],
            ["y"],
            [
                helper.make_node(f"F{depth + 1}", ["x"], ["t"], domain="f"),
                helper.make_node(f"F{depth + 1}", ["t"], ["y"], domain="f"),
            ],
            opsets,
        )
        for depth in range(17)
    ]
    last = helper.make_function("f", "F17", ["x"], ["y"], [helper.make_node("Max", ["x"] * 1000, ["y"])], opsets)
    return model(helper.make_node("F0", ["x"], ["y"], domain="f"), functions=[*functions, last], opset_imports=opsets)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Limits(wall_seconds=2.0)) as started:
        yield started


def test_a_good_model_has_no_findings(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(GOOD)
    for full in (False, True):
        assert worker.check(GOOD, full) == ()
        assert worker.check(tmp_path / "model.onnx", full) == ()


def test_a_text_is_checked_there_too(worker: Worker) -> None:
    text = onnxjson.dumps(onnxjson.Model(ir_version=10, graph=onnxjson.Graph(name="g")))
    assert worker.check_text(text.encode())[0]
    has_model, findings = worker.check_text(text.encode()[:-9])
    assert not has_model
    assert findings


def test_what_the_checker_says_is_a_finding_on_one_line(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(UNDEFINED_INPUT)
    for subject in (UNDEFINED_INPUT, tmp_path / "model.onnx"):
        (finding,) = worker.check(subject)
        assert (finding.severity, finding.code) == ("error", "check-model")
        assert "input 'z' of node" in finding.message
        assert "\n" not in finding.message


def test_what_shape_inference_says_is_a_finding(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(WRONG_SHAPES)
    assert worker.check(WRONG_SHAPES) == ()
    for subject in (WRONG_SHAPES, tmp_path / "model.onnx"):
        findings = worker.check(subject, full=True)
        assert {finding.code for finding in findings} == {"check-shapes"}
        assert "MatMul" in findings[0].message


def test_names_in_findings_are_made_visible(worker: Worker) -> None:
    (finding,) = worker.check(model(helper.make_node("Relu", ["\x1b]0;z\x07"], ["y"])))
    assert "\\u{1b}]0;z\\u{7}" in finding.message
    assert finding.message.isprintable()


@pytest.mark.parametrize("data", [b"\xff\xff\xff", b"\x08"])
def test_what_is_no_model_is_a_finding(worker: Worker, data: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(data)
    for subject in (data, tmp_path / "model.onnx"):
        findings = worker.check(subject, full=True)
        assert len(findings) == 1
        assert findings[0].severity == "error"


def test_external_data_is_looked_for_beside_the_model(worker: Worker, tmp_path: Path) -> None:
    loaded = onnx.load_from_string(GOOD)
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [2], b"\0" * 8, raw=True)
    loaded.graph.initializer.append(tensor)
    onnx.external_data_helper.set_external_data(loaded.graph.initializer[0], "w.bin", 0, 8)
    loaded.graph.initializer[0].ClearField("raw_data")
    loaded.graph.initializer[0].data_location = TensorProto.EXTERNAL
    (tmp_path / "model.onnx").write_bytes(loaded.SerializeToString())
    assert "w.bin" in worker.check(tmp_path / "model.onnx")[0].message
    (tmp_path / "w.bin").write_bytes(b"\0" * 8)
    assert worker.check(tmp_path / "model.onnx") == ()


def test_shapes_are_inferred(worker: Worker) -> None:
    two = model(helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["y"]))
    inferred = onnx.load_from_string(worker.infer_types(two)[0])
    (info,) = inferred.graph.value_info
    assert [dim.dim_value for dim in info.type.tensor_type.shape.dim] == [2, 3]


def test_a_model_that_inference_does_not_take_is_an_error_of_the_worker(worker: Worker) -> None:
    with pytest.raises(WorkerError, match="rejects"):
        worker.infer_types(b"\xff\xff")


def test_a_crash_is_an_error_and_the_next_job_runs(worker: Worker) -> None:
    for _ in range(3):
        with pytest.raises(WorkerError, match="crashed on this model: signal SIGSEGV") as caught:
            worker.infer_types(CRASHER)
        assert caught.value.exit_code == 76
        assert worker.check(GOOD, full=True) == ()


def test_a_crash_after_findings_keeps_them(worker: Worker) -> None:
    findings = worker.check(CRASHER, full=True)
    assert [(finding.severity, finding.code) for finding in findings] == [
        ("error", "check-model"),
        ("warning", "check-unfinished"),
    ]


def test_a_model_that_never_ends_is_an_error_within_the_limit(worker: Worker) -> None:
    small = endless()
    assert len(small) < 8192
    assert worker.check(small) == ()
    with pytest.raises(WorkerError, match="does not finish"):
        worker.check(small, full=True)
    assert worker.check(GOOD) == ()


def test_a_model_that_fills_the_memory_is_an_error() -> None:
    with Worker(Limits(memory=1 << 30)) as small, pytest.raises(WorkerError, match=r"more than 1\.0 GiB of memory"):
        small.infer_types(HUNGRY)


def test_the_process_starts_again_after_it_was_killed() -> None:
    with Worker() as worker:
        assert worker.check(GOOD) == ()
        assert worker._server
        server = worker._server.process
        server.kill()
        server.wait()
        assert worker.check(GOOD) == ()


def test_a_server_that_dies_during_a_job_is_an_error() -> None:
    with Worker(Limits(wall_seconds=20)) as worker:
        worker.check(GOOD)
        assert worker._server
        server = worker._server.process
        timer = threading.Timer(0.3, server.send_signal, [signal.SIGKILL])
        timer.start()
        with pytest.raises(WorkerError, match="does not answer"):
            worker.check(endless(), full=True)
        timer.join()
        assert worker.check(GOOD) == ()


def test_a_job_that_another_thread_interrupts_ends_at_once_and_the_next_one_runs() -> None:
    with Worker(Limits(wall_seconds=20)) as worker:
        worker.interrupt()
        worker.check(GOOD)
        assert worker._server
        server = worker._server.process
        timer = threading.Timer(0.3, worker.interrupt)
        timer.start()
        with pytest.raises(WorkerError, match="does not answer"):
            worker.check(endless(), full=True)
        timer.join()
        assert server.poll() == 0
        assert worker.check(GOOD) == ()


def test_a_closed_worker_leaves_its_process_to_the_next_one() -> None:
    with Worker() as worker:
        worker.check(GOOD)
        assert worker._server
        server = worker._server.process
    with Worker() as second, Worker() as third:
        assert second.check(GOOD) == third.check(GOOD) == ()
        assert second._server
        assert third._server
        assert second._server.process is server is not third._server.process
        third_server = third._server.process
    assert third_server.poll() is None
    assert server.poll() == 0, "one process waits, not two"
    server_process.end_idle_server()
    assert third_server.poll() == 0
    worker.close()


def test_a_process_of_another_environment_is_not_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    with Worker() as worker:
        worker.check(GOOD)
        assert worker._server
        server = worker._server.process
    monkeypatch.setenv("LC_ALL", "C")
    with Worker() as other:
        assert other.check(GOOD) == ()
    assert server.poll() == 0


def test_the_process_of_an_interrupted_worker_is_not_reused() -> None:
    with Worker() as worker:
        worker.check(GOOD)
        assert worker._server
        server = worker._server.process
        worker.interrupt()
    assert server.poll() == 0


def test_an_interrupted_job_does_not_answer_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with Worker() as worker:
        worker.check(GOOD)
        monkeypatch.setattr(worker_protocol, "receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            worker.check(UNDEFINED_INPUT)
        monkeypatch.undo()
        assert worker.check(GOOD) == ()


@pytest.mark.parametrize("kind", ["nothing", "folder", "pipe", "device"])
def test_what_is_no_file_is_refused_at_once(worker: Worker, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    with pytest.raises(MissingInputError):
        worker.check(path)


def test_more_bytes_than_protobuf_reads_are_refused(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "MESSAGE_BYTES", 10)
    with pytest.raises(LimitError, match="pass its path instead"):
        worker.check(GOOD)


def test_megabytes_go_through_the_pipes(worker: Worker) -> None:
    big = onnx.load_from_string(GOOD)
    big.graph.initializer.append(helper.make_tensor("w", TensorProto.UINT8, [20_000_000], bytes(20_000_000), raw=True))
    data = big.SerializeToString()
    assert len(worker.inline_functions(data)) >= len(data)


def test_without_onnx_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    start = "import sys\nsys.modules['onnx'] = None\n" + server_process.START
    monkeypatch.setattr(server_process, "START", start)
    with Worker() as worker, pytest.raises(WorkerError, match="install onnx"):
        worker.check(GOOD)


def test_a_python_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with Worker() as worker, pytest.raises(WorkerError, match="no process can be started"):
        worker.check(GOOD)


def test_nothing_of_the_current_folder_is_imported(tmp_path: Path) -> None:
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    canary = tmp_path / "canary"
    for name in ("onnx", "json", "msgspec", "numpy", "sitecustomize", "usercustomize", "types", "select", "onnxjson"):
        (hostile / f"{name}.py").write_text(f"open({str(canary)!r}, 'a').write('{name} ')\n")
    (hostile / "model.onnx").write_bytes(UNDEFINED_INPUT)
    program = tmp_path / "program.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(PACKAGE)!r})\nfrom pathlib import Path\nimport os\n"
        "from onnxjson.running.worker import Worker\n"
        "os.environ['PYTHONPATH'] = os.pathsep.join(['', os.getcwd()])\nos.environ['PYTHONSTARTUP'] = 'json.py'\n"
        "with Worker() as worker:\n    print(worker.check(Path('model.onnx'))[0].code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", str(program)], cwd=hostile, check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "check-model\n"
    assert not canary.exists()


def test_importing_the_client_imports_neither_onnx_nor_numpy() -> None:
    code = "import onnxjson.running.worker, sys; print(sorted({'onnx', 'numpy', 'google.protobuf'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE, check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_functions_are_inlined(worker: Worker) -> None:
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)]
    function = helper.make_function("f", "F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], opsets[:1])
    calling = model(helper.make_node("F", ["x"], ["y"], domain="f"), functions=[function], opset_imports=opsets)
    inlined = onnx.load_from_string(worker.inline_functions(calling))
    assert [node.op_type for node in inlined.graph.node] == ["Relu"]
    assert not inlined.functions


def test_versions_are_converted(worker: Worker) -> None:
    old = model(helper.make_node("Squeeze", ["x"], ["y"], axes=[0]), opset_imports=[helper.make_opsetid("", 11)])
    converted = onnx.load_from_string(worker.convert_version(old, 13))
    assert [node.op_type for node in converted.graph.node] == ["Constant", "Squeeze"]
    assert converted.opset_import[0].version == 13


def test_an_operator_without_adapter_is_an_error_of_the_worker(worker: Worker) -> None:
    new = model(helper.make_node("Gelu", ["x"], ["y"]), opset_imports=[helper.make_opsetid("", 20)])
    with pytest.raises(WorkerError, match=r"the version converter of onnx rejects this model: .*Gelu"):
        worker.convert_version(new, 11)


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "ORT_LOAD_CONFIG_FROM_MODEL"])
def test_onnxruntime_writes_nothing_of_its_own(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Telemetry would begin with an identifier in the cache, a configuration in the model with a profile.
    monkeypatch.setenv(variable, "1" if variable.startswith("ORT") else str(tmp_path))
    for each in ("ORT_DISABLE_TELEMETRY", "CI"):
        monkeypatch.delenv(each, raising=False)
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value], [out])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    model.metadata_props.add(key="ort_config", value='{"session_options": {"enable_profiling": 1}}')
    limits = Limits(memory=8 << 30, file_bytes=1 << 20, open_files=256, may_start_threads=True)
    with Worker() as one:
        request = Request(job="pass", module=PASSES, declaration='{"pass": "onnxruntime"}', limits=limits)
        answer = one.run_contained(request, model.SerializeToString(), tmp_path)
    assert not answer.problem
    assert [path.name for path in tmp_path.rglob("*") if path.name != "optimized.onnx"] == []


def test_images_in_models_that_are_programs_are_not_run(worker: Worker, tmp_path: Path) -> None:
    script = tmp_path / "look.py"
    script.write_text("def optimize(model):\n    import PIL.EpsImagePlugin\n")
    declaration = f'{{"pass": "user", "file": "{script}"}}'
    limits = Limits(memory=8 << 30, open_files=256, may_start_threads=True)
    # Pillow is not needed: without the guard it is PIL that is missing.
    reads = (str(tmp_path).encode(),)
    request = Request(job="pass", module=PASSES, declaration=declaration, limits=limits, reads=reads)
    answer = worker.run_contained(request, GOOD, tmp_path)
    assert "import of PIL.EpsImagePlugin halted" in answer.problem
