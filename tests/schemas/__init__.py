"""Write the schemas in schemas/, which ``onnxjson schema`` prints: ``python -m tests.schemas``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.schemas.declared import policy_schema, recipe_schema, rewrite_schema
from tests.schemas.documents import document_schema
from tests.schemas.patches import patch_schema
from tests.schemas.reports import diff_schema, diffs_schema, trace_schema

FOLDER: Final = Path(__file__).parent.parent.parent / "schemas"

BUILDERS: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    "document": document_schema, "diff": diff_schema, "diffs": diffs_schema, "patch": patch_schema,
    "policy": policy_schema, "recipe": recipe_schema, "rewrite": rewrite_schema, "trace": trace_schema,
}  # fmt: skip


def file_of(kind: str) -> Path:
    """The file of the schema of a kind of document."""
    return FOLDER / f"{kind}-1.schema.json"


def text_of(kind: str) -> str:
    """The text that the file should have."""
    return json.dumps(BUILDERS[kind](), indent=1) + "\n"
