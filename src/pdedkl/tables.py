"""Columns of numbers from CSV, Parquet and NPZ files, with errors that name the row and the column."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from .archives import ArchiveError, opened
from .columns import naming_hint, stored_names
from .parsing import shortened

KINDS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".npz": "npz"}


class TableError(ValueError):
    """A table that cannot be used as it is: which file, which row and column, and what to do."""


class MissingColumnError(TableError):
    """A table that has no column of the name asked for."""


@dataclass(frozen=True)
class Table:
    """Columns by name, and for each row the number it has in its file (a spreadsheet counts the header as row 1)."""

    path: Path
    columns: dict[str, np.ndarray]
    rows: np.ndarray

    def stacked(self, names: Sequence[str]) -> np.ndarray:
        return np.column_stack([self.columns[name] for name in names])

    def row(self, index: int) -> str:
        return f"{self.path}, row {self.rows[index]}"


def read_table(path: str | os.PathLike[str], names: Sequence[str]) -> Table:
    """The columns of these names, all of finite numbers. In NPZ files a two-dimensional array is several columns."""
    file = Path(path)
    kind = KINDS.get(file.suffix.lower())
    if kind is None:
        raise TableError(f"{file} is of no known kind: tables are {', '.join(KINDS)} files.")
    if not file.is_file():
        raise FileNotFoundError(f"There is no table {file}: check the path, which is relative to {Path.cwd()}.")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Columns go by name: got {name!r}.")
    read = {"csv": _read_csv, "parquet": _read_parquet, "npz": _read_npz}[kind]
    table = read(file, list(dict.fromkeys(names)))
    if len(table.rows) == 0:
        raise TableError(f"{file} has no rows of data.")
    for name, column in table.columns.items():
        if not np.all(np.isfinite(column)):
            index = int(np.argwhere(~np.isfinite(column))[0][0])
            _refuse(table, index, name, "is empty or not a finite number")
    return table


def check_inside(table: Table, points: np.ndarray, domain: Any) -> None:
    """Every point in the domain; the first that is not is named by its row."""
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
    """A column of standard deviations."""
    noise = table.columns[name]
    if noise.ndim != 1 or np.any(noise < 0):
        index = int(np.flatnonzero(noise < 0)[0]) if noise.ndim == 1 else 0
        _refuse(table, index, name, f"is {noise[index]}, and a standard deviation is not negative")


def _read_csv(file: Path, names: list[str]) -> Table:
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            first = stream.readline()
            delimiter = max(",;\t", key=first.count)
            stream.seek(0)
            records = list(csv.reader(stream, delimiter=delimiter))
    except UnicodeDecodeError as error:
        raise TableError(f"{file} is no text in UTF-8 ({error.reason}): save it as CSV in UTF-8.") from None
    except csv.Error as error:
        raise TableError(f"{file} is no CSV: {error}.") from None
    if not records or not any(cell.strip() for cell in records[0]):
        raise TableError(f"{file} needs the names of its columns in the first row, which is empty.")
    header = [cell.strip() for cell in records[0]]
    stored = _check_columns(file, names, header)
    places = [header.index(name) for name in stored]
    numbers: list[list[float]] = []
    rows: list[int] = []
    for row, record in enumerate(records[1:], start=2):
        if not any(cell.strip() for cell in record):
            continue
        if len(record) != len(header):
            raise TableError(f"{file}, row {row}: {len(record)} cells, and the header has {len(header)}.")
        numbers.append([_number(file, row, name, record[k]) for name, k in zip(stored, places)])
        rows.append(row)
    columns = np.asarray(numbers, dtype=float).reshape(len(rows), len(names))
    return Table(file, {name: columns[:, k] for k, name in enumerate(names)}, np.asarray(rows, dtype=int))


def _number(file: Path, row: int, name: str, cell: str) -> float:
    text = cell.strip()
    place = f"{file}, row {row}, column {name!r}"
    if not text:
        raise TableError(f"{place}: the cell is empty. Fill it or remove the row.")
    try:
        value = float(text.replace("_", "?"))
    except ValueError:
        comma = " Write decimals with a point." if "," in text else ""
        raise TableError(f"{place}: {shortened(text)!r} is no number.{comma}") from None
    if not np.isfinite(value):
        raise TableError(f"{place}: {shortened(text)!r} is not finite. Repair it or remove the row.")
    return value


def _read_parquet(file: Path, names: list[str]) -> Table:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(f"Reading {file} needs pyarrow: pip install 'pdedkl[parquet]', or save it as CSV.") from None
    try:
        present = parquet.read_schema(file).names
        stored = _check_columns(file, names, present)
        table = parquet.read_table(file, columns=stored)
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        why = (str(error).splitlines() or ["it is damaged"])[0]
        raise TableError(f"{file} is no Parquet file that can be read: {shortened(why)}.") from None
    rows = np.arange(1, table.num_rows + 1)
    columns: dict[str, np.ndarray] = {}
    for asked, name in zip(names, stored):
        column = table.column(name)
        if not (pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type)):
            raise TableError(f"{file}, column {name!r} holds {column.type} and not numbers.")
        if column.null_count:
            empty = int(np.flatnonzero(np.asarray(column.is_null()))[0])
            raise TableError(f"{file}, row {empty + 1}, column {name!r}: the cell is empty. Fill it or remove the row.")
        columns[asked] = np.asarray(column.to_numpy(), dtype=float)
    return Table(file, columns, rows)


def _read_npz(file: Path, names: list[str]) -> Table:
    try:
        with opened(file) as archive:
            stored = _check_columns(file, names, archive.names)
            arrays = {asked: archive.array(name) for asked, name in zip(names, stored)}
    except ArchiveError as error:
        raise TableError(f"{error} Save it again, with numpy.savez.") from None
    # An array without columns may claim any number of rows.
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
    return Table(file, columns, np.arange(1, count + 1))


def _check_columns(file: Path, names: list[str], present: Sequence[str]) -> list[str]:
    """The columns of the file that hold what is asked for; each has to be there, once."""
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
    raise TableError(f"{table.row(index)}, column {name!r}: the value {what}. Repair it or remove the row.")


def _names(domain: Any) -> str:
    labels = list(domain.coordinate_names)
    return ", ".join(labels if len(labels) <= 8 else [*labels[:7], "…"])
