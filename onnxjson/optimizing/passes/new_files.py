"""Additional files that passes produce, such as the weights of an adapter: written after all passes are done."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from onnxjson.model.display import visible
from onnxjson.model.errors import EditError
from onnxjson.storage.external_files import removed_on_failure
from onnxjson.storage.saving import Sink, save_file


class NewFile(NamedTuple):
    """A file to write; its path must not exist yet."""

    path: Path
    write: Callable[[Sink], None]


def require_new(path: Path) -> None:
    """Raise unless a path does not exist.

    Raises:
        EditError: it exists.
    """
    if os.path.lexists(path):
        raise EditError(f"{visible(str(path), None)} exists; name another file")


@contextmanager
def files_written(files: Iterable[NewFile], model_file: Path | None = None) -> Iterator[None]:
    """Write files on entry; remove them again if one cannot be written or the body fails.

    Args:
        files: files to write.
        model_file: file to which the body saves the model; None if it is not a file.

    Raises:
        OutputError, AccessDeniedError, FileError: a file cannot be written.
    """
    with ExitStack() as stack:
        for path, write in files:
            save_file(path, write, replace=False)
            stack.enter_context(removed_on_failure(path, path if model_file is None else model_file))
        yield
