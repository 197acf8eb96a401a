"""What is said of the memory that programs take: sentences, tables, and the size at which a curve meets a limit."""

from math import isnan, nan

import pytest

from explorer.model.results.memory_use import Largest, MemoryRow, MemoryUse, fitted_size
from explorer.model.results.statistics import Axis

MB = 1_000_000
MOST = "The most is for temporaries, 3.0 MB."
BUFFERS = "This counts XLA's buffers: a lower bound, without other memory of the runtime."
N = Axis("n", ("8", "16", "32"), (8.0, 16.0, 32.0))


def uses(argument=1, output=2, temp=3, alias=0, code=0):
    return {
        "argument": argument * MB, "output": output * MB, "temp": temp * MB, "alias": alias * MB,
        "generated code": code * MB,
    }  # fmt: skip


def row(n=None, **given):
    more = {"uses": uses(), **given}
    return MemoryRow((), {}, **more) if n is None else MemoryRow((0,), {"n": n}, **more)


def use(*rows, **given):
    more = {"axes": (), "device": "this machine", "limit": 0, **given}
    return MemoryUse("step", "x: f32[8]", rows=rows, **more)


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({}, {"argument": 1, "output": 2, "temp": 3, "generated code": 0, "runtime": 0}),
        # What is written over a donated argument takes nothing of its own.
        ({"uses": uses(alias=2)}, {"argument": 1, "output": 0, "temp": 3, "generated code": 0, "runtime": 0}),
        ({"measured": 10.0 * MB}, {"argument": 1, "output": 2, "temp": 3, "generated code": 0, "runtime": 4}),
        ({"measured": 5.0 * MB}, {"argument": 1, "output": 2, "temp": 3, "generated code": 0, "runtime": 0}),
    ],
)
def test_the_parts_of_a_program_add_up_to_what_it_takes(given, parts):
    one = row(**given)
    assert use(one).parts(one) == {name: size * MB for name, size in parts.items()}
    assert sum(use(one).parts(one).values()) == one.taken


def test_less_than_its_buffers_a_program_never_takes():
    assert (row().needed, row().taken, row(measured=10.0 * MB).taken) == (6 * MB, 6 * MB, 10 * MB)
    assert row(measured=5.0 * MB).taken == 6 * MB
    assert isnan(row(error="it can't be compiled").needed)


@pytest.mark.parametrize(
    ("limit", "given", "fits"),
    [
        (6 * MB, {}, True),
        (6 * MB - 1, {}, False),
        (0, {}, True),  # nobody says how much there is
        (0, {"error": "no"}, False),
        (6 * MB, {"error": "no"}, False),
        (9 * MB, {"measured": 10.0 * MB}, False),
        (10 * MB, {"measured": 10.0 * MB}, True),
        (100 * MB, {"is_least": True}, False),  # the arguments alone say nothing of the rest
    ],
)
def test_a_program_fits_where_there_is_as_much_as_it_takes(limit, given, fits):
    assert use(limit=limit).fits(row(**given)) is fits


@pytest.mark.parametrize(
    ("rows", "given", "headline"),
    [
        ([row()], {}, f"step needs 6.0 MB. {MOST} {BUFFERS}"),
        (
            [row()],
            {"limit": 12 * MB},
            f"step needs 6.0 MB: 50% of the 12.0 MB that this machine has. {MOST} {BUFFERS}",
        ),
        (
            [row()],
            {"limit": 12 * MB, "device": ""},
            f"step needs 6.0 MB: 50% of the 12.0 MB allowed. {MOST} {BUFFERS}",
        ),
        (
            [row()],
            {"limit": 6 * MB},
            f"step needs 6.0 MB: 100% of the 6.0 MB that this machine has. {MOST} {BUFFERS}",
        ),
        (
            [row()],
            {"limit": 600 * MB},
            f"step needs 6.0 MB: 1% of the 600 MB that this machine has. {MOST} {BUFFERS}",
        ),
        (
            [row()],
            {"limit": 601 * MB},
            f"step needs 6.0 MB: less than 1% of the 601 MB that this machine has. {MOST} {BUFFERS}",
        ),
        (
            [row()],
            {"limit": 5 * MB},
            f"step needs 6.0 MB, more than the 5.0 MB that this machine has: it doesn't fit. {MOST} {BUFFERS}",
        ),
        (
            [row(measured=20.0 * MB)],
            {},
            "step needs 20.0 MB. The most is for other memory of the runtime, 14.0 MB. "
            "XLA's buffers take 6.0 MB, a lower bound; run in a process of its own it took 20.0 MB.",
        ),
        ([row(error="out of luck")], {}, "The memory use of step is unknown: out of luck"),
        ([], {}, "The memory use of step is unknown: the compiler reports no figure"),
    ],
)
def test_one_program_is_summed_up_in_a_sentence_or_two(rows, given, headline):
    assert use(*rows, **given).headline == headline


ROWS = [row(8), row(16, uses=uses(temp=9)), row(32, error="too large")]
MEASURED = [row(8), row(16, uses=uses(temp=9), measured=20.0 * MB)]
RANGE = "step needs from 6.0 MB to 12.0 MB"
BY_BUFFERS = ", by XLA's buffers alone, a lower bound."


