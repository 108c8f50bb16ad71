"""``python -m tests.codecs.language_service``: the schema in the JSON language service of Visual Studio Code.

Installs vscode-json-languageservice from npm into a temporary folder, prints what an editor shows at some places of a
text, and exits with 1 if that is not what it should be. Needs Node.js, npm and the network.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def main() -> int:
    """Print and compare."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "install", "--silent", "vscode-json-languageservice"], cwd=folder, check=True)
        script, schema = Path(__file__).with_suffix(".mjs"), ROOT / "schemas" / "document-1.schema.json"
        printed = subprocess.run(["node", script, schema], cwd=folder, check=True, capture_output=True).stdout
    data = json.loads(printed)
    for name, shown in data.items():
        print(name, {key: value[:6] if isinstance(value, list) else value for key, value in shown.items()})
    pads = ["auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"]
    checks = {
        "an empty block of Conv offers its attributes": data["attributes"]["words"] == pads,
        "op_type offers operators": '"Conv"' in data["operators"]["words"],
        "an operator has its documentation": "convolution operator" in data["operators"]["hover"],
        "an attribute has its documentation": "Padding for the beginning" in data["attribute"]["hover"],
        "auto_pad offers its values": '"SAME_UPPER"' in data["choices"]["words"],
        "a wrong type is explained": "such as float32[1,N,64]" in "".join(data["type"]["problems"]),
        "a wrong value is found": bool(data["number"]["problems"]),
    }
    for what, holds in checks.items():
        print("ok" if holds else "NO", what)
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
