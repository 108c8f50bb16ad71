"""Files that passes make beside a model, such as the weights of an adapter: written once all passes are done."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from onnxjson.display import visible
from onnxjson.errors import EditError
from onnxjson.external_files import removed_on_failure
from onnxjson.saving import save_file
from onnxjson.sinks import Sink


class NewFile(NamedTuple):
    """A file that is to be written where nothing stands yet."""

    path: Path
    write: Callable[[Sink], None]


def require_new(path: Path) -> None:
    """Do nothing if nothing stands at a path.

    Raises:
        EditError: something does.
    """
    if os.path.lexists(path):
        raise EditError(f"{visible(str(path), None)} exists; name another file")


@contextmanager
def files_written(files: Iterable[NewFile], model_file: Path | None = None) -> Iterator[None]:
    """Within the block they stand; they go again if not all of them can be written, or the body fails.

    Args:
        files: what to write.
        model_file: where the body saves the model; None where that is no file.

    Raises:
        OutputError, AccessDeniedError, FileError: one cannot be written.
    """
    with ExitStack() as stack:
        for path, write in files:
            save_file(path, write, replace=False)
            stack.enter_context(removed_on_failure(path, path if model_file is None else model_file))
        yield
