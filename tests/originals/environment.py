"""Environments with the original tools, each with the libraries that it works with; made once, from the package index.

The tools pin versions of onnx and numpy that exclude each other, so they are installed without their dependencies,
which follow: for most of them the versions that onnxjson runs with, so that both use the same onnx and onnxruntime.
"""

import json
import os
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path
from typing import Final

SECONDS: Final = 900

_SIMPLE: Final = (
    "ssc4onnx", "scs4onnx", "sog4onnx", "soc4onnx", "scc4onnx", "sna4onnx", "sbi4onnx", "sor4onnx", "soa4onnx",
    "sod4onnx", "ssi4onnx", "sit4onnx", "sio4onnx", "svs4onnx", "sng4onnx", "snc4onnx", "sne4onnx", "snd4onnx",
    "sde4onnx",
)  # fmt: skip

_SHARED: Final = ("onnx", "onnxruntime", "numpy", "onnxoptimizer", "onnxsim", "onnxslim", "onnx2json", "json2onnx")
"""Distributions of which both use one version, if onnxjson has them here."""

TOOLS: Final[dict[str, tuple[str, ...]]] = {
    "new": (*_SIMPLE, "onnx2json", "json2onnx", "onnxoptimizer", "onnxsim", "onnxslim"),
    # They need numpy.string_ and numpy.unicode_, which numpy 2 does not have.
    "old": ("sed4onnx", "sam4onnx", "numpy==1.26.4", "onnx==1.16.2", "onnxruntime==1.19.2"),
}
"""The environments: the tools, and libraries of versions that they need."""

_LIBRARIES: Final[dict[str, tuple[str, ...]]] = {
    "new": ("rich", "onnx_graphsurgeon", "sympy", "colorama"),
    "old": ("onnx_graphsurgeon==0.5.8", "protobuf==4.25.8"),
}
"""What the tools import, installed with its dependencies."""


def install(folder: Path) -> list[str]:
    """Make the environments in a folder; return the distributions that cannot be installed."""
    failed = []
    for name, tools in TOOLS.items():
        place = folder / name
        if not place.exists():
            venv.create(place, with_pip=True)
        for each in (*map(_as_here, tools), *([f"onnx=={metadata.version('onnx')}"] if name == "new" else [])):
            if not _installs(place, "--no-deps", each):
                failed.append(each)
        shared = [] if name == "old" else [_as_here(each) for each in ("onnx", "onnxruntime", "numpy")]
        if not _installs(place, *_LIBRARIES[name], *shared):
            failed.extend(_LIBRARIES[name])
    return failed


def _as_here(distribution: str) -> str:
    """A requirement of the version that onnxjson has here."""
    try:
        return f"{distribution}=={metadata.version(distribution)}" if distribution in _SHARED else distribution
    except metadata.PackageNotFoundError:
        return distribution


def _installs(place: Path, *arguments: str) -> bool:
    command: list[str | Path] = [
        place / "bin" / "python",
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        *arguments,
    ]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    if done.returncode:
        print(f"{' '.join(arguments)}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    return done.returncode == 0


def programs(folder: Path, tool: str) -> list[str | os.PathLike[str]] | None:
    """The command of a tool; None if it is not installed."""
    for name, tools in TOOLS.items():
        place = folder / name / "bin"
        if tool in [each.partition("==")[0] for each in tools]:
            if tool == "onnxoptimizer":
                return [place / "python", "-m", tool] if tool in versions(folder / name) else None
            return [place / tool] if (place / tool).exists() else None
    return None


def versions(environment: Path | None) -> dict[str, str]:
    """The distributions of an environment, None for this one, with their versions; none if there is no environment."""
    python = Path(sys.executable) if environment is None else environment / "bin" / "python"
    if not python.exists():
        return {}
    code = (
        "import json; from importlib.metadata import distributions; "
        "print(json.dumps({d.metadata['Name'].lower().replace('-', '_'): d.version for d in distributions()}))"
    )
    result = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=SECONDS)
    found: dict[str, str] = json.loads(result.stdout)
    return found
