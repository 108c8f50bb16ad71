"""Build the package, install it into empty environments away from the checkout, and use it there.

::

    python -m tests.packaging                     # wheel and sdist into dist/, checked, installed, used
    python -m tests.packaging --python python3.13
    python -m tests.packaging --beside ruff,onnxsim,onnx-ir     # also sizes and seconds of their installations

Needs the extra ``release`` and a package index. It ends with 1 after the first thing that does not work.
"""

import argparse
import os
import pty
import select
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.docs.sessions import ROOT, fits, steps_of
from tests.docs.test_python_blocks import BLOCKS

EXTRAS = ("passes", "ir", "lsp", "mcp", "fleet")

OF_THE_SDIST = {
    ".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "SECURITY.md", "onnxjson", "pyproject.toml",
    "schemas", "tui",
}  # fmt: skip


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Say what was done, and in how many seconds."""
    start = time.monotonic()
    yield
    print(f"ok  {what}: {time.monotonic() - start:.1f} s", flush=True)


def build(folder: Path) -> tuple[Path, Path]:
    """Build wheel and sdist, check them and what is in them; return both."""
    for former in folder.glob("onnxjson-*"):
        former.unlink()
    with timed("python -m build"):
        run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)])
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with timed("twine check --strict"):
        run([sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)])
    with zipfile.ZipFile(wheel) as archive:
        top = {name.partition("/")[0] for name in archive.namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"onnxjson", "onnxjson_tui"}, top
    with tarfile.open(sdist) as package:
        top = {name.split("/")[1] for name in package.getnames() if "/" in name}
    assert top == OF_THE_SDIST, top ^ OF_THE_SDIST
    print(f"    {wheel.name} {wheel.stat().st_size:,} bytes, {sdist.name} {sdist.stat().st_size:,} bytes")
    return wheel, sdist


def run(command: Sequence[str | Path], folder: Path | None = None, **settings: str) -> str:
    """Run a command; return what it prints, or end if it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment | settings, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1200, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"NO  {' '.join(map(str, command))} exited with {done.returncode}\n{done.stdout}")
    return done.stdout


def environment_for(python: str | None, folder: Path) -> Path:
    """Create an empty environment; return the folder of its programs."""
    if python is None:
        venv.create(folder, with_pip=True)
    else:
        run([python, "-m", "venv", folder])
    return folder / "bin"


def install(programs: Path, what: str, *options: str) -> None:
    """Install something into an environment, without what pip has kept from earlier."""
    run([programs / "python", "-m", "pip", "install", "--quiet", "--no-cache-dir", *options, what])


def use(programs: Path, folder: Path) -> None:
    """Do with the installed package what a user does first: the session of the README, the demo, the workbench."""
    settings = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder), "LC_ALL": "C.UTF-8",
        "COLUMNS": "80", "NO_COLOR": "1", "XDG_STATE_HOME": str(folder / "state"),
    }  # fmt: skip
    place = run([programs / "python", "-c", "import onnxjson; print(onnxjson.__file__)"], folder).strip()
    assert not Path(place).is_relative_to(ROOT), place
    with timed("the session of the README"):
        for step in steps_of(ROOT / "README.md"):
            done = subprocess.run(
                ["bash", "-c", step.command], cwd=folder, env=settings, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
            )  # fmt: skip
            if not fits(step.expected, done.stdout):
                sys.exit(f"NO  README.md:{step.line}: $ {step.command}\n{done.stdout}")
    with timed("the Python of the README"):
        for name, block in BLOCKS.items():
            if name.startswith("README"):
                run([programs / "python", "-c", block], folder, **settings)
    with timed("onnxjson demo"):
        run([programs / "onnxjson", "demo", "demo"], folder, **settings)
    with timed("onnxjson tui"):
        start_workbench([str(programs / "onnxjson"), "tui", "digits.onnx"], folder, settings)


