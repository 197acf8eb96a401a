"""Sets of equations with grades: what pairs say, kept once, turned around, and replaced by what is exact."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.model.equation_sets import EXACT, INFERRED, UNKNOWN, EquationSets

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


@given(SETS, GRADES, SETS)
def test_what_is_known_for_sure_replaces_what_was_inferred_and_nothing_else(members, grades, known):
    replaced = sets_of(members, grades).replaced_by(sets_of(known, [EXACT] * NODES))
    assert members_of(replaced) == [sure or here for here, sure in zip(members, known, strict=True)]
    assert (
        replaced.only(EXACT).code.tolist() == np.where(replaced.grade == EXACT, replaced.only(EXACT).code, -1).tolist()
    )
    of_known = [EXACT if sure else grade for sure, grade in zip(known, grades, strict=True)]
    assert [g for g in replaced.grade.tolist() if g] == [
        grade for grade, here in zip(of_known, members_of(replaced), strict=True) if here
    ]


@given(SETS, st.lists(st.integers(-1, NODES - 1), max_size=9))
def test_nodes_of_one_class_have_its_set(classes, of):
    sets = EquationSets.of_classes([sorted(members) for members in classes], np.asarray(of, np.int32))
    assert members_of(sets) == [classes[own] if own >= 0 else set() for own in of]
    assert sets.grade.tolist() == [INFERRED if here else UNKNOWN for here in members_of(sets)]
    assert sets.fits(len(of), EQUATIONS)


def test_sets_that_lead_out_of_a_stage_do_not_fit():
    sets = sets_of([{0}, {4}, set(), set(), set(), set()], [EXACT] * NODES)
    assert sets.fits(NODES, 5)
    assert not sets.fits(NODES, 4)
    assert not sets.fits(NODES + 1, 5)
    one = np.asarray([0], np.int32)
    assert not EquationSets(one, np.asarray([0, 2], np.int32), one, one.astype(np.int8)).fits(1, 1)
    assert not EquationSets(one, np.asarray([0, 1], np.int32), one, np.asarray([7], np.int8)).fits(1, 1)


@pytest.fixture
def capture():
    return ex.explore(lambda x: (x * 2.0).sum() + (x * 3.0).sum(), np.ones(8, np.float32))


def exact(capture, pairs):
    rows, equations = zip(*pairs, strict=True)
    return EquationSets.of_pairs(rows, equations, np.full(len(capture.hlo.graph), EXACT, np.int8))


def test_what_is_exact_is_handed_in_for_a_stage_and_grades_say_so(capture):
    links = capture.links
    jaxpr, hlo = list(capture.jaxpr.graph.nodes), list(capture.hlo.graph.nodes)
    first, second = (node for node in jaxpr if node.op == "mul")
    merged = next(node for node in hlo if node.op == "add")
    assert links.grade(merged, "jaxpr") != "exact"
    known = links.with_exact("hlo", exact(capture, [(merged.index, first.index), (merged.index, second.index)]))
    assert known.linked(merged, "jaxpr") == (first, second)
    assert merged in known.linked(second, "hlo")
    assert known.grade(merged, "jaxpr") == "exact"
    assert links.grade(merged, "jaxpr") != "exact", "links are values: the first ones are as they were"
    assert known.grade(merged, "hlo") == "exact"
    with pytest.raises(ex.ForeignNodeError):
        known.grade(next(ex.explore(lambda x: x + 1, 1.0).jaxpr.graph.nodes), "hlo")
    with pytest.raises(ex.UnknownNameError, match="stablehlo, hlo"):
        known.with_exact("jaxpr", exact(capture, [(0, 0)]))
    with pytest.raises(ValueError, match="lead out of"):
        known.with_exact("hlo", exact(capture, [(0, len(jaxpr))]))


def test_an_equations_grade_is_that_of_its_weakest_link(capture):
    links = capture.links
    equation = next(node for node in capture.jaxpr.graph.nodes if node.op == "reduce_sum")
    there = links.linked(equation, "hlo")
    assert len(there) > 1
    one = links.with_exact("hlo", exact(capture, [(there[0].index, equation.index)]))
    assert one.grade(equation, "hlo") == "inferred"
    rows = [row for row, rows in one.table("hlo", "jaxpr").items() if equation.index in rows]
    every = links.with_exact("hlo", exact(capture, [(row, equation.index) for row in rows]))
    assert every.grade(equation, "hlo") == "exact"


def test_from_structure_alone_nothing_is_exact_and_the_shares_are_one_together(capture):
    for stage in ("stablehlo", "hlo"):
        shares = {grade: capture.coverage(stage, grade) for grade in ("exact", "inferred", "unknown")}
        assert shares["exact"] == 0 < shares["inferred"]
        assert sum(shares.values()) == pytest.approx(1)
    assert capture.coverage("jaxpr", "exact") == 1
    alone = ex.open_hlo(capture.hlo.text)
    assert alone.coverage(alone.stages[-1].name, "unknown") == 1
    with pytest.raises(ex.UnknownNameError, match="unknown, inferred, exact"):
        capture.coverage("hlo", "certain")


def test_without_a_grade_the_coverage_is_what_belongs_to_a_line(capture):
    for stage in capture.stages:
        does = [node for node in stage.graph.nodes if stage.graph.is_equation[node.index]]
        assert capture.coverage(stage.name) == sum(node.place is not None for node in does) / len(does)


def test_what_is_exact_is_saved_and_opened_again(capture, tmp_path):
    rows = [node.index for node in capture.hlo.graph.nodes if node.op == "multiply"]
    sets = exact(capture, [(row, 1) for row in rows])
    known = replace(capture, exact_sets={"hlo": sets})
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
