"""Rows as a pandas DataFrame."""

import sys
from dataclasses import dataclass

import pytest

from explorer import ExplorerError, MissingPackageError
from explorer.files.frames import frame_of


@dataclass
class Row:
    line: int
    seconds: float


def test_objects_and_mappings_give_the_same_table():
    columns = ["line", "seconds"]
    of_objects = frame_of([Row(3, 0.5), Row(4, 0.25)], columns)
    of_mappings = frame_of([{"line": 3, "seconds": 0.5}, {"line": 4, "seconds": 0.25}])

    assert of_objects.equals(of_mappings)
    assert list(of_objects.columns) == columns


def test_an_empty_table_keeps_its_columns():
    assert list(frame_of([], ["line", "seconds"]).columns) == ["line", "seconds"]


def test_without_pandas_the_error_names_the_way_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # what `import pandas` meets where it is not installed

    with pytest.raises(MissingPackageError, match="pip install pandas") as error:
        frame_of([])
    assert isinstance(error.value, ExplorerError)
    assert isinstance(error.value, ImportError)
