"""Observations from tables: three formats give the same, and what is wrong with a table is said by row and column."""

from __future__ import annotations

import os
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import pdedkl as pk
from pdedkl.columns import stored_names
from pdedkl.runs.inputs import measurements
from pdedkl.tables import TableError, read_table

DOMAIN = pk.Domain(x=(0, 1), t=(0, 2))
X, T = DOMAIN.coordinates()
COLUMNS = {
    "t": [0.5, 1.0, 2.0],
    "x": [0.0, 0.25, 1.0],
    "temperature": [20.5, -3e-2, 7.0],
    "sigma": [0.1, 0.0, 0.3],
}
TEXT = "t,x,temperature,sigma,note\n0.5,0,20.5,0.1,a\n1.0, 0.25 ,-3e-2,0,b\n2,1,7,0.3,\n"


def write(folder, kind):
    path = folder / f"sensors.{kind}"
    if kind == "csv":
        path.write_text(TEXT)
    elif kind == "parquet":
        parquet.write_table(pa.table(COLUMNS), path)
    else:
        np.savez(path, **{name: np.asarray(column) for name, column in COLUMNS.items()})
    return path


def read(path, **more):
    arguments = {"coordinates": ["x", "t"], "value": "temperature", "domain": DOMAIN} | more
    return pk.Observation.from_table(path, **arguments)


def from_text(folder, text, name="table.csv", **more):
    path = folder / name
    path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
    return read(path, **more)


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_every_format_gives_the_columns_in_the_order_asked_for(tmp_path, kind):
    found = read(write(tmp_path, kind), noise="sigma", operator=pk.D(T), name="flux")
    np.testing.assert_array_equal(found.points, np.column_stack([COLUMNS["x"], COLUMNS["t"]]))
    np.testing.assert_array_equal(found.values, COLUMNS["temperature"])
    np.testing.assert_array_equal(found.noise, COLUMNS["sigma"])
    assert str(found.operator) == "∂/∂t" and found.name == "flux"


def test_noise_is_a_column_a_number_or_a_word(tmp_path):
    path = write(tmp_path, "csv")
    assert read(path).noise == pk.Learned()
    assert float(read(path, noise=0.3).noise) == 0.3
    assert float(read(path, noise="exact").noise) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + TEXT,
        TEXT.replace(",", ";"),
        TEXT.replace(",", "\t"),
        TEXT.replace("\n", "\r\n"),
        '"t","x","temperature",sigma,note\n\n"0.5",0,20.5,0.1,"two\nlines, one cell"\n1,.25,-3e-2,0,b\n2,1,7,.3,c\n',
    ],
    ids=["byte order mark", "semicolons", "tabs", "windows", "quoted"],
)
def test_what_spreadsheets_write_is_read(tmp_path, text):
    np.testing.assert_array_equal(from_text(tmp_path, text).values, COLUMNS["temperature"])


def test_an_array_of_points_in_an_npz_file_is_all_coordinates(tmp_path):
    points = np.random.default_rng(0).uniform(size=(4, 2))
    np.savez(tmp_path / "a.npz", points=points, u=points.sum(axis=1))
    found = read(tmp_path / "a.npz", coordinates="points", value="u")
    np.testing.assert_array_equal(found.points, points)


HEAD = "x,t,temperature,sigma\n"


@pytest.mark.parametrize(
    "text, more, message",
    [
        (TEXT, {"value": "temprature"}, r"no column 'temprature': it has 't', 'x'.* Did you mean 'temperature'\?"),
        (TEXT, {"noise": "Sigma"}, r"no column 'Sigma'.* Did you mean 'sigma'\?"),
        (HEAD + "0,1,2,0\n\n0.5,1,warm,0\n", {}, r"row 4, column 'temperature': 'warm' is not a number"),
        (HEAD.replace(",", ";") + "0;1;2;0\n0;1;2,5;0\n", {}, r"row 3, .*'2,5' is not a number. Write decimals with"),
        (HEAD + "0,1,2,0\n0,,2,0\n", {}, r"row 3, column 't': the cell is empty"),
        (HEAD + "0,1,nan,0\n", {}, r"row 2, column 'temperature': 'nan' is not finite"),
        (HEAD + "0,1,1_000,0\n", {}, r"'1_000' is not a number"),
        (HEAD + "0,1,2,0\n0,1\n", {}, r"row 3: 2 cells, and the header has 4"),
        (HEAD + "0,1,2,0\n1.5,1,2,0\n", {}, r"row 3: the point \[1.5, 1.0\] is outside the domain .*1 of 2 rows"),
        (HEAD + "0,1,2,0.1\n0,1,2,-0.1\n", {"noise": "sigma"}, r"row 3, column 'sigma': .*-0.1.* not negative"),
        (HEAD, {}, r"has no rows"),
        ("", {}, r"names of its columns in the first row"),
        ("x,t,t,temperature\n0,1,1,2\n", {}, r"column 't' more than once"),
        (HEAD + "0,1,2,0\n", {"coordinates": ["x"]}, r"1 columns .* the domain has 2 coordinates: .* order x, t"),
        (b"\xff\xfe\x00x", {}, r"not text in UTF-8"),
    ],
)
def test_a_bad_table_is_refused_with_its_row_and_column(tmp_path, text, more, message):
    with pytest.raises(ValueError, match=message):
        from_text(tmp_path, text, **more)


