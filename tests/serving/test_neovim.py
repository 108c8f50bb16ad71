"""The configuration of docs/editors.md in a real Neovim, without a screen."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import onnxjson
from tests.serving.test_language_server import text_of

PAGE = Path(__file__).parents[2] / "docs/editors.md"

SESSION = """
local function wait(what, done) assert(vim.wait(60000, done, 100), what) end
wait("diagnostics", function() return #vim.diagnostic.get(0) > 0 end)
io.stdout:write(vim.diagnostic.get(0)[1].code .. "\\n")
vim.cmd("%s/SoftMax/Softmax/")
wait("no diagnostics", function() return #vim.diagnostic.get(0) == 0 end)
vim.fn.search("Softmax")
local answers = vim.lsp.buf_request_sync(0, "textDocument/hover", vim.lsp.util.make_position_params(0, "utf-16"), 20000)
for _, answer in pairs(answers) do io.stdout:write(answer.result.contents.value:match("axis") .. "\\n") end
if vim.lsp.buf.format then vim.lsp.buf.format({ timeout_ms = 20000 }) else vim.lsp.buf.formatting_sync({}, 20000) end
vim.cmd("silent write | qall!")
"""


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")
def test_neovim_shows_findings_describes_and_formats(tmp_path: Path) -> None:
    good = text_of(tmp_path)
    path = tmp_path / "m.onnx.json"
    path.write_text(good.replace('"Softmax"', '"SoftMax"').replace('"axis": -1', '"axis":   -1'))
    version = subprocess.run(["nvim", "--version"], capture_output=True, text=True, check=True).stdout
    is_new = tuple(map(int, re.findall(r"\d+", version)[:2])) >= (0, 11)
    blocks = re.findall(r"```lua\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "init.lua").write_text(blocks[0 if is_new else 1])
    (tmp_path / "session.lua").write_text(SESSION)
    surroundings = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    words = ["nvim", "--headless", "-n", "-i", "NONE", "-u", "init.lua", path.name, "-c", "luafile session.lua"]
    done = subprocess.run(
        words, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False, timeout=150
    )
    assert done.stdout.split() == ["unknown-operator", "axis"], done
    assert path.read_text() == good
    assert not onnxjson.check(path)
