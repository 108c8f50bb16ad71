"""The file of signatures of operators, as the installed onnx has them: ``python -m tests.model.operator_table``."""

import json
from typing import Any

import onnx
from onnx import defs

from onnxjson.model.messages import ATTRIBUTE_TYPES
from onnxjson.model.operators import PATH, default_value, newest_version


def table() -> bytes:
    """What the file has to be."""
    types: dict[tuple[str, ...], int] = {}
    operators: dict[str, dict[str, list[Any]]] = {}
    schemas = sorted(
        defs.get_all_schemas_with_history(), key=lambda each: (each.domain, each.name, -each.since_version)
    )
    for schema in schemas:
        constraints = {}
        for each in schema.type_constraints:
            constraints[each.type_param_str] = types.setdefault(tuple(sorted(each.allowed_type_strs)), len(types))
        row = [
            schema.since_version,
            schema.deprecated,
            [schema.min_input, schema.max_input, schema.min_output, schema.max_output],
            *[[_formal(each) for each in formals] for formals in (schema.inputs, schema.outputs)],
            dict(sorted(constraints.items())),
            {name: [_type(each), each.required] for name, each in sorted(schema.attributes.items())},
        ]
        defaults = {name: default_value(each.default_value) for name, each in sorted(schema.attributes.items())}
        if known := {name: value for name, value in defaults.items() if value is not None}:
            row.append(known)
        operators.setdefault(schema.domain, {}).setdefault(schema.name, []).append(row)
    newest = {domain: newest_version(domain) for domain in operators}
    lines = [f'{{"onnx": "{onnx.__version__}", "newest": {json.dumps(newest)},']
    lines += ['"types": [', ",\n".join(json.dumps(each, separators=(",", ":")) for each in types), "],"]
    lines += ['"operators": {']
    lines += [",\n".join(_domain(domain, names) for domain, names in operators.items()), "}}"]
    return ("\n".join(lines) + "\n").encode()


def _domain(domain: str, names: dict[str, list[Any]]) -> str:
    rows = [f"{json.dumps(name)}: {json.dumps(rows, separators=(',', ':'))}" for name, rows in names.items()]
    return f"{json.dumps(domain)}: {{\n" + ",\n".join(rows) + "}"


def _formal(formal: defs.OpSchema.FormalParameter) -> list[Any]:
    option = str(formal.option).rpartition(".")[2].lower()
    return [formal.name, option, formal.type_str, formal.is_homogeneous, formal.min_arity]


def _type(attribute: defs.OpSchema.Attribute) -> int:
    return ATTRIBUTE_TYPES[str(attribute.type).rpartition(".")[2]]


if __name__ == "__main__":
    PATH.write_bytes(table())