def start_workbench(command: list[str], folder: Path, settings: dict[str, str]) -> None:
    """Start the workbench on a terminal, wait for the model, and leave it with q."""
    child, master = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execve(command[0], command, os.environ | settings | {"TERM": "xterm-256color", "LINES": "24"})
    shown, until, is_asked = b"", time.monotonic() + 60, False
    while time.monotonic() < until:
        if select.select([master], [], [], 0.2)[0]:
            try:
                shown += os.read(master, 1 << 16)
            except OSError:  # the program has ended
                break
        if b"digits" in shown and b"Softmax" in shown and not is_asked:
            is_asked = True
            os.write(master, b"q")
    _, status = os.waitpid(child, 0 if is_asked else os.WNOHANG)
    os.close(master)
    if not is_asked or os.waitstatus_to_exitcode(status):
        sys.exit(f"NO  the workbench does not show the model, or does not end: {shown[-2000:]!r}")


def use_extras(programs: Path, folder: Path) -> None:
    """Use something of each extra."""
    command = programs / "onnxjson"
    with timed("optimizers, onnx-ir, mcp, lsp, fleet"):
        for each in ("onnxsim", "onnxslim", "onnxoptimizer", "onnxscript", "symbolic-shapes"):
            run([command, "optimize", "digits.onnx", "-p", each, "-o", f"{each}.onnx"], folder)
        program = "import onnxjson; print(onnxjson.to_ir(onnxjson.load('digits.onnx')).graph.name)"
        run([programs / "python", "-c", program], folder)
        run([command, "fleet", "check", "digits.onnx", "onnxsim.onnx", "-j", "1", "-o", "rows.parquet"], folder)
        for server in ("mcp", "lsp"):
            done = subprocess.run(
                [command, server], cwd=folder, input=b"", capture_output=True, timeout=60, check=False
            )
            assert done.returncode == 0, done.stderr


def compare_installations(wheel: Path, names: Sequence[str], python: str | None) -> None:
    """Print what a cold installation of each takes with uv, in seconds and megabytes."""
    for what in (str(wheel), *names):
        with tempfile.TemporaryDirectory() as temporary:
            programs = environment_for(python, Path(temporary, "env"))
            empty = _size(programs.parent)
            start = time.monotonic()
            uv = Path(sys.executable).with_name("uv")
            run([uv, "pip", "install", "--quiet", "--no-cache", "--python", programs / "python", what])
            seconds, size = time.monotonic() - start, _size(programs.parent) - empty
            count = len(list(programs.parent.glob("lib/*/site-packages/*.dist-info"))) - 1  # without pip
            print(f"    {Path(what).name}: {count} packages, {size / 1e6:.0f} MB, {seconds:.1f} s", flush=True)


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file() and not each.is_symlink())


def main() -> None:
    """Build, install, use."""
    parser = argparse.ArgumentParser(prog="python -m tests.packaging")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="folder for wheel and sdist")
    parser.add_argument("--python", help="interpreter of the environments; by default this one")
    parser.add_argument("--beside", default="", help="other packages to install for comparison, separated by commas")
    words = parser.parse_args()
    wheel, sdist = build(words.dist)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        programs = environment_for(words.python, folder / "env")
        with timed("pip install WHEEL"):
            install(programs, str(wheel))
        (folder / "use").mkdir()
        use(programs, folder / "use")
        with timed(f"pip install WHEEL[{','.join(EXTRAS)}]"):
            install(programs, f"{wheel}[{','.join(EXTRAS)}]")
        use_extras(programs, folder / "use")
        with timed("pip install SDIST"):
            install(environment_for(words.python, folder / "from-source"), str(sdist))
        with timed("pipx run, uvx"):
            version = run([programs / "onnxjson", "--version"])
            for runner in (["pipx", "run", "--spec"], ["uv", "tool", "run", "--from"]):
                cold = {"PIPX_HOME": str(folder / "pipx"), "UV_CACHE_DIR": str(folder / "uv")}
                program = Path(sys.executable).with_name(runner[0])
                shown = run([program, *runner[1:], wheel, "onnxjson", "--version"], folder, **cold)
                assert version.splitlines()[0] in shown, shown
    if words.beside:
        compare_installations(wheel, words.beside.split(","), words.python)


if __name__ == "__main__":
    main()
