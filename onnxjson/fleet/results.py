"""Results of a fleet: one row per model in a file of JSON lines, written as they come, so that a run can be resumed."""

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.errors import DecodeError, MissingInputError, OutputError
from onnxjson.model.system import try_lock
from onnxjson.storage.saving import save_file, system_errors

Status = Literal["ok", "findings", "failed"]

_PARQUET: Final = ".parquet"
ROWS: Final = (".jsonl", _PARQUET)
"""The endings of a file of rows."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a command for one model."""

    model: str
    command: str
    """The command with its options."""
    status: Status
    """"ok"; "findings" if the command reports problems or differences; "failed" if it could not do its work."""
    exit_code: int | None = None
    """That of the command; None if it did not end by itself."""
    error: str | None = None
    """The reason of a failure, in a sentence."""
    seconds: float = 0.0
    bytes: int | None = None
    """Size of the model."""
    output: str | None = None
    """The file that was written."""
    written_bytes: int | None = None
    """Size of that file."""
    report: Any = None
    """What the command prints with ``--json``."""


class Results:
    """The rows of one command in a file, JSON lines or Parquet; rows that are in the file already are kept.

    Parquet is written at the end; until then, and when a run goes on, the rows are in JSON lines next to it.
    """

    def __init__(self, path: Path, command: str, *, retry_failed: bool = False) -> None:
        """Open the file, or create it; the first line that is cut off, and all after it, are dropped.

        Raises:
            OutputError: it has rows of another command, or cannot be written.
            DecodeError: it is something else.
        """
        self.path = path
        self._lines = path.with_name(path.name + ".jsonl") if path.suffix == _PARQUET else path
        if path.suffix == _PARQUET and path.exists() and not self._lines.exists():
            data = b"".join(msgspec.json.encode(row) + b"\n" for row in self._of(command, _rows_of(path)))
            save_file(self._lines, lambda sink: sink.write(data), replace=False)
        if self._lines.exists() and not self._lines.is_file():
            raise OutputError(f"{visible(str(self._lines), None)} is not a regular file")
        with system_errors(f"{visible(str(self._lines), None)} cannot be written"):
            self._file = open(self._lines, "ab+", buffering=0)  # noqa: SIM115 - closed by `close`
        try:
            try:
                try_lock(self._file.fileno())
            except OSError as error:
                raise OutputError(f"{visible(str(self._lines), None)} is being written by another run") from error
            rows = list(self._kept(command))
            if retry_failed and any(row.status == "failed" for row in rows):
                rows = [row for row in rows if row.status != "failed"]
                self._file.truncate(0)
                self.add(rows)
        except BaseException:
            self.close()
            raise
        self.done: frozenset[str] = frozenset(row.model for row in rows)

    def _kept(self, command: str) -> Iterator[Row]:
        self._file.seek(0)
        end = 0
        for line in self._file.read().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            try:
                row = msgspec.json.decode(line, type=Row)
            except msgspec.DecodeError as error:
                name = visible(str(self._lines), None)
                raise DecodeError(f"{name} is not a file of results: {error}; name another file for -o") from error
            end += len(line)
            yield from self._of(command, [row])
        self._file.truncate(end)

    def _of(self, command: str, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            if row.command != command:
                name = visible(str(self.path), None)
                text = f"{name} has results of `{visible(row.command, 200)}`; name another file for -o"
                raise OutputError(f"{text}, or remove it")
            yield row

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows; they are in the file when this returns."""
        data = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        with system_errors(f"{visible(str(self._lines), None)} cannot be written"):
            end = self._file.seek(0, os.SEEK_END)
            try:
                if self._file.write(data) != len(data):
                    raise OSError(28, "no space left on the device")
            except OSError:
                with suppress(OSError):
                    self._file.truncate(end)
                raise

    def rows(self) -> Iterator[Row]:
        """All rows, in the order in which they were written."""
        with self._lines.open("rb") as file:
            for line in file:
                yield msgspec.json.decode(line, type=Row)

    def close(self) -> None:
        """Close the file; nothing can be added afterwards."""
        self._file.close()

    def finish(self) -> None:
        """Write the Parquet file, if that is wanted; a report in it is a text of JSON."""
        self.close()
        if self.path.suffix == _PARQUET:
            tables = _pyarrow()
            columns: dict[str, list[Any]] = {name: [] for name in Row.__struct_fields__}
            for row in self.rows():
                for name, column in columns.items():
                    value = getattr(row, name)
                    column.append(json.dumps(value) if name == "report" and value is not None else value)
            data = io.BytesIO()
            tables.write_table(_table(columns), data)
            save_file(self.path, lambda sink: sink.write(data.getvalue()))
            self._lines.unlink()


def check_form(path: Path) -> None:
    """Raise unless rows can be written to a file of this name."""
    if path.suffix not in ROWS:
        raise OutputError(f"{visible(str(path), None)}: results are written to a file .jsonl or .parquet")
    if path.suffix == _PARQUET:
        _pyarrow()


def _pyarrow() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingInputError("Parquet needs the package pyarrow; pip install pyarrow") from error
    return parquet


def _rows_of(path: Path) -> list[Row]:
    """The rows in a Parquet file."""
    try:
        columns = _pyarrow().read_table(path).to_pylist()
        return [msgspec.convert(row | {"report": row["report"] and json.loads(row["report"])}, Row) for row in columns]
    except (OSError, ValueError, LookupError) as error:
        raise DecodeError(f"{visible(str(path), None)} is not a file of results: {visible(str(error), 200)}") from error


def _table(columns: Mapping[str, Sequence[Any]]) -> Any:
    import pyarrow

    kinds = {"exit_code": pyarrow.int64(), "seconds": pyarrow.float64(), "bytes": pyarrow.int64()}
    kinds["written_bytes"] = pyarrow.int64()
    fields = [(name, kinds.get(name, pyarrow.string())) for name in columns]
    return pyarrow.table(columns, schema=pyarrow.schema(fields))
