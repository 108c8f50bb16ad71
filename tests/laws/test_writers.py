"""Law: one module writes files."""

import ast
from pathlib import Path

import onnxjson.storage.saving

PACKAGE = Path(onnxjson.storage.saving.__file__).parents[1]

METHODS = {"write_text", "write_bytes", "touch", "rename", "hardlink_to", "symlink_to"}

FUNCTIONS = {"os.replace", "os.rename", "os.link", "os.symlink", "os.truncate", "os.mknod", "os.mkfifo"}

FLAGS = {"O_WRONLY", "O_CREAT", "O_TRUNC", "O_APPEND"}

LOOKING = {"shutil.which", "shutil.get_terminal_size"}

OTHERS = {
    "model/system.py": "opens what others name, and the lock of a folder",
    "cli/program.py": "plays the person who edits a text",
    "cli/options.py": "writes text to a help formatter, not to a file",
    "cli/output.py": "opens the null device",
    "storage/numpy_constants.py": "opens members of an archive that goes to a sink",
    "cli/fleet.py": "writes text to a help formatter, not to a file",
    "cli/fleet_run.py": "keeps the rows of a run without a file for them in a temporary folder",
    "fleet/results.py": "appends rows to the file of results, each whole",
    "storage/store.py": "creates entries that a process works in, and removes those beyond the limits",
    "storage/remote.py": "keeps what was fetched in the cache folder",
    "example.py": "makes a new file, never replaces one",
    "git/merge_driver.py": "puts its result where git asks for it; pointers of weights that have no file yet",
    "git/repository.py": "lays out a revision in a private temporary folder",
    "git/driver_lines.py": "tries settings in a temporary repository",
    "merging/sides.py": "renames values, not files",
    "optimizing/passes/onnxruntime.py": "hands a model over in the private folder of a pass",
    "serving/permissions.py": "asks where temporary files are",
    "running/box_trial.py": "tries to write outside the box",
    "running/executing.py": "reports from a sandboxed process, in its private folder",
    "running/sandbox.py": "makes the private folder of a run",
    "running/server_process.py": "makes and removes the private folder of a job",
    "optimizing/trace_storing.py": "removes the patches of the trace that is replaced",
}


def writes(module: Path) -> list[str]:
    """What in a module would make or change a file, as ``line: call``."""
    found = []
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in FLAGS:
            found.append(f"{node.lineno}: {node.attr}")
        if isinstance(node, ast.Call) and is_writing(node):
            found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


def is_writing(call: ast.Call) -> bool:
    function = ast.unparse(call.func)
    name = function.rpartition(".")[2]
    if function in LOOKING:
        return False
    if function in FUNCTIONS or function.startswith(("shutil.", "tempfile.")):
        return True
    if isinstance(call.func, ast.Attribute) and name in METHODS:
        return True
    arguments = [*call.args, *(word.value for word in call.keywords)]
    modes = [ast.literal_eval(argument) for argument in arguments if isinstance(argument, ast.Constant)]
    return name == "open" and any(isinstance(mode, str) and len(mode) < 4 and set(mode) & set("wax+") for mode in modes)


def test_only_saving_opens_files_for_writing() -> None:
    modules = {module.relative_to(PACKAGE).as_posix(): writes(module) for module in PACKAGE.rglob("*.py")}
    found = {module for module, calls in modules.items() if calls}
    assert found == OTHERS.keys() | {"storage/saving.py"}


def test_the_search_finds_what_saving_does() -> None:
    found = " ".join(writes(PACKAGE / "storage" / "saving.py"))
    assert "os.replace" in found
    assert "O_CREAT" in found
