"""Sets of equations with grades: what pairs say, kept once, turned around, and saved."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.model.links import EXACT, INFERRED, UNKNOWN, EquationSets

NODES, EQUATIONS = 6, 5
SETS = st.lists(st.sets(st.integers(0, EQUATIONS - 1)), min_size=NODES, max_size=NODES)
GRADES = st.lists(st.sampled_from([INFERRED, EXACT]), min_size=NODES, max_size=NODES)


def sets_of(members, grades):
    pairs = [(row, equation) for row, equations in enumerate(members) for equation in equations]
    rows, equations = zip(*pairs, strict=True) if pairs else ((), ())
    return EquationSets.of_pairs(rows, equations, np.asarray(grades, np.int8))


def members_of(sets):
    return [set(sets.of(row).tolist()) for row in range(len(sets))]


@given(SETS, GRADES)
def test_the_sets_are_those_of_the_pairs_each_kept_once(members, grades):
    sets = sets_of(members, grades)
    assert members_of(sets) == members
    assert sets.size.tolist() == list(map(len, members))
    assert sets.grade.tolist() == [grade if here else UNKNOWN for here, grade in zip(members, grades, strict=True)]
    kept = [tuple(sets.node[a:b].tolist()) for a, b in zip(sets.start, sets.start[1:], strict=False)]
    assert sorted(kept) == sorted({tuple(sorted(here)) for here in members if here})
    assert sets.fits(NODES, EQUATIONS)


@given(SETS, GRADES)
def test_turned_around_each_equation_has_the_nodes_whose_sets_hold_it(members, grades):
    start, rows = sets_of(members, grades).rows_of(EQUATIONS)
    found = [rows[start[equation] : start[equation + 1]].tolist() for equation in range(EQUATIONS)]
    assert found == [[row for row, here in enumerate(members) if equation in here] for equation in range(EQUATIONS)]


def test_sets_that_lead_out_of_a_stage_do_not_fit():
    sets = sets_of([{0}, {4}, set(), set(), set(), set()], [EXACT] * NODES)
    assert sets.fits(NODES, 5)
    assert not sets.fits(NODES, 4)
    assert not sets.fits(NODES + 1, 5)
    one = np.asarray([0], np.int32)
    assert not EquationSets(one, np.asarray([0, 2], np.int32), one, one.astype(np.int8)).fits(1, 1)
    assert not EquationSets(one, np.asarray([0, 1], np.int32), one, np.asarray([7], np.int8)).fits(1, 1)


@given(SETS, GRADES, st.sampled_from([INFERRED, EXACT]))
def test_the_sets_of_one_grade_are_those_of_its_nodes(members, grades, grade):
    only = sets_of(members, grades).only(grade)
    assert members_of(only) == [here if own == grade else set() for here, own in zip(members, grades, strict=True)]


@pytest.fixture(scope="module")
def capture():
    return ex.explore(lambda x: (x * 2.0).sum() + (x * 3.0).sum(), np.ones(8, np.float32))


def test_grades_are_of_one_capture_and_its_stages(capture):
    links = capture.links
    merged = next(node for node in capture.hlo.graph.nodes if node.op == "add")
    assert links.grade(merged, "hlo") == links.grade(merged, "jaxpr") == "exact"
    with pytest.raises(ex.errors.ForeignNodeError):
        links.grade(next(ex.explore(lambda x: x + 1, 1.0).jaxpr.graph.nodes), "hlo")
    with pytest.raises(ex.errors.UnknownNameError, match="jaxpr, stablehlo, hlo"):
        links.grade(merged, "assembly")


def graded(capture, pairs, grades):
    rows, equations = zip(*pairs, strict=True)
    return EquationSets.of_pairs(rows, equations, np.asarray(grades, np.int8))


def test_an_equations_grade_is_that_of_its_weakest_link(capture):
    equation = next(node for node in capture.jaxpr.graph.nodes if node.op == "reduce_sum")
    first, second = (node.index for node in [*capture.hlo.graph.nodes][-2:])
    for weaker, expected in ((INFERRED, "inferred"), (EXACT, "exact")):
        grades = np.full(len(capture.hlo.graph), EXACT)
        grades[second] = weaker
        sets = graded(capture, [(first, equation.index), (second, equation.index)], grades)
        known = replace(capture, read_passes=None, exact_sets={**capture.exact_sets, "hlo": sets})
        assert known.links.grade(known.jaxpr.graph[equation.name], "hlo") == expected
        assert len(known.links.linked(known.jaxpr.graph[equation.name], "hlo")) == 2


def test_what_is_not_certain_among_what_is_exact_is_saved_too(capture, tmp_path):
    grades = [EXACT, INFERRED] * (len(capture.hlo.graph) // 2) + [EXACT] * (len(capture.hlo.graph) % 2)
    known = replace(
        capture, read_passes=None, exact_sets={"hlo": graded(capture, [(row, 1) for row in range(len(grades))], grades)}
    )
    known.save(tmp_path / "f.capture")
    assert ex.load(tmp_path / "f.capture").links.grades("hlo").tolist() == grades


@pytest.mark.parametrize(("record", "surest", "not_there"), [(True, "exact", "inferred"), (False, "inferred", "exact")])
def test_links_are_exact_or_inferred_or_unknown_and_the_shares_are_one_together(record, surest, not_there):
    capture = ex.explore(lambda x: (x * 2.0).sum() + (x * 3.0).sum(), np.ones(8, np.float32), record=record)
    for stage in ("stablehlo", "hlo"):
        shares = {grade: capture.coverage(stage, grade) for grade in ("exact", "inferred", "unknown")}
        assert shares[not_there] == 0 < shares[surest]
        assert sum(shares.values()) == pytest.approx(1)
    assert capture.coverage("jaxpr", "exact") == 1
    alone = ex.open_hlo(capture.hlo.text)
    assert alone.coverage(alone.stages[-1].name, "unknown") == 1
    with pytest.raises(ex.errors.UnknownNameError, match="unknown, inferred, exact"):
        capture.coverage("hlo", "certain")


def test_without_a_grade_the_coverage_is_what_belongs_to_a_line(capture):
    for stage in capture.stages:
        does = [node for node in stage.graph.nodes if stage.graph.is_equation[node.index]]
        assert capture.coverage(stage.name) == sum(node.place is not None for node in does) / len(does)


def test_what_is_exact_is_saved_and_opened_again(capture, tmp_path):
    rows = [node.index for node in capture.hlo.graph.nodes if node.op == "multiply"]
    sets = graded(capture, [(row, 1) for row in rows], [EXACT] * len(capture.hlo.graph))
    known = replace(capture, read_passes=None, exact_sets={"hlo": sets})
    known.save(tmp_path / "f.capture")
    loaded = ex.load(tmp_path / "f.capture")
    np.testing.assert_array_equal(loaded.links.grades("hlo"), known.links.grades("hlo"))
    assert all(loaded.links.sets["hlo"].of(row).tolist() == [1] for row in rows)
    assert loaded.links.table("jaxpr", "hlo") == known.links.table("jaxpr", "hlo")
    assert loaded.wire == known.wire
    assert 0 < loaded.coverage("hlo", "exact") < 1


def test_sets_print_how_many_nodes_have_which_grade():
    sets = EquationSets.of_pairs([0, 2, 2], [7, 4, 7], np.array([EXACT, EXACT, INFERRED, UNKNOWN], np.int8))
    assert repr(sets) == "EquationSets(1 exact, 1 inferred, 2 unknown)"