def test_a_missing_file_and_an_unknown_kind(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no table .*nothing\.csv"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(ValueError, match=r"tables are \.csv"):
        from_text(tmp_path, "x", name="a.xlsx")


@pytest.mark.parametrize("name", ["a.npz", "a.parquet"])
def test_a_damaged_file_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=rf"{name} is not a readable (NPZ|Parquet)"):
        from_text(tmp_path, b"not this", name=name)


def test_cells_that_are_no_numbers_in_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table(COLUMNS | {"x": [0.0, None, 1.0]}), path)
    with pytest.raises(ValueError, match=r"row 2, column 'x': the cell is empty"):
        read(path)
    parquet.write_table(pa.table(COLUMNS | {"x": ["0", "1", "2"]}), path)
    with pytest.raises(ValueError, match=r"column 'x' holds string and not numbers"):
        read(path)


def test_arrays_of_other_lengths_in_npz(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(3), t=np.zeros(3), temperature=np.zeros(4))
    with pytest.raises(ValueError, match=r"one length, and have .*'temperature': 4"):
        read(tmp_path / "a.npz")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path, "parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'pdedkl\[parquet\]'"):
        read(path)


# ── names of columns ──────────────────────────────────────────────────────────────────────────────────────────────

SPACE = pk.Domain(x=[(0, 1)] * 2, t=(0, 1))
NEW, OLD = {"x[0]": [0.1, 0.2], "x[1]": [0.3, 0.4], "t": [0.5, 0.6], "u": [1.0, 2.0]}, ["x1", "x2", "t", "u"]


def table_of(folder, columns, kind="csv"):
    path = folder / f"table.{kind}"
    if kind == "csv":
        path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values()))]))
    elif kind == "parquet":
        parquet.write_table(pa.table(columns), path)
    else:
        np.savez(path, **{name: np.asarray(column) for name, column in columns.items()})
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
@pytest.mark.parametrize("older", [False, True])
def test_columns_are_called_what_coordinates_are_called_in_python(tmp_path, kind, older):
    columns = dict(zip(OLD, NEW.values())) if older else NEW
    (found,) = measurements(table_of(tmp_path, columns, kind), SPACE)
    np.testing.assert_array_equal(found.points, [[0.1, 0.3, 0.5], [0.2, 0.4, 0.6]])
    np.testing.assert_array_equal(found.values, [1.0, 2.0])


@pytest.mark.parametrize(
    "names, words",
    [
        (["x[0]", "x2", "t", "u"], r"no column 'x\[1\]'.*like coordinates in Python.*Rename x\[0\], x2"),
        (["x1", "x", "t", "u"], r"no column 'x\[0\]'.*Rename x1\."),
        (["x0", "x1", "t", "u"], r"no column 'x\[0\]'.*Rename x0, x1\."),
        (["x_1", "x_2", "t", "u"], r"no column 'x\[0\]'.*Rename x_1, x_2\."),
        (["y", "z", "t", "u"], r"no column 'x\[0\]'.*like coordinates in Python, x\[0\], x\[1\] and so on\.$"),
    ],
)
def test_other_names_are_refused_with_the_right_ones(tmp_path, names, words):
    with pytest.raises(ValueError, match=words):
        measurements(table_of(tmp_path, dict(zip(names, NEW.values()))), SPACE)


def test_older_names_are_read_only_where_nothing_else_can_be_meant():
    asked = ["x[0]", "x[1]", "t"]
    assert stored_names(asked, ["t", "x2", "x1"]) == ["x1", "x2", "t"]
    for present in (["x0", "x1", "x2"], ["x1", "x2", "x3"], ["x1", "x2", "x[0]"], ["x1", "x2", "x[7]"], ["x1"]):
        assert stored_names(asked, [*present, "t"]) == asked
    assert stored_names(["x[1]"], ["x1", "x2"]) == ["x[1]"]
    assert stored_names(["x[0]", "x1"], ["x1"]) == ["x[0]", "x1"]


@pytest.mark.parametrize("ending", ["csv", "npz", "parquet"])
def test_a_file_of_forty_gigabytes_of_nothing_is_not_read(ending, tmp_path):
    path = tmp_path / f"sparse.{ending}"
    path.touch()
    os.truncate(path, 40 * 2**30)
    with pytest.raises(TableError, match=r"sparse\."):
        read_table(path, ["u"])
