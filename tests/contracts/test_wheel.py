"""What is shipped."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    result = subprocess.run(
        [*command, "--wheel-dir", str(folder), str(ROOT)], capture_output=True, text=True, check=False, timeout=100
    )
    assert result.returncode == 0, result.stderr
    (wheel,) = folder.glob("onnxjson-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_top_level_of_the_wheel_is_exactly_the_two_packages(wheel_names: list[str]) -> None:
    top = {name.partition("/")[0] for name in wheel_names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"onnxjson", "onnxjson_tui"}


def test_wheel_has_every_module_and_the_type_markers(wheel_names: list[str]) -> None:
    sources = [(ROOT, path) for path in (ROOT / "onnxjson").rglob("*.py")]
    sources += [(ROOT / "tui", path) for path in (ROOT / "tui" / "onnxjson_tui").rglob("*.py")]
    wanted = {path.relative_to(base).as_posix() for base, path in sources}
    assert wanted <= set(wheel_names)
    assert {"onnxjson/py.typed", "onnxjson_tui/py.typed"} <= set(wheel_names)


def test_wheel_has_the_licence_and_the_command(wheel_names: list[str]) -> None:
    (licence,) = (name for name in wheel_names if name.endswith("/LICENSE"))
    assert licence.endswith(".dist-info/licenses/LICENSE")
    assert any(name.endswith(".dist-info/entry_points.txt") for name in wheel_names)