@pytest.mark.parametrize(
    ("rows", "given", "headline"),
    [
        (ROWS, {}, f"{RANGE}."),
        (ROWS, {"limit": 10 * MB}, f"{RANGE}; 1 of 3 fit in the 10.0 MB that this machine has."),
        (ROWS, {"limit": 20 * MB}, f"{RANGE}; 2 of 3 fit in the 20.0 MB that this machine has."),
        (
            ROWS,
            {"limit": 10 * MB, "largest": Largest("n", 0, nan, nan, 8)},
            f"{RANGE}; none fits in the 10.0 MB that this machine has.",
        ),
        (
            ROWS,
            {"limit": 10 * MB, "largest": Largest("n", 1999, nan, nan, 2000)},
            f"{RANGE}; up to n = 1,999 fits in the 10.0 MB that this machine has, and no more{BY_BUFFERS}",
        ),
        (
            ROWS,
            {"limit": 10 * MB, "largest": Largest("n", 8, nan, nan, 1600)},
            f"{RANGE}; up to n = 8 fits in the 10.0 MB that this machine has, 1,600 doesn't{BY_BUFFERS}",
        ),
        (
            ROWS,
            {"limit": 10 * MB, "largest": Largest("n", 8, nan, nan)},
            f"{RANGE}; up to n = 8 fits in the 10.0 MB that this machine has; no size that doesn't fit was tried"
            + BY_BUFFERS,
        ),
        (
            MEASURED,
            {"limit": 10 * MB, "largest": Largest("n", 8, nan, nan, 9)},
            f"{RANGE}; up to n = 8 fits in the 10.0 MB that this machine has, and no more.",
        ),
    ],
)
def test_several_sizes_are_summed_up_by_which_of_them_fit(rows, given, headline):
    assert use(*rows, axes=(N,), **given).headline == headline


def test_the_table_has_a_row_a_size_and_says_of_each_whether_it_fits():
    rows = [*MEASURED, row(32, is_least=True, live=5.0 * MB), row(64.5, error="too large", uses={})]
    head, *cells = use(*rows, axes=(N,), limit=15 * MB).table()
    assert (head[:2], head[-4:]) == (("n", "needed"), ("aliased", "live", "measured", "fits"))
    assert cells == [
        ("8", "6.0 MB", "1.0 MB", "2.0 MB", "3.0 MB", "0 B", "0 B", "–", "–", "yes"),
        ("16", "12.0 MB", "1.0 MB", "2.0 MB", "9.0 MB", "0 B", "0 B", "–", "20.0 MB", "no"),
        ("32", "over 6.0 MB", "1.0 MB", "2.0 MB", "3.0 MB", "0 B", "0 B", "5.0 MB", "–", "no"),
        ("64.5", "–", "–", "–", "–", "–", "–", "–", "–", "too large"),
    ]


def test_as_text_its_columns_are_aligned_and_its_notes_come_last():
    lines = repr(use(*MEASURED, axes=(N,), notes=("a note",))).splitlines()
    assert lines[0] == f"{RANGE}."
    assert len({len(line) for line in lines[1:4]}) == 1
    assert lines[4:] == ["note: a note"]
    assert use(axes=(N, Axis("dtype", ("f32",)))).label(ROWS[0]) == "n = 8, dtype = ?"


def cube(size):
    return 3 * size**2 + 2 * size + 5


@pytest.mark.parametrize(
    ("sizes", "needed", "limit", "size"),
    [
        ([10], [200], 1000, 50),  # through the origin
        ([10], [0], 1000, nan),
        ([1, 3], [10, 30], 100, 10),
        ([3, 1], [30, 10], 100, 10),  # in any order
        ([1, 2, 3], [10, 20, 30], 100, 10),  # three on a line
        ([1, 2, 4], [cube(1), cube(2), cube(4)], cube(9), 9),
        ([1, 2, 4], [cube(1), cube(2), cube(4)], cube(3), 3),  # below the last one
        ([0.5, 1, 2, 4], [999, cube(1), cube(2), cube(4)], cube(9), 9),  # the last three count
        ([1, 2], [10, 10], 100, nan),  # it doesn't grow
        ([1, 2], [20, 10], 100, nan),
        ([1, 2, 3], [10, 30, 40], 100, 9),  # the parabola never gets there: the line through the last two
        ([1, 1, 2], [99, 10, 20], 100, 10),  # of one size the last figure
    ],
)
def test_a_curve_through_the_last_sizes_meets_the_limit(sizes, needed, limit, size):
    assert fitted_size(sizes, needed, limit) == pytest.approx(size, nan_ok=True)


@pytest.mark.parametrize(("size", "too_large", "is_exact"), [(7, 8, True), (7, 9, False), (7, None, False)])
def test_the_largest_is_exact_where_the_next_one_is_seen_not_to_fit(size, too_large, is_exact):
    assert Largest("n", size, nan, nan, too_large).is_exact is is_exact


def test_a_damaged_file_with_infinite_memory_is_still_shown():
    shown = use(row(measured=float("inf")))
    assert shown.parts(shown.rows[0])["runtime"] == 0
    assert "3.0 MB" in repr(shown)
