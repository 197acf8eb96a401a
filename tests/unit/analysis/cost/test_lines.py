"""The line table: every kernel's cost on the lines of what is inside it, and all of it on some line."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import explorer as ex
from explorer.analysis.kernel_costs import kernel_of
from explorer.analysis.line_costs import kernel_lines, shares_by_line, split_by_line
from explorer.model.attribution import LineRow, LineTable
from explorer.model.capture import Capture
from explorer.model.graph import Frame, Graph, Group
from explorer.model.stage import Durations, Stage

X, W = jnp.ones((128, 64)), jnp.ones((64, 64))


def dense(w, x):
    y = x @ w
    z = jnp.tanh(y) * 2
    return z.sum()


@pytest.fixture(scope="module")
def table():
    return ex.explore(dense, W, X).lines()


def by_text(table, text):
    (row,) = [row for row in table if text in row.text]
    return row


def test_the_line_of_a_matmul_has_its_flops(table):
    assert by_text(table, "x @ w").flops == 2 * 128 * 64 * 64
    assert by_text(table, "x @ w").flops_share > 0.95


def test_a_line_counts_its_equations_and_its_kernels(table):
    row = by_text(table, "tanh")
    assert row.equations == 2
    assert row.kernels >= 1
    assert row.flops == 2 * 128 * 64


def test_the_columns_add_up_to_the_program(table):
    assert sum(row.flops for row in table) == table.flops
    assert sum(row.bytes for row in table) == pytest.approx(table.bytes)
    assert sum(row.flops_share for row in table) == pytest.approx(1)
    assert sum(row.bytes_share for row in table) == pytest.approx(1)
    assert table.seconds is None
    assert all(row.seconds is None for row in table)


def test_the_program_is_what_its_kernels_cost():
    capture = ex.explore(jax.value_and_grad(dense), W, X)
    graph, table = capture.hlo.graph, capture.lines()
    own = kernel_of(graph) == np.arange(len(graph))
    assert table.flops == pytest.approx(float(graph.measures["flops"][own].sum()))
    assert table.bytes == pytest.approx(float(graph.measures["bytes"][own].sum()))


def test_a_library_is_on_the_users_line_that_called_it():
    table = ex.explore(lambda x: jax.nn.gelu(x) + 1, X).lines()
    assert {row.file for row in table} <= {__file__, ""}


def test_what_has_no_line_is_a_row_of_its_own_and_the_last():
    table = ex.explore(jax.nn.gelu, X).lines()
    assert (table[-1].file, table[-1].line, table[-1].text) == ("", 0, "")
    assert table[-1].flops == table.flops > 0


def test_a_measured_time_is_split_over_the_lines_too():
    capture = ex.explore(dense, W, X)
    graph = capture.hlo.graph
    own = kernel_of(graph) == np.arange(len(graph))
    timed = replace(graph, measure=lambda _: graph.measures | {"time": np.where(own, 0.25, 0.0)})
    table = replace(capture, stages=(*capture.stages[:2], Stage("hlo", lambda: (capture.hlo.text, timed)))).lines()
    assert table.seconds == pytest.approx(0.25 * own.sum())
    assert sum(row.seconds for row in table) == pytest.approx(table.seconds)
    assert by_text(table, "x @ w").seconds > 0
    assert "seconds" in repr(table)


def test_the_table_reads_well():
    rows = [
        LineRow("model.py", 3, "y = x @ w", 1, 1, 1_048_576.0, 0.984, 81_920.0, 0.714),
        LineRow("model.py", 4, "return jnp.tanh(y)", 1, 1, 16_384.0, 0.016, 32_768.0, 0.286),
    ]
    assert repr(LineTable(rows, 1_064_960.0, 114_688.0, None)) == (
        "line  source              equations  kernels   FLOPs           bytes\n"
        "   3  y = x @ w                   1        1   1.0 M  98.4%  81.9 kB  71.4%\n"
        "   4  return jnp.tanh(y)          1        1  16.4 k   1.6%  32.8 kB  28.6%\n"
        "      total                                    1.1 M          115 kB"
    )


def test_it_is_a_data_frame_where_pandas_is():
    import pandas

    table = ex.explore(dense, W, X).lines()
    frame = table.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["flops"].sum() == table.flops


def test_a_saved_capture_has_the_same_table(tmp_path):
    capture = ex.explore(dense, W, X)
    capture.save(tmp_path / "dense.capture")
    assert repr(ex.load(tmp_path / "dense.capture").lines()) == repr(capture.lines())


OPS = ("parameter", "add", "dot", "fusion", "copy", "bitcast", "tuple")


@st.composite
def programs(draw):
    """Any graph of an entry and fusions, with any costs: each fusion has the FLOPs of its inside."""
    fusions = draw(st.integers(0, 4))
    groups, group, ops = [Group("e", "entry")], [], []
    for i in range(fusions):
        groups.append(Group(f"f{i}", "fusion", 0, i))
        ops.append("fusion")
        group.append(0)
    for _ in range(draw(st.integers(0, 12))):
        group.append(draw(st.integers(0, fusions)))
        ops.append(draw(st.sampled_from([op for op in OPS if op != "fusion"])))
    count = len(ops)
    operands = [draw(st.lists(st.integers(0, count - 1), max_size=3)) if count else [] for _ in range(count)]
    # What is inside a fusion reads only from there.
    operands = [[j for j in reads if group[j] == group[i] and j != i] for i, reads in enumerate(operands)]
    lines = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    numbers = st.lists(st.integers(0, 1000), min_size=count, max_size=count)
    runs = np.asarray([op not in ("parameter", "bitcast", "tuple") for op in ops], bool)
    flops, moved, time = (np.asarray(draw(numbers), float) * runs for _ in range(3))
    group_of = np.asarray(group, np.int32)
    flops[:fusions] = [flops[group_of == i + 1].sum() for i in range(fusions)]
    has_inside = [bool((group_of == i + 1).any()) for i in range(fusions)]
    moved[group_of > 0], time[group_of > 0] = 0, 0
    table = list(OPS)
    column = lambda values: np.asarray(values, np.int32)  # noqa: E731
    graph = Graph(
        names=[f"n{i}" for i in range(count)],
        op=column([table.index(op) for op in ops]),
        type=column([i % 2 for i in range(count)]),
        scope=column([0] * count),
        operand_start=column(np.cumsum([0, *map(len, operands)])),
        operand=column([i for reads in operands for i in reads]),
        group=group_of,
        frame=column([line - 1 for line in lines]),
        line=column(range(count)),
        ops=table,
        types=["f32[8]{0}", "f32[]"],
        scopes=[""],
        groups=groups,
        frames=[Frame("a.py", "f", 1), Frame("", "f", 0), Frame("b.py", "g", 1)],
        measure=lambda _: {"flops": flops, "bytes": moved, "time": time},
    )
    return graph, has_inside


@settings(max_examples=150)
@given(programs())
def test_in_any_program_the_columns_add_up(program):
    graph, _ = program
    capture = Capture("f", "a.py", (Stage("hlo", lambda: ("", graph)),), Durations())
    table = capture.lines()
    own = kernel_of(graph) == np.arange(len(graph))
    for name, total in (("flops", table.flops), ("bytes", table.bytes), ("time", table.seconds)):
        column = {"time": "seconds"}.get(name, name)
        assert sum(getattr(row, column) for row in table) == pytest.approx(total)
        assert total == pytest.approx(float(graph.measures[name][own].sum()))
    assert all(min(row.flops, row.bytes, row.seconds, row.kernels) >= 0 for row in table)
    assert len({(row.file, row.line) for row in table}) == len(table)


def search(x, limit):
    y = jnp.tanh(x @ x)
    return jax.lax.while_loop(lambda c: c.sum() < limit, lambda c: c @ c + 1.0, y)


def test_a_line_in_a_loop_of_unknown_length_says_that_one_iteration_is_counted():
    capture = ex.explore(search, jnp.ones((32, 32)), 5.0)
    table = capture.lines()
    looped, straight = by_text(table, "while_loop"), by_text(table, "x @ x")
    assert looped.one_iteration
    assert not straight.one_iteration
    assert looped.flops >= 2 * 32**3
    loop = next(node.name for node in capture.hlo.graph.nodes if node.op == "while")
    assert table.notes == (f"one iteration counted of {loop}: its length is not known",)
    shown = repr(table).splitlines()
    assert [line for line in shown if line.endswith("one iteration counted")] == [
        line for line in shown if "while_loop" in line
    ]
    assert f"note: {table.notes[0]}" in shown


def test_a_loop_of_known_length_has_nothing_to_say():
    def scanned(x):
        return jax.lax.fori_loop(0, 9, lambda _, c: c @ c, x)

    table = ex.explore(scanned, jnp.ones((32, 32))).lines()
    assert table.notes == ()
    assert not any(row.one_iteration for row in table)


def test_what_nobody_can_count_is_named():
    table = ex.explore(lambda x: jax.lax.top_k(x, 3)[0], jnp.ones(64)).lines()
    assert any(note.startswith("FLOPs of 1 kernel not known: ") for note in table.notes)


def test_a_saved_capture_and_its_exports_say_so_too(tmp_path):
    capture = ex.explore(search, jnp.ones((32, 32)), 5.0)
    capture.save(tmp_path / "search.capture")
    loaded = ex.load(tmp_path / "search.capture")
    assert repr(loaded.lines()) == repr(capture.lines())
    assert capture.lines().notes[0] in capture.to_text()
    exported = capture.to_model_explorer_json(tmp_path / "search.json").read_text()
    assert "one iteration counted" in exported
    assert loaded.lines().to_frame()["one_iteration"].sum() == 1


def test_the_costs_of_kernels_on_lines_are_those_of_the_table_split_and_no_kernel_has_more_than_it_costs(table):
    capture = ex.explore(dense, W, X)
    costs = kernel_lines(split_by_line(capture))
    places = [*costs.places, ("", 0)]
    for measure in ("flops", "bytes"):
        amount = costs.amounts[measure]
        assert (amount >= 0).all()
        for row in table:
            at = places.index((row.file, row.line))
            assert amount[costs.line == at].sum() == pytest.approx(getattr(row, measure))
        whole = np.nan_to_num(capture.hlo.graph.measures[measure])
        of_kernel = np.bincount(costs.kernel, amount, len(whole))
        assert (of_kernel <= whole * (1 + 1e-6)).all()
    assert sorted(zip(costs.kernel.tolist(), costs.line.tolist(), strict=True)) == [
        *zip(costs.kernel.tolist(), costs.line.tolist(), strict=True)
    ]


def test_lines_have_shares_the_largest_first_and_equal_ones_by_their_place():
    seconds = {("b.py", 1): 1.0, ("a.py", 20): 1.0, ("a.py", 3): 1.0, ("z.py", 9): 5.0}
    assert shares_by_line(seconds) == [("z.py", 9, 0.625), ("a.py", 3, 0.125), ("a.py", 20, 0.125), ("b.py", 1, 0.125)]
