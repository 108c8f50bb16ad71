"""A current folder full of traps: modules, settings and entry points, and environment variables that name them."""

import os
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.cli.running import command_line
from tests.hostile.canary.payloads import EXECUTED, Fill, Payload
from tests.hostile.canary.planting import Planter
from tests.hostile.canary.positions import valid_model
from tests.hostile.canary.runners import write
from tests.hostile.canary.tripwires import VARIABLE, escapes
from tests.hostile.canary.watching import Watch

MODULES: Final = (
    "json", "onnx", "numpy", "sympy", "sitecustomize", "usercustomize", "msgspec", "click", "orjson", "google",
    "onnxruntime", "onnxscript", "onnxslim", "onnxsim", "onnxoptimizer", "textual", "rich", "encodings", "ml_dtypes",
    "pybase64", "psutil", "site", "typing", "os", "re", "ast", "ctypes", "subprocess", "tempfile", "torch", "packaging",
    "coloredlogs", "flatbuffers", "conftest", "setup", "readline", "user_pass", "onnx_ir", "transformers", "deepdiff",
    "onnxjson", "onnxjson_tui", "plugin", "__init__", "__main__", "model", "m",
)  # fmt: skip
"""Names of modules that a command, a library or Python itself may import."""

SETTINGS: Final = {
    "pyproject.toml": '[project.entry-points."onnxjson.passes"]\nplugin = "plugin:optimize"\n',
    "setup.cfg": "[options.entry_points]\nonnxjson.passes =\n  plugin = plugin:optimize\n",
    "canary-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: canary\nVersion: 1.0\n",
    "canary-1.0.dist-info/entry_points.txt": "[onnxjson.passes]\nplugin = plugin:optimize\n",
    "canary.egg-info/entry_points.txt": "[onnxjson.passes]\nplugin = plugin:optimize\n",
    "pyvenv.cfg": "home = .\ninclude-system-site-packages = true\n",
    "python311._pth": ".\nimport site\n",
    ".env": "PYTHONPATH=.\nONNXJSON_PYTHON={program}\n",
    ".onnxjson.toml": '[tool.onnxjson]\nplugins = ["plugin"]\npager = "{program}"\n',
    "ort_config.json": '{"session_options": {"custom_op_libraries": ["./m.so"]}}',
    ".gitconfig": "[core]\n\tpager = {program}\n\tfsmonitor = {program}\n[include]\n\tpath = .gitconfig\n",
    ".lesskey": "#env\nLESSOPEN = |{program} %s\n",
}

VARIABLES: Final = {
    "PYTHONPATH": ".", "PYTHONHOME": ".", "PYTHONUSERBASE": ".", "PYTHONSTARTUP": "plugin.py", "PYTHONINSPECT": "1",
    "PYTHONBREAKPOINT": "plugin.optimize", "PYTHONWARNINGS": "error::plugin.Warned", "PYTHONPLATLIBDIR": ".",
    "PYTHONCASEOK": "1", "PYTHONPYCACHEPREFIX": ".", "ONNXJSON_PYTHON": "./program",
    "ONNXJSON_CONFIG": ".onnxjson.toml", "ORT_LOAD_CONFIG_FROM_MODEL": "1",
}  # fmt: skip

_COMMANDS: Final = (
    ("show", "m.onnx"),
    ("check", "--deep", "m.onnx"),
    ("run", "m.onnx"),
    ("diff", "m.onnx", "n.onnx", "--test-rewrites"),
    ("passes",),
    ("optimize", "m.onnx", "-p", "onnxslim", "-p", "symbolic-shapes", "--keep-going", "--dry-run"),
    ("optimize", "m.onnx", "-p", "onnxscript", "-p", "onnxoptimizer", "-p", "float16", "--keep-going", "--dry-run"),
    ("optimize", "m.onnx", "-p", "onnxsim", "-p", "quantize-static", "--keep-going", "--dry-run"),
)  # fmt: skip


def traps(planter: Planter, folder: Path) -> None:
    """Fill a folder with modules that fire when they are imported, and with settings that name them."""
    wires = planter.wires
    for number, name in enumerate(MODULES):
        effect = EXECUTED[number % len(EXECUTED)]
        payload = Payload(f"module/{name}/{effect}", effect, _module, "module")
        source = payload.text(planter.add(payload, "the current folder"), wires)
        (folder / f"{name}.py").write_bytes(source)
    program = folder / "program"
    payload = Payload("program/file", "file", _program, "program")
    program.write_bytes(payload.text(planter.add(payload, "the current folder"), wires))
    program.chmod(0o755)
    for name, text in SETTINGS.items():
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text.replace("{program}", str(program)))


def _module(to: Fill) -> str:
    """Code that needs none of the modules next to it."""
    if to.effect == "port":
        return f"import _socket\nc=_socket.socket()\nc.connect(('127.0.0.1',{to.port}))\nc.send(b'{to.mark}')\n"
    content = f"p.environ[b'{VARIABLE}']" if to.effect == "secret" else "b''"
    return f"import posix as p\nf=p.open('{to.marks}/{to.mark}',{os.O_CREAT | os.O_WRONLY},384)\np.write(f,{content})\n"


def _program(to: Fill) -> str:
    return f"#!/bin/sh\n{to.shell}\ncat\n"


def command_lines(words: tuple[str, ...]) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield a command as a user types it, and as git starts it, the latter with environment variables as traps."""
    script = Path(sysconfig.get_path("scripts")) / "onnxjson"
    yield [str(script), *words], {}
    yield command_line(*words), VARIABLES


def in_a_folder_of_traps(watch: Watch, commands: tuple[tuple[str, ...], ...] = _COMMANDS) -> None:
    """Run commands as separate processes in a folder full of traps."""
    folder = watch.folder / "surroundings"
    folder.mkdir()
    traps(watch.planter, folder)
    for name in ("m.onnx", "n.onnx"):
        write(folder, name, valid_model(watch.planter, 1, ("branches",)))
    for words in commands:
        for line, variables in command_lines(words):
            done = subprocess.run(
                line, cwd=folder, env=os.environ | variables, capture_output=True, stdin=subprocess.DEVNULL, timeout=100
            )
            outputs = [done.stdout, done.stderr]
            refused = done.returncode not in (0, 1)
            watch.look("surroundings", words[:1], outputs, escapes(outputs), refused=refused)
