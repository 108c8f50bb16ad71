"""What native and third-party code may do: every attempt is refused in the box, and works without it."""

import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from onnxjson import example
from onnxjson.model.document import Model
from onnxjson.model.errors import PassError, WorkerError
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.running import box, box_landlock, server_process
from onnxjson.running.box import Box
from onnxjson.running.worker import Worker
from onnxjson.running.worker_protocol import Answer, Limits, Request
from onnxjson.running.worker_server import run_sandboxed
from onnxjson.storage import api

LIMITS = Limits(wall_seconds=10, open_files=64, file_bytes=1 << 20, may_start_threads=True)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Landlock and seccomp, which only Linux has"),
    pytest.mark.skipif(
        bool(box.missing()),
        reason="this kernel has no Landlock or no seccomp (see onnxjson doctor)",
    ),
]


class Place:
    """What is outside of the box: a folder with a secret, and sockets that listen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secret = folder / "secret"
        self.secret.write_text("secret")
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.link = self.scratch / "link"
        self.link.symlink_to(self.secret)
        self.pid = os.getpid()
        self.ports = {family: self._listening(family) for family in (socket.AF_INET, socket.AF_INET6)}
        self.abstract = f"\0onnxjson-{self.pid}"
        self.addresses = {family: found.getsockname() for family, found in self.ports.items()}
        self.unix = [self._unix(kind, name) for kind, name in self._names()]

    def _names(self) -> Iterator[tuple[socket.SocketKind, str]]:
        yield socket.SOCK_STREAM, self.abstract
        yield socket.SOCK_STREAM, str(self.folder / "stream")
        yield socket.SOCK_DGRAM, str(self.folder / "datagrams")

    def _listening(self, family: socket.AddressFamily) -> socket.socket:
        server = socket.socket(family)
        server.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        server.listen()
        return server

    def _unix(self, kind: socket.SocketKind, name: str) -> socket.socket:
        server = socket.socket(socket.AF_UNIX, kind)
        server.bind(name)
        if kind == socket.SOCK_STREAM:
            server.listen()
        return server

    def close(self) -> None:
        for each in (*self.ports.values(), *self.unix):
            each.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    found.close()


def connect(family: socket.AddressFamily, address: tuple[object, ...] | str) -> None:
    with socket.socket(family) as found:
        found.connect(address)


def send(family: socket.AddressFamily, address: object) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as found:
        found.sendto(b"x", address)  # type: ignore[call-overload]


def send_through_a_pair(place: Place) -> None:
    for found in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
        with found:
            found.sendto(b"x", str(place.folder / "datagrams"))


def call(number: int, *arguments: int) -> None:
    calls = ctypes.CDLL(None, use_errno=True)
    if calls.syscall(ctypes.c_long(number), *[ctypes.c_long(each) for each in arguments]) < 0:
        raise OSError(ctypes.get_errno(), "")


def control(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "")


def trace_me() -> None:
    if ctypes.CDLL(None, use_errno=True).ptrace(0, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "")


def write_and_rename(place: Place) -> None:
    (place.scratch / "x").write_text("x")
    (place.scratch / "x").rename(place.folder / "x")


def fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


IN6 = socket.AF_INET6

ATTEMPTS: dict[str, Callable[[Place], object]] = {
    "reads a file": lambda place: place.secret.read_text(),
    "reads a file by a link": lambda place: place.link.read_text(),
    "reads a file by /proc": lambda place: Path(f"/proc/self/root{place.secret}").read_text(),
    "lists a folder": lambda place: os.listdir(place.folder),
    "lists home": lambda _: os.listdir(os.path.expanduser("~")),
    "reads what belongs to the system": lambda _: Path("/etc/passwd").read_bytes(),
    "reads the environment of its parent": lambda place: Path(f"/proc/{place.pid}/environ").read_bytes(),
    "writes a file": lambda place: (place.folder / "new").write_text("x"),
    "writes into a file": lambda place: place.secret.open("a").close(),
    "empties a file": lambda place: os.truncate(place.secret, 0),
    "moves a file out": write_and_rename,
    "moves a file in": lambda place: place.secret.rename(place.scratch / "x"),
    "links a file": lambda place: os.link(place.secret, place.scratch / "x"),
    "removes a file": lambda place: place.secret.unlink(),
    "makes a folder": lambda place: (place.folder / "new").mkdir(),
    "changes a mode": lambda place: place.secret.chmod(0o644),
    "changes an owner": lambda place: os.chown(place.secret, os.getuid(), os.getgid()),
    "changes a time": lambda place: os.utime(place.secret, (0, 0)),
    "connects by TCP": lambda place: connect(socket.AF_INET, place.addresses[socket.AF_INET]),
    "connects by TCP over IPv6": lambda place: connect(IN6, place.addresses[IN6]),
    "sends by UDP": lambda _: send(socket.AF_INET, ("127.0.0.1", 9)),
    "sends by UDP over IPv6": lambda _: send(IN6, ("::1", 9)),
    "listens": lambda _: socket.create_server(("127.0.0.1", 0)).close(),
    "connects to an abstract socket": lambda place: connect(socket.AF_UNIX, place.abstract),
    "connects to a socket by its path": lambda place: connect(socket.AF_UNIX, str(place.folder / "stream")),
    "sends from a pair of sockets": send_through_a_pair,
    "asks the kernel by netlink": lambda _: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close(),
    "becomes another program": lambda _: os.execv(
        sys.executable, [sys.executable, "-c", "import os; os.write(3, b'')"]
    ),
    "runs a program": lambda _: subprocess.run([sys.executable, "-c", ""], check=True),
    "runs a program by a shell": lambda _: subprocess.run("true", shell=True, check=True),
    "starts a process": lambda _: fork(),
    "is traced": lambda _: trace_me(),
    "signals its parent": lambda place: os.kill(place.pid, 0),
    "opens its parent": lambda place: os.close(os.pidfd_open(place.pid)),
    "changes limits of its parent": lambda place: resource.prlimit(
        place.pid, resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE)
    ),
    "outlives its parent": lambda _: control(1, 0),
    "makes shared memory": lambda _: call({"x86_64": 29, "aarch64": 194}[os.uname().machine], 0, 4096, 0o600),
}
"""What a job tries; without the box all of it works."""


def done(attempt: Callable[[], object]) -> tuple[Answer, bytes]:
    attempt()
    return Answer(outcome="done"), b""


@pytest.mark.parametrize("name", ATTEMPTS)
def test_what_a_job_tries_is_refused_in_the_box_and_works_without(name: str, place: Place) -> None:
    attempt = ATTEMPTS[name]
    before = sorted(os.listdir(place.folder))
    answer, _ = run_sandboxed(lambda: done(lambda: attempt(place)), LIMITS, box=Box(scratch=str(place.scratch)))
    assert answer.outcome == "failed", answer
    assert answer.detail.startswith(("PermissionError: ", "OSError: [Errno 18]")), answer  # the latter: across folders
    assert sorted(os.listdir(place.folder)) == before
    assert place.secret.read_text() == "secret"
    answer, _ = run_sandboxed(lambda: done(lambda: attempt(place)), LIMITS, box=None)
    assert answer.outcome == "done" or name == "becomes another program", answer


def test_root_has_no_rights_of_root_in_the_box() -> None:
    def status() -> tuple[Answer, bytes]:
        return Answer(outcome="done"), Path("/proc/self/status").read_bytes()

    lines = run_sandboxed(status, LIMITS)[1].decode().splitlines()
    found = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert found["NoNewPrivs"] == "1"
    assert int(found["CapInh"], 16) == int(found["CapAmb"], 16) == 0
    for kind in ("CapEff", "CapPrm"):
        assert int(found[kind], 16) & ~(1 << 2) == 0  # all but CAP_DAC_READ_SEARCH, which only reads


def test_the_folder_of_a_job_is_its_own(tmp_path: Path) -> None:
    def use() -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "x").write_text("x")
        (tmp_path / "a" / "x").rename(tmp_path / "y")
        (tmp_path / "link").symlink_to("y")
        assert (tmp_path / "link").read_text() == "x"
        os.truncate(tmp_path / "y", 0)
        (tmp_path / "y").unlink()
        (tmp_path / "a").rmdir()
        Path(os.devnull).write_text("x")

    assert run_sandboxed(lambda: done(use), LIMITS, box=Box(scratch=str(tmp_path)))[0].outcome == "done"


def test_what_a_job_names_can_be_read_and_not_written(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x").write_text("x")
    (tmp_path / "link").symlink_to("in")
    reads = Box(reads=(str(tmp_path / "link"), str(tmp_path / "nowhere")))
    found = tmp_path / "in" / "x"
    assert run_sandboxed(lambda: done(found.read_text), LIMITS, box=reads)[0].outcome == "done"
    assert "PermissionError" in run_sandboxed(lambda: done(lambda: found.write_text("y")), LIMITS, box=reads)[0].detail


def test_threads_and_pairs_of_streams_work_in_the_box() -> None:
    def use() -> None:
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        one, other = socket.socketpair()
        one.send(b"x")
        assert other.recv(1) == b"x"
        os.kill(os.getpid(), 0)

    assert run_sandboxed(lambda: done(use), LIMITS)[0].outcome == "done"


@pytest.mark.parametrize("version", range(1, 7))
def test_older_kernels_guard_files_too(version: int, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_landlock, "version", lambda: version)
    inside = Box(scratch=str(place.scratch))
    assert run_sandboxed(lambda: done((place.scratch / "x").touch), LIMITS, box=inside)[0].outcome == "done"
    assert "PermissionError" in run_sandboxed(lambda: done(place.secret.read_text), LIMITS, box=inside)[0].detail
    assert "PermissionError" in run_sandboxed(lambda: done((place.folder / "new").touch), LIMITS, box=inside)[0].detail
    reading = Box(scratch=str(place.scratch), reads=(str(place.secret),))
    assert (
        "PermissionError"
        in run_sandboxed(lambda: done(lambda: os.truncate(place.secret, 0)), LIMITS, box=reading)[0].detail
    )
    flags = os.O_RDONLY | os.O_TRUNC
    assert (
        "PermissionError"
        in run_sandboxed(lambda: done(lambda: os.open(place.secret, flags)), LIMITS, box=reading)[0].detail
    )
    assert place.secret.read_text() == "secret"


@pytest.mark.parametrize("version", [5, 6])
def test_no_signal_reaches_another_process_by_way_of_a_pipe(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_landlock, "version", lambda: version)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:

        def signal_other() -> None:
            news, pipe = os.pipe()
            fcntl.fcntl(news, fcntl.F_SETOWN, other.pid)
            fcntl.fcntl(news, fcntl.F_SETFL, os.O_ASYNC)
            os.write(pipe, b"x")

        answer = run_sandboxed(lambda: done(signal_other), LIMITS)[0]
        other.communicate(b"\n", timeout=10)
    assert (other.returncode, answer.detail) == (0, "PermissionError: [Errno 1] Operation not permitted")


@pytest.fixture
def told() -> Iterator[None]:
    box.warn_once.cache_clear()
    yield
    box.warn_once.cache_clear()


@pytest.mark.usefixtures("told")
def test_a_kernel_without_any_of_it_still_runs_jobs_and_one_line_reports_it(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(box, "landlock_missing", lambda: "too old")
    monkeypatch.setattr(box, "seccomp_missing", lambda: "switched off")
    assert run_sandboxed(lambda: done(place.secret.read_text), LIMITS)[0].outcome == "done"
    for _ in range(2):
        with Worker() as worker:
            assert worker.check(example.make_example().SerializeToString()) == ()
    (record,) = caplog.records
    assert record.getMessage() == (
        "onnxjson: warning: native code can reach files outside its folder: too old; "
        "native code can use the network, start programs and signal other processes: switched off; "
        "`onnxjson doctor` tries each protection"
    )


def test_a_process_that_finds_none_of_it_still_runs_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = (
        "from onnxjson.running import box_landlock, box_seccomp, worker_server\n"
        "box_landlock.version = lambda: 0\nbox_seccomp.missing = lambda: 'too old'\n"
        "worker_server.adopt_orphans = lambda: False\nmain()\n"
    )
    monkeypatch.setattr(server_process, "START", server_process.START.replace("main()\n", bare))
    data = example.make_example().SerializeToString()
    with Worker() as worker:
        assert worker.check(data, full=True) == ()
    with Pipeline() as pipeline:
        (made,) = pipeline.run(api.from_proto(example.make_example()), [parse_step("onnxruntime")])
    assert made.is_changed


def test_packages_that_are_edited_where_they_are_can_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finder = ModuleType("__editable___some_finder")
    finder.MAPPING = {"some": str(tmp_path)}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, finder.__name__, finder)
    box.system_paths.cache_clear()
    try:
        assert os.path.realpath(tmp_path) in box.system_paths()
    finally:
        box.system_paths.cache_clear()


def test_the_whole_package_can_be_read_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(box.__file__).resolve().parents[1]
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(box, "_editable", list)
    box.system_paths.cache_clear()
    try:
        assert any(package.is_relative_to(each) for each in box.system_paths())
    finally:
        box.system_paths.cache_clear()


def test_neither_home_nor_what_is_around_it_is_read_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home" / "me"
    (home / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    assert [box.is_too_wide(str(each)) for each in (home, tmp_path, Path("/"), home / "work")] == [True] * 3 + [False]
    assert box.readable_by_script(str(home / "x.py")) == str(home / "x.py")
    assert box.readable_by_script(str(home / "work" / "x.py")) == str(home / "work")


@pytest.mark.usefixtures("told")
def test_where_all_is_there_nothing_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    box.warn_once()
    assert caplog.records == []


@pytest.mark.parametrize("part", ["box_landlock", "box_seccomp"])
def test_a_protection_that_fails_is_an_error_and_nothing_runs(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = (
        f"from onnxjson.running import {part}\n"
        f"def no(*_, **__):\n    raise OSError(1, 'not today')\n{part}.restrict = no\nmain()\n"
    )
    monkeypatch.setattr(server_process, "START", server_process.START.replace("main()\n", failing))
    model = example.make_example()
    with Worker() as worker, pytest.raises(WorkerError, match=r"the kernel cannot sandbox it \(not today\)"):
        worker.check(model.SerializeToString())
    with Pipeline() as pipeline, pytest.raises(PassError, match="not today"):
        list(pipeline.run(api.from_proto(model), [parse_step("onnxruntime")]))


@pytest.fixture(scope="module")
def model() -> Model:
    return api.from_proto(example.make_example())


PASSES = {
    "reads a file": "open({secret!r}).read()",
    "writes a file": "open({folder!r} + '/planted', 'w')",
    "connects by TCP": "socket.create_connection(('127.0.0.1', {port}))",
    "sends by UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))",
    "runs a program": "subprocess.run(['true'], check=True)",
    "starts a process": "os.fork() or os._exit(0)",
    "signals its parent": "os.kill(os.getppid(), 0)",
}


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_of_the_user_is_in_the_box_unless_it_is_trusted(
    name: str, model: Model, place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    own = tmp_path_factory.mktemp("passes") / "pass.py"
    port = place.addresses[socket.AF_INET][1]
    line = PASSES[name].format(secret=str(place.secret), folder=str(place.folder), port=port)
    head = "import os, socket, subprocess\ndef optimize(model):\n"
    own.write_text(f"{head}    {line}\n    model.doc_string = 'x'\n    return model\n")
    with Pipeline() as pipeline, pytest.raises(PassError, match=r"Permission denied|Operation not permitted"):
        list(pipeline.run(model, [parse_step(str(own))]))
    with Pipeline(trust=True) as pipeline:
        (made,) = pipeline.run(model, [parse_step(str(own))])
    assert (made.failure, made.after.model.doc_string) == (None, "x")


def test_a_pass_reads_what_is_next_to_it(model: Model, tmp_path: Path) -> None:
    (tmp_path / "word").write_text("y")
    own = tmp_path / "pass.py"
    own.write_text(
        "from pathlib import Path\ndef optimize(model):\n"
        "    model.doc_string = (Path(__file__).parent / 'word').read_text()\n    return model\n"
    )
    with Pipeline() as pipeline:
        (made,) = pipeline.run(model, [parse_step(str(own))])
    assert made.after.model.doc_string == "y"


def test_a_pass_in_the_home_of_the_user_does_not_read_all_of_it(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "secret").write_text("secret")
    own = tmp_path / "pass.py"
    own.write_text(f"def optimize(model):\n    open({str(tmp_path / 'secret')!r})\n    return model\n")
    with Pipeline() as pipeline, pytest.raises(PassError, match="Permission denied"):
        list(pipeline.run(model, [parse_step(str(own))]))


VARIABLES = {
    "SYMPY_GROUND_TYPES": "python", "ONNXSIM_PROFILE": "1", "ORT_DEBUG_NODE_IO_DUMP_OUTPUT_DATA": "1",
    "SECRET_KEY": "feathers", "LD_AUDIT": "", "PYTHONSTARTUP": "x.py", "HTTPS_PROXY": "http://127.0.0.1:9",
}  # fmt: skip
"""What no job should get."""

SETTINGS = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "CUDA_VISIBLE_DEVICES": "0", "OPENBLAS_VERBOSE": "0"}


def test_only_listed_variables_reach_a_job_unless_it_is_trusted(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (VARIABLES | SETTINGS | {"ORT_LOAD_CONFIG_FROM_MODEL": "1"}).items():
        monkeypatch.setenv(name, value)
    own = tmp_path / "pass.py"
    own.write_text(
        "import json, os\ndef optimize(model):\n"
        "    started = open('/proc/self/environ', errors='surrogateescape').read().split('\\0')\n"
        "    names = [each.partition('=')[0] for each in started]\n"
        "    model.doc_string = json.dumps([names, dict(os.environ)])\n    return model\n"
    )
    for trust in (False, True):
        with Pipeline(trust=trust) as pipeline:
            (made,) = pipeline.run(model, [parse_step(str(own))])
        started, found = json.loads(made.after.model.doc_string or "")
        assert not (VARIABLES.keys() | {"ORT_LOAD_CONFIG_FROM_MODEL"}) & set(started)
        assert found.items() >= SETTINGS.items()
        assert found.get("ORT_LOAD_CONFIG_FROM_MODEL") is None
        assert VARIABLES.keys() & found.keys() == (VARIABLES.keys() if trust else set())


def test_trust_is_for_code_of_the_user_alone(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    trusted = []
    real = Worker.run_contained

    def run_contained(self: Worker, request: Request, blob: bytes, folder: Path) -> object:
        trusted.append(request.trusted)
        return real(self, request, blob, folder)

    monkeypatch.setattr(Worker, "run_contained", run_contained)
    with Pipeline(trust=True) as pipeline:
        list(pipeline.run(model, [parse_step("onnxruntime"), parse_step("onnxoptimizer")]))
    assert set(trusted) == {False}


LINGERING = """
import os, signal, time
def optimize(model):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            for number in range(1, 32):
                if number not in (9, 19):
                    signal.signal(number, signal.SIG_IGN)
            if os.fork() == 0:
                os.write(writer, b'%d' % os.getpid())
                os.close(writer)
            time.sleep(1000)
        os._exit(0)
    model.doc_string = os.read(reader, 20).decode()
    {end}
    return model
