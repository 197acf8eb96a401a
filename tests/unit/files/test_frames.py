"""Rows as a pandas DataFrame."""

import sys
from dataclasses import dataclass

import jax.numpy as jnp
import pytest

import explorer as ex
from explorer import ExplorerError
from explorer.errors import MissingPackageError
from explorer.files.columns import frame_of


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


def test_the_nodes_of_a_stage_are_rows_with_their_line_equations_and_grade():
    capture = ex.explore(lambda x: jnp.tanh(x @ x) + jnp.sin(x), jnp.ones((8, 8)))
    frame, graph = capture.to_frame(), capture.hlo.graph

    assert frame["name"].tolist() == [*graph.names]
    for row, node in zip(frame.itertuples(), graph.nodes, strict=True):
        place = node.place
        assert (row.op, row.type, row.grade) == (node.op, str(node.type), capture.links.grade(node, "jaxpr"))
        assert (row.file, row.line, row.how) == ((place.file, place.line, place.how) if place else ("", 0, ""))
        assert row.equations == ", ".join(equation.name for equation in capture.links.linked(node, "jaxpr"))
    assert frame["flops"].sum() > 0
    assert set(capture.to_frame("jaxpr")["grade"]) == {"exact"}


def test_an_opened_module_has_a_frame_too():
    text = ex.explore(jnp.tanh, jnp.ones(8)).hlo.text
    frame = ex.open_hlo(text).to_frame()
    assert set(frame["grade"]) == {"unknown"}
    assert len(frame) == len(ex.open_hlo(text).hlo.graph)


def test_the_fates_say_which_are_inferred():
    capture = ex.explore(lambda x: jnp.tanh(x) * jnp.tanh(x), jnp.ones(8))
    frame = capture.fate_table().to_frame()
    assert frame["inferred"].tolist() == [row.inferred for row in capture.fate_table()]
