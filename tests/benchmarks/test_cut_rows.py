"""The measure of cut rows counts what is cut."""

from pathlib import Path

import pytest

from tests.benchmarks import cut_rows
from tests.editing.graphs import model_of
from tests.tui.sessions import saved


def test_long_names_are_cut_on_a_small_terminal_and_not_on_a_large_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a" * 100
    saved(tmp_path / "m.onnx", model_of(f"g (float[2] x) => (float[2] y) {{ {name} = Relu(x)\n y = Neg({name}) }}"))
    assert cut_rows.main(["--models", str(tmp_path)]) == 0
    lines = [line.split("|")[1:4] for line in capsys.readouterr().out.splitlines() if "%" in line]
    shares = {line[0].strip(): line[1].strip() for line in lines}
    assert shares["80x24"] == "50.0 % of 2"
    assert shares["160x45"] in ("0.0 % of 2", "50.0 % of 2")