"""


def is_alive(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] not in b"ZX"
    return False


@pytest.mark.parametrize("end", ["pass", "open('{file}', 'w').write(model.doc_string); time.sleep(1000)"])
def test_nothing_is_left_behind_by_trusted_code_either(end: str, model: Model, tmp_path: Path) -> None:
    own = tmp_path / "pass.py"
    own.write_text(LINGERING.format(end=end.format(file=tmp_path / "process")))
    with Pipeline(seconds=2, trust=True, keep_going=True) as pipeline:
        (made,) = pipeline.run(model, [parse_step(str(own))])
        if end == "pass":
            assert made.failure is None
            left = int(made.after.model.doc_string or "")
        else:
            assert "does not finish" in str(made.failure)
            left = int((tmp_path / "process").read_text())
        assert not is_alive(left)


def test_nothing_is_left_behind_when_the_server_is_killed(model: Model, tmp_path: Path) -> None:
    own, written = tmp_path / "pass.py", tmp_path / "process"
    end = f"open({str(written)!r}, 'w').write(model.doc_string); os.kill(os.getppid(), 9); time.sleep(1000)"
    own.write_text(LINGERING.format(end=end))
    with Pipeline(trust=True, keep_going=True) as pipeline:
        (made,) = pipeline.run(model, [parse_step(str(own))])
        assert made.failure is not None
    left = int(written.read_text())
    wait_until(lambda: not is_alive(left))


def test_what_trusted_code_left_ends_with_the_client(model: Model, tmp_path: Path) -> None:
    own = tmp_path / "pass.py"
    said = tmp_path / "process"
    own.write_text(LINGERING.format(end=f"open({str(said)!r}, 'w').write(model.doc_string); time.sleep(1000)"))
    with Pipeline(trust=True, keep_going=True) as pipeline:
        timer = threading.Timer(3, pipeline.interrupt)
        timer.start()
        (made,) = pipeline.run(model, [parse_step(str(own))])
        timer.join()
    assert made.failure is not None
    left = int(said.read_text())
    wait_until(lambda: not is_alive(left))


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_job_ends_with_a_server_that_is_killed(model: Model, tmp_path: Path) -> None:
    own = tmp_path / "pass.py"
    own.write_text("import time\ndef optimize(model):\n    time.sleep(1000)\n")
    jobs: list[int] = []

    with Pipeline(keep_going=True) as pipeline:

        def kill() -> None:
            assert pipeline._worker._server
            server = pipeline._worker._server.process
            listed = Path(f"/proc/{server.pid}/task/{server.pid}/children")
            wait_until(lambda: bool(listed.read_text()))
            jobs.extend(map(int, listed.read_text().split()))
            os.kill(server.pid, signal.SIGKILL)

        timer = threading.Timer(3, kill)
        timer.start()
        (made,) = pipeline.run(model, [parse_step(str(own))])
        timer.join()
    assert made.failure is not None
    assert jobs
    wait_until(lambda: not any(map(is_alive, jobs)))


def test_files_for_a_while_go_to_the_folder_of_the_job(model: Model, tmp_path: Path) -> None:
    own = tmp_path / "pass.py"
    own.write_text(
        "import os, tempfile\nfrom pathlib import Path\ndef optimize(model):\n"
        "    with tempfile.TemporaryFile() as file:\n        file.write(b'x')\n"
        "    Path(os.environ['XDG_CACHE_HOME'], 'x').mkdir()\n"
        "    model.doc_string = tempfile.gettempdir() + '|' + os.getcwd()\n    return model\n"
    )
    with Pipeline() as pipeline:
        (made,) = pipeline.run(model, [parse_step(str(own))])
    one, other = (made.after.model.doc_string or "").split("|")
    assert one == other != tempfile.gettempdir()
