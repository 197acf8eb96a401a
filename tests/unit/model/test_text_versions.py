"""Snapshots of a text as the lines that changed: kept, read again, and compared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.errors import UnreadableTextError
from explorer.model.links import EquationSets
from explorer.model.text_versions import Snapshot, Versions, aligned, follow, runs_between, unified


def ints(*values):
    return np.asarray(values, np.int32)


def versions(lines, snapshots, **more):
    """Of lines without instructions: what a text is kept as needs no more."""
    nothing = ints(*[-1] * len(lines))
    start = ints(*[0] * (len(lines) + 1))
    columns = {"lines": lines, "key": nothing, "op": nothing, "type": nothing, "frame": nothing}
    tables = {"names": [], "computation": ints(), "computations": [], "ops": [], "types": [], "frames": []}
    return Versions(**columns, operand_start=start, operand=ints(), **tables, snapshots=snapshots, **more)


# Each snapshot has some of the rows before it in any order, and new ones anywhere.
@st.composite
def histories(draw):
    rows, first, history = [], 0, []
    for _ in range(draw(st.integers(1, 5))):
        new = list(range(first, first + draw(st.integers(0, 4))))
        kept = [row for row in rows if draw(st.booleans())]
        order = draw(st.permutations(kept)) if draw(st.booleans()) else kept
        places = sorted(draw(st.integers(0, len(order))) for _ in new)
        merged = list(order)
        for place, row in zip(reversed(places), reversed(new), strict=True):  # from the end: places stay true
            merged.insert(place, row)
        rows, first = merged, first + len(new)
        history.append((rows, first - len(new)))
    return history, first


@given(histories(), st.randoms())
def test_every_snapshot_is_read_as_it_was_in_any_order(history, random):
    history, count = history
    kept = versions([f"line {row}" for row in range(count)], follow([], history))
    numbers = list(range(len(history)))
    random.shuffle(numbers)
    for number in numbers:
        assert kept.rows(number).tolist() == history[number][0]
        assert kept.text(number) == "\n".join(f"line {row}" for row in history[number][0]) + "\n"
    assert [rows.tolist() for rows in kept.replay()] == [rows for rows, _ in history]


@pytest.mark.parametrize(
    ("before", "after", "first", "runs"),
    [
        ([], [0, 1, 2], 0, [-1, 3]),
        ([0, 1, 2], [0, 1, 2], 3, [0, 3]),
        ([0, 1, 2], [0, 2], 3, [0, 1, 2, 1]),  # one is gone
        ([0, 1, 2], [0, 3, 4, 1, 2], 3, [0, 1, -1, 2, 1, 2]),  # two are new
        ([0, 1, 2], [2, 0, 1], 3, [2, 1, 0, 2]),  # one has moved
        ([5, 7], [7, 5], 8, [1, 1, 0, 1]),
        ([0, 1], [], 2, []),
    ],
)
def test_a_snapshot_is_kept_as_stretches_of_the_one_before_it_and_what_is_new(before, after, first, runs):
    assert runs_between(before, after, first).tolist() == runs


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ([0, 3], "it takes a third of two"),
        ([1, 2], "it takes a third of two"),
        ([-1, 2], "there is one new line"),
        ([0, -1], "less than nothing"),
        ([0, 2, 0, 2], "four rows of three"),
    ],
)
def test_damaged_runs_are_refused(runs, why):
    kept = versions(["a", "b", "c"], [Snapshot(ints(-1, 2), 0), Snapshot(ints(*runs), 2)])
    assert kept.rows(0).tolist() == [0, 1]
    with pytest.raises(
        UnreadableTextError, match=r"a run has an index outside of its snapshot|more rows than there are"
    ):
        kept.rows(1)


def test_a_run_may_reach_to_the_end_and_a_snapshot_may_have_every_row():
    kept = versions(["a", "b", "c"], [Snapshot(ints(-1, 2), 0), Snapshot(ints(1, 1, 0, 1, -1, 1), 2)])
    assert kept.text(1) == "b\na\nc\n"


def longest_common(before, after):
    """Of lists without repeats: by dynamic programming, as textbooks have it."""
    best = np.zeros((len(before) + 1, len(after) + 1), int)
    for i, old in enumerate(before):
        for j, new in enumerate(after):
            best[i + 1, j + 1] = best[i, j] + 1 if old == new else max(best[i, j + 1], best[i + 1, j])
    return best[-1, -1]


ROWS = st.lists(st.integers(0, 12), unique=True, max_size=10)


@given(ROWS, ROWS)
def test_as_many_lines_as_can_be_stand_side_by_side(before, after):
    pairs = list(aligned(ints(*before), ints(*after)))
    assert [old for old, _ in pairs if old >= 0] == before
    assert [new for _, new in pairs if new >= 0] == after
    both = [(old, new) for old, new in pairs if old >= 0 and new >= 0]
    assert all(old == new for old, new in both)
    assert len(both) == longest_common(before, after)
    assert (-1, -1) not in pairs


@given(ROWS, ROWS, st.integers(0, 3))
def test_who_follows_a_diff_gets_from_the_one_to_the_other(before, after, context):
    lines = [f"line {row}" for row in range(13)]
    text = unified(ints(*before), ints(*after), lines, ("a", "b"), context)
    if before == after:
        assert text == ""
        return
    first, second, *hunks = text.splitlines()
    assert (first, second) == ("--- a", "+++ b")
    old, new, at = [lines[row] for row in before], [lines[row] for row in after], 0
    patched = []
    for line in hunks:
        if line.startswith("@@"):
            numbers = line.strip("@ ").replace("-", "").replace("+", "").replace(",", " ").split()
            old_start, old_count, new_start, new_count = map(int, numbers)
            patched += old[at : old_start - 1]
            at = old_start - 1
            assert new_start == len(patched) + 1
            expected = at + old_count, len(patched) + new_count
        elif line[0] == "+":
            patched.append(line[1:])
        else:
            assert old[at] == line[1:]
            patched += [line[1:]] * (line[0] == " ")
            at += 1
    assert (at, len(patched)) == expected  # as the last head says
    assert patched + old[at:] == new


def test_a_change_is_shown_among_its_neighbours():
    lines = [*"abcdefghij", "NEW"]
    text = unified(ints(*range(10)), ints(0, 1, 10, 3, 4, 5, 6, 7, 9), lines, ("before x", "after x"), 1)
    assert text.splitlines() == [
        *("--- before x", "+++ after x"),
        *("@@ -2,3 +2,3 @@", " b", "-c", "+NEW", " d"),
        *("@@ -8,3 +8,2 @@", " h", "-i", " j"),
    ]


def test_without_neighbours_only_what_changed_is_shown():
    lines = ["a", "b", "c", "B"]
    assert unified(ints(0, 1, 2), ints(0, 3, 2), lines, ("x", "y"), 0) == "--- x\n+++ y\n@@ -2,1 +2,1 @@\n-b\n+B\n"


# Line 0 comes from equation 5; line 1 from 6 and 7; line 2 from none; from snapshot 1 on, line 0 is 8's as well.
STATES = EquationSets.of_pairs(ints(0, 1, 1, 3, 3), ints(5, 6, 7, 5, 8), np.ones(4, np.int8))


def test_the_equations_of_a_snapshot_are_those_of_its_lines_as_they_are_labelled_then():
    shots = [Snapshot(ints(-1, 2), 0), Snapshot(ints(0, 1, -1, 1), 2)]
    kept = versions(["a", "b", "c"], shots, equations=STATES, relabelled=ints(1, 0))
    assert kept.equation_rows(0).tolist() == [0, 1]
    assert kept.present(0).tolist() == [5, 6, 7]
    assert kept.equation_rows(1).tolist() == [3, 2]
    assert kept.present(1).tolist() == [5, 8]


def test_what_was_labelled_twice_has_its_last_label():
    states = EquationSets.of_pairs(ints(0, 1, 2), ints(5, 6, 7), np.ones(3, np.int8))
    shots = [Snapshot(ints(-1, 1), 0), Snapshot(ints(0, 1), 1), Snapshot(ints(0, 1), 1)]
    kept = versions(["a"], shots, equations=states, relabelled=ints(1, 0, 2, 0))
    assert [kept.present(number).tolist() for number in range(3)] == [[5], [6], [7]]


def test_where_equations_were_not_recorded_none_are_present():
    kept = versions(["a"], [Snapshot(ints(-1, 1), 0)])
    assert kept.present(0).tolist() == kept.equation_rows(0).tolist() == []
    of_nothing = EquationSets.of_pairs(ints(), ints(), np.zeros(1, np.int8))
    assert versions(["a"], [Snapshot(ints(-1, 1), 0)], equations=of_nothing).present(0).tolist() == []
