"""Columns of numbers from CSV, Parquet and NPZ files, with errors that name the row and the column."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from .archives import ArchiveError, opened
from .columns import naming_hint, stored_names
from .parsing import shortened

KINDS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".npz": "npz"}
LONGEST_LINE = 2**24
DELIMITERS = ",;\t"


class TableError(ValueError):
    """A table that cannot be used. The message names the file, the row and column, and what to do."""


class MissingColumnError(TableError):
    """A table has no column with the requested name."""


@dataclass(frozen=True)
class Table:
    """Columns by name, and the number of each row in its file (a spreadsheet counts the header as row 1)."""

    path: Path
    columns: dict[str, np.ndarray]
    rows: np.ndarray

    def stacked(self, names: Sequence[str]) -> np.ndarray:
        return np.column_stack([self.columns[name] for name in names])

    def row(self, index: int) -> str:
        return f"{self.path}, row {self.rows[index]}"


def read_table(path: str | os.PathLike[str], names: Sequence[str]) -> Table:
    """The columns with these names, all of finite numbers. In NPZ files a two-dimensional array is several columns."""
    table = next(_tables(path, names, None))
    if len(table.rows) == 0:
        raise TableError(f"{table.path} has no rows of data.")
    return table


def blocks(path: str | os.PathLike[str], names: Sequence[str], size: int) -> Iterator[np.ndarray]:
    """The same columns side by side, at most `size` rows at a time: CSV and Parquet files may be larger than memory."""
    for table in _tables(path, names, size):
        if len(table.rows):
            yield table.stacked(names)


def _tables(path: str | os.PathLike[str], names: Sequence[str], size: int | None) -> Iterator[Table]:
    """A table in parts of `size` rows, or whole; at least one part, which may be empty."""
    file = Path(path)
    kind = KINDS.get(file.suffix.lower(), None if file.suffix else "csv")
    if kind is None:
        raise TableError(f"{file} has an unknown ending: tables are {', '.join(KINDS)} files.")
    if not file.exists() or file.is_dir():
        raise FileNotFoundError(f"There is no table {file}: check the path, which is relative to {Path.cwd()}.")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Columns are given by name: got {name!r}.")
    read = {"csv": _read_csv, "parquet": _read_parquet, "npz": _read_npz}[kind]
    for table in read(file, list(dict.fromkeys(names)), size):
        _check_finite(table)
        yield table


def _check_finite(table: Table) -> None:
    for name, column in table.columns.items():
        if not np.all(np.isfinite(column)):
            index = int(np.argwhere(~np.isfinite(column))[0][0])
            _refuse(table, index, name, "is empty or not a finite number")


def check_inside(table: Table, points: np.ndarray, domain: Any) -> None:
    """Check that every point is in the domain. The error names the row of the first point outside."""
    if points.shape[1] != domain.dim:
        raise TableError(
            f"`coordinates` gives {points.shape[1]} columns of {table.path} and the domain has {domain.dim} "
            f"coordinates: name one column for each, in the order {_names(domain)}."
        )
    if len(outside := np.flatnonzero(~np.asarray(domain.contains(points)))):
        index = int(outside[0])
        raise TableError(
            f"{table.row(index)}: the point {points[index].tolist()} is outside the domain {domain} "
            f"({len(outside)} of {len(points)} rows are): check the columns and their units, or enlarge the domain."
        )


def check_noise(table: Table, name: str) -> None:
    """Check that a column holds standard deviations."""
    noise = table.columns[name]
    if noise.ndim != 1 or np.any(noise < 0):
        index = int(np.flatnonzero(noise < 0)[0]) if noise.ndim == 1 else 0
        _refuse(table, index, name, f"is {noise[index]}, and a standard deviation is not negative")


def _read_csv(file: Path, names: list[str], size: int | None) -> Iterator[Table]:
    records = _records(file)
    header = next(([cell.strip() for cell in record] for _, record in records), None)
    if header is None:
        raise TableError(f"{file} needs the names of its columns in the first row, and is empty.")
    stored = _check_columns(file, names, header)
    places = [header.index(name) for name in stored]
    first = True
    while (part := list(islice(records, size))) or first:
        first = False
        for row, record in part:
            if len(record) != len(header):
                raise TableError(f"{file}, row {row}: {len(record)} cells, and the header has {len(header)}.")
        cells = [[_number(file, row, name, record[k]) for name, k in zip(stored, places)] for row, record in part]
        columns = np.asarray(cells, dtype=float).reshape(len(part), len(names))
        rows = np.asarray([row for row, _ in part], dtype=int)
        yield Table(file, {name: columns[:, k] for k, name in enumerate(names)}, rows)


def _records(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that are not blank, with their numbers. The first row determines the delimiter."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as text:
            stream = _lines(file, text)
            blank = []
            for first in stream:
                blank.append(first)
                if first.strip():
                    break
            plain = re.sub(r'"[^"]*"', "", blank[-1] if blank else "")  # names in quotes may contain delimiters
            reader = csv.reader(chain(blank, stream), delimiter=max(DELIMITERS, key=plain.count))
            for row, record in enumerate(reader, start=1):
                if any(cell.strip() for cell in record):
                    yield row, record
    except UnicodeDecodeError as error:
        raise TableError(f"{file} is not text in UTF-8 ({error.reason}): save it as CSV in UTF-8.") from None
    except csv.Error as error:
        raise TableError(f"{file} is not valid CSV: {error}.") from None


def _lines(file: Path, stream: TextIO) -> Iterator[str]:
    """The lines of a file. Too long a line is refused: a file without line ends would fill the memory."""
    while line := stream.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            raise TableError(f"{file} is not valid CSV: it has a line of more than {LONGEST_LINE} characters.")
        yield line


def _number(file: Path, row: int, name: str, cell: str) -> float:
    text = cell.strip()
    place = f"{file}, row {row}, column {name!r}"
    if not text:
        raise TableError(f"{place}: the cell is empty. Fill it or remove the row.")
    try:
        value = float(text.replace("_", "?"))
    except ValueError:
        comma = " Write decimals with a point." if "," in text else ""
        raise TableError(f"{place}: {shortened(text)!r} is not a number.{comma}") from None
    if not np.isfinite(value):
        raise TableError(f"{place}: {shortened(text)!r} is not finite. Correct it or remove the row.")
    return value


def _read_parquet(file: Path, names: list[str], size: int | None) -> Iterator[Table]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(f"Reading {file} needs pyarrow: pip install 'pdedkl[parquet]', or save it as CSV.") from None
    try:
        with parquet.ParquetFile(file) as source:
            stored = dict(zip(names, _check_columns(file, names, source.schema_arrow.names)))
            done = 0
            for part in source.iter_batches(size or max(source.metadata.num_rows, 1), columns=list(stored.values())):
                yield _parquet_part(file, part, stored, done)
                done += part.num_rows
            if done == 0:
                yield Table(file, {name: np.zeros(0) for name in names}, np.zeros(0, dtype=int))
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        why = (str(error).splitlines() or ["it is damaged"])[0]
        raise TableError(f"{file} is not a readable Parquet file: {shortened(why)}.") from None


def _parquet_part(file: Path, part: Any, stored: dict[str, str], done: int) -> Table:
    """Some rows of the file, after `done` earlier ones. `stored` maps the requested names to columns of the file."""
    import pyarrow

    columns: dict[str, np.ndarray] = {}
    for asked, name in stored.items():
        column = part.column(name)
        if not (pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type)):
            raise TableError(f"{file}, column {name!r} holds {column.type} and not numbers.")
        if column.null_count:
            row = done + int(np.flatnonzero(np.asarray(column.is_null()))[0]) + 1
            raise TableError(f"{file}, row {row}, column {name!r}: the cell is empty. Fill it or remove the row.")
        columns[asked] = np.asarray(column.to_numpy(zero_copy_only=False), dtype=float)
    return Table(file, columns, np.arange(done + 1, done + part.num_rows + 1))


def _read_npz(file: Path, names: list[str], size: int | None) -> Iterator[Table]:
    """The whole table as one part, since an archive is unpacked at once. `size` is ignored."""
    try:
        with opened(file) as archive:
            stored = _check_columns(file, names, archive.names)
            arrays = {asked: archive.array(name) for asked, name in zip(names, stored)}
    except ArchiveError as error:
        raise TableError(f"{error} Save it again, with numpy.savez.") from None
    # An empty array may claim any number of rows.
    lengths = {name: len(array) if array.ndim and array.size else 0 for name, array in arrays.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
            raise TableError(
                f"{file}: the array {name!r} needs one or two axes of numbers, and has shape {array.shape} "
                f"of {array.dtype}."
            )
    if len(set(lengths.values())) > 1:
        raise TableError(f"{file}: the arrays need one length, and have {lengths}.")
    count = next(iter(lengths.values()), 0)
    columns = {name: array.astype(float) for name, array in arrays.items()}
    yield Table(file, columns, np.arange(1, count + 1))


def _check_columns(file: Path, names: list[str], present: Sequence[str]) -> list[str]:
    """The columns of the file for the requested names. Each has to exist exactly once."""
    stored = stored_names(names, present)
    for name in stored:
        if name not in present:
            close = get_close_matches(name.lower(), [other.lower() for other in present], n=1)
            hint = naming_hint(name, present) or next(
                (f" Did you mean {other!r}?" for other in present if close and other.lower() == close[0]), ""
            )
            there = shortened(", ".join(map(repr, present)), 600)
            raise MissingColumnError(f"{file} has no column {name!r}: it has {there}.{hint}")
        if list(present).count(name) > 1:
            raise TableError(f"{file} has the column {name!r} more than once: rename them.")
    return stored


def _refuse(table: Table, index: int, name: str, what: str) -> None:
    raise TableError(f"{table.row(index)}, column {name!r}: the value {what}. Correct it or remove the row.")


def _names(domain: Any) -> str:
    labels = list(domain.coordinate_names)
    return ", ".join(labels if len(labels) <= 8 else [*labels[:7], "…"])
