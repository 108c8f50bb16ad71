"""The frozen attribute table is what the installed onnx says, for every attribute that it ever said one thing about.

Run as a program, it prints the table of the module and section 12 of the format:
``python tests/contracts/test_attribute_table.py``. The table belongs to onnxjson/1 and never changes: a newer onnx may
know more attributes, but none of these differently.
"""

import collections
import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from onnxjson.model.messages import ATTRIBUTE_TYPE_NAMES
from onnxjson.model.operators import attribute_types
from tests.schemas.documents import attribute_table

FORMAT = Path(__file__).parents[2] / "docs" / "format.md"


def types_in_onnx() -> dict[tuple[str, str], dict[str, set[int]]]:
    """Every type that any version of an operator gives an attribute, by operator and attribute."""
    import onnx.defs

    found: dict[tuple[str, str], dict[str, set[int]]] = collections.defaultdict(lambda: collections.defaultdict(set))
    for schema in onnx.defs.get_all_schemas_with_history():
        for name, attribute in schema.attributes.items():
            found[schema.domain, schema.name][name].add(attribute.type.value)  # type: ignore[attr-defined]
    return found


def settled_types() -> Mapping[tuple[str, str], Mapping[str, int]]:
    """The attributes that have one type in all versions, sorted."""
    settled = {
        operator: {name: next(iter(types)) for name, types in sorted(attributes.items()) if len(types) == 1}
        for operator, attributes in sorted(types_in_onnx().items())
    }
    return {operator: attributes for operator, attributes in settled.items() if attributes}


def as_text(table: Mapping[tuple[str, str], Mapping[str, int]]) -> str:
    """The table as the module has it: a line for each operator, attributes by type."""
    lines: list[str] = []
    last = ""
    for (domain, op_type), attributes in table.items():
        if domain != last:
            lines.append(f"[{domain}]")
            last = domain
        groups: dict[int, list[str]] = {}
        for name, number in attributes.items():
            groups.setdefault(number, []).append(name)
        texts = [f"{ATTRIBUTE_TYPE_NAMES[number]} {' '.join(names)}" for number, names in sorted(groups.items())]
        line = f"{op_type}: {'; '.join(texts)}"
        lines += textwrap.wrap(line, 120, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def as_markdown(table: Mapping[tuple[str, str], Mapping[str, int]]) -> str:
    """Section 12 of the format: one line an operator, the domains in turn."""
    lines: list[str] = []
    domain = None
    for (operator_domain, op_type), attributes in table.items():
        if operator_domain != domain:
            domain = operator_domain
            heading = f"Domain `{domain}`" if domain else 'The default domain (absent or `""`)'
            lines += ["", f"{heading}:", ""]
        pairs = ", ".join(f"{name} {ATTRIBUTE_TYPE_NAMES[number]}" for name, number in attributes.items())
        lines.append(f"- {op_type}: {pairs}")
    return "\n".join(lines[1:])


def test_the_table_holds_555_attributes() -> None:
    assert sum(map(len, attribute_table().values())) == 555


def test_onnx_knows_every_attribute_of_the_table_with_that_type() -> None:
    in_onnx = types_in_onnx()
    for operator, attributes in attribute_table().items():
        for name, number in attributes.items():
            assert in_onnx[operator][name] == {number}, (operator, name)


def test_the_table_is_the_one_that_onnx_1_23_gives() -> None:
    import onnx

    if re.match(r"1\.23\.", onnx.__version__):
        assert settled_types() == attribute_table()


def test_the_format_prints_the_same_table() -> None:
    section = FORMAT.read_text(encoding="utf-8").split("\n## 12. The attribute table\n")[1]
    assert as_markdown(attribute_table()) in section


def test_the_default_domain_is_empty_or_absent() -> None:
    assert attribute_types(None, "Conv") == attribute_types("", "Conv") != {}
    assert attribute_types("ai.onnx", "Conv") == attribute_types("", None) == {}


def test_operators_are_known_without_onnx() -> None:
    import subprocess

    check = "import sys, onnxjson.model.operators; assert 'onnx' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True, cwd=FORMAT.parents[1])


if __name__ == "__main__":
    print(as_text(settled_types()) + "\n")
    print(as_markdown(settled_types()))
