"""What a report of sizes says in words: each sentence, row and share, with figures counted by hand."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

import explorer as ex
from explorer.analysis.padding_summary import (
    Obstacle,
    binary_rows,
    by_waste,
    dimensions_text,
    facts,
    headline,
    obstacles,
    size_rows,
    sizes_text,
    total_waste,
    waste_of,
)

WHEN = datetime(2026, 1, 2, tzinfo=UTC)
BOUNDS = {"b": (1, 8, 64)}
PLAIN = ex.types.DynamicReport(
    "f", BOUNDS, "pad", "padded", "all are proven", rules={"add": 1}, buckets={"b": (16, 64)}
)


def binary(size=64, *, padded=True, **changed):
    plain = ex.types.DynamicBinary({"b": size}, padded, "padded, the largest sizes", False, 0.4, WHEN, 3, 8192.0)
    return replace(plain, **changed)


def row(size=3, calls=1, *, flops=(30.0, 40.0), moved=(300, 400)):
    return ex.types.PaddedSizes({"b": size}, {"b": 4}, calls, (0.01, 0.03), True, *moved, *flops)


def refusal(primitive="svd", line=12, reason="`svd` has no rule", equation="f32[b] = svd f32[b,b]"):
    return ex.types.PaddingRefusal(equation, primitive, "/x/m.py" if line else "", line, reason, label="m.py")


@pytest.mark.parametrize(
    ("binaries", "served"),
    [
        ((), "0 binaries serve all 64 sizes"),
        ((binary(),), "1 binary serves all 64 sizes"),
        ((binary(), binary(16)), "2 binaries serve all 64 sizes"),
        ((binary(), binary(8, padded=False)), "1 binary serves all 64 sizes, 1 of them has a binary of its own"),
        (
            (binary(), binary(8, padded=False), binary(9, padded=False)),
            "1 binary serves all 64 sizes, 2 of them have binaries of their own",
        ),
        # a padded binary of no rows isn't one of its own either
        ((binary(0), binary(0, padded=False)), "1 binary serves all 64 sizes"),
        ((binary(1, padded=False),), "0 binaries serve all 64 sizes, 1 of them has a binary of its own"),
    ],
)
def test_the_headline_counts_padded_binaries_and_sizes_with_one_of_their_own(binaries, served):
    assert headline(replace(PLAIN, binaries=binaries)) == f"Padded: {served}; no call was padded yet"


@pytest.mark.parametrize(
    ("bounds", "sizes"),
    [
        ({"b": (1, 1, 1)}, "the one size"),
        ({"b": (1, 1, 2)}, "both sizes"),
        ({"b": (1, 1, 3)}, "all 3 sizes"),
        ({"b": (1, 1, 2), "s": (3, 3, 4)}, "all 4 sizes"),
        ({"b": (0, 1, 2000)}, "all 2,000 sizes"),
    ],
)
def test_sizes_are_counted_without_the_empty_one(bounds, sizes):
    assert headline(replace(PLAIN, dimensions=bounds)) == f"Padded: 0 binaries serve {sizes}; no call was padded yet"


@pytest.mark.parametrize(
    ("sizes", "wasted"),
    [
        # 10 of 40 FLOPs
        ((row(),), "25% of the FLOPs of 1 call are padding at b = 3"),
        # 2 × 10 + 3 × 20 of 5 × 40 FLOPs; the second wastes more
        ((row(3, 2), row(2, 3, flops=(20.0, 40.0))), "40% of the FLOPs of 5 calls are padding, most at b = 2"),
        # 9 × 10 of the one, 2 × 20 of the other, of 11 × 40: calls weigh more than the share
        ((row(2, 2, flops=(20.0, 40.0)), row(3, 9)), "30% of the FLOPs of 11 calls are padding, most at b = 3"),
        # 100 of 400 bytes
        ((row(flops=(None, 40.0)),), "25% of the bytes of 1 call are padding at b = 3"),
        ((row(flops=(30.0, None)),), "25% of the bytes of 1 call are padding at b = 3"),
        # one row without FLOPs, so bytes of both: 2 × 100 + 50 of 2 × 400 + 200
        (
            (row(3, 2, flops=(None, None)), row(2, 1, moved=(150, 200))),
            "25% of the bytes of 3 calls are padding, most at b = 3",
        ),
        # a program without an operation moves padding alone
        ((row(flops=(0.0, 0.0)),), "25% of the bytes of 1 call are padding at b = 3"),
        ((row(flops=(40.0, 40.0)),), "no padding in 1 call"),
        ((row(4, 2, flops=(None, None), moved=(400, 400)),), "no padding in 2 calls"),
        ((row(0, 2, flops=(0.0, 0.0), moved=(0, 0)),), "no padding in 2 calls"),
    ],
)
def test_the_headline_says_what_part_of_all_calls_is_padding_and_where_most(sizes, wasted):
    assert headline(replace(PLAIN, sizes=sizes)) == f"Padded: 0 binaries serve all 64 sizes; {wasted}"


def test_waste_is_a_part_of_the_bytes_where_there_are_no_flops():
    assert total_waste(replace(PLAIN, sizes=(row(3, 2), row(1, 1, flops=(10.0, 40.0))))) == (50 / 120, "FLOPs")
    assert total_waste(replace(PLAIN, sizes=(row(flops=(None, None)),))) == (0.25, "bytes")
    assert total_waste(PLAIN) == (0.0, "bytes")
    assert waste_of(row(flops=(10.0, 40.0)), "FLOPs") == 0.75
    assert waste_of(row(flops=(10.0, 40.0)), "bytes") == 0.25
    assert waste_of(row(moved=(0, 0)), "bytes") == 0.0


def test_sizes_stand_in_the_order_of_what_all_their_calls_waste():
    few, many, none = row(2, 2, flops=(20.0, 40.0)), row(3, 9), row(4, 9, flops=(40.0, 40.0), moved=(0, 400))
    assert by_waste(replace(PLAIN, sizes=(none, few, many))) == [many, few, none]
    # by bytes, where one has no FLOPs: 9 × 400, 9 × 100, 2 × 100
    few = replace(few, flops=None)
    assert by_waste(replace(PLAIN, sizes=(few, many, none))) == [none, many, few]


LINES = [refusal(line=at) for at in range(1, 6)]
AT = [f"`svd` at m.py, line {at}" for at in range(1, 4)]


@pytest.mark.parametrize(
    ("refusals", "sentence"),
    [
        ((), "only 3 sizes"),
        ((refusal(),), "1 equation prevents padding: `svd` at m.py, line 12"),
        ((refusal(), refusal()), "2 equations prevent padding: `svd` at m.py, line 12"),
        (LINES[:3], f"3 equations prevent padding: {AT[0]}, {AT[1]} and {AT[2]}"),
        (
            LINES,
            f"5 equations prevent padding: {AT[0]}, {AT[1]}, {AT[2]} and 2 more",
        ),
        ((refusal(line=0),), "1 equation prevents padding: `svd`"),
        # a trace that fails has no equation: its reason is all there is, without the line, which is told apart
        (
            (refusal("", 0, "the trace fails: no such size  at  m.py, line 3", equation=""),),
            "the trace fails: no such size",
        ),
        ((refusal("", 7, "the trace fails", equation=""),), "the trace fails at m.py, line 7"),
    ],
)  # fmt: skip
def test_the_headline_names_three_obstacles_at_most(refusals, sentence):
    report = ex.types.DynamicReport("f", BOUNDS, "auto", "specialised", "only 3 sizes", tuple(refusals))
    assert headline(report) == f"Specialised: {sentence}"


def test_an_obstacle_is_a_line_a_primitive_and_a_reason():
    first, other = refusal(), refusal(reason="`svd` of a padded side")
    report = replace(PLAIN, refusals=(first, other, first, refusal("eigh"), replace(first, file="/y/m.py")))
    assert [(each.first, each.count) for each in obstacles(report)] == [
        (first, 2),
        (other, 1),
        (refusal("eigh"), 1),
        (replace(first, file="/y/m.py"), 1),
    ]
    nowhere = Obstacle(refusal(line=0, reason="no rule  at  cell [3], line 2"), 1)
    assert (nowhere.reason, nowhere.place) == ("no rule", "cell [3], line 2")
    assert Obstacle(refusal(reason="no rule  at  cell [3], line 2"), 1).place == "m.py, line 12"


def test_the_facts_of_a_proof():
    report = replace(PLAIN, rules={"add": 2, "dot_general": 1_000}, masks=2, buckets={"b": (16, 64), "s": (8,)})
    assert list(facts(report)) == [
        ("can be", "b = 1 … 64"),
        ("proven", "all 1,002 equations of padded arrays; 2 masks keep padding out of results"),
        ("rules", "dot_general 1,000, add 2"),
        ("buckets", "b 16, 64; s 8"),
    ]
    assert dict(facts(replace(PLAIN, masks=1)))["proven"] == (
        "1 equation of padded arrays; 1 mask keeps padding out of results"
    )
    assert dict(facts(replace(PLAIN, rules={"add": 1, "mul": 1})))["proven"] == (
        "all 2 equations of padded arrays; no mask is needed"
    )
    waiting = replace(PLAIN, dimensions={}, waiting=({"b": 2, "s": 1_000}, {"b": 4}), rules=None, buckets=None)
    assert list(facts(waiting)) == [
        ("proven", "0 equations of padded arrays; no mask is needed"),
        ("rules", ""),
        ("buckets", ""),
        ("on its way", "b = 2, s = 1,000; b = 4"),
    ]


def test_the_facts_of_what_is_specialised():
    report = ex.types.DynamicReport("f", BOUNDS, "auto", "specialised", "few sizes")
    assert list(facts(report)) == [("can be", "b = 1 … 64")]
    assert list(facts(replace(report, refusals=(refusal(),)))) == [
        ("can be", "b = 1 … 64"),
        ("served by", "a binary for each size, compiled at its first call"),
    ]


def test_a_dimension_of_one_size_has_no_range():
    report = replace(PLAIN, dimensions={"b": (1, 8, 64), "s": (16, 16, 16), "t": (1_000, 1_000, 1_001)})
    assert dimensions_text(report) == "b = 1 … 64, s = 16, t = 1,000 … 1,001"
    assert sizes_text({"b": 37, "s": 5_000}) == "b = 37, s = 5,000"


@pytest.mark.parametrize(
    ("made", "cells"),
    [
        (binary(), ("b = 64", "up to that", "3", "400 ms", "the largest sizes")),
        (binary(calls=1_000), ("b = 64", "up to that", "1,000", "400 ms", "the largest sizes")),
        (binary(calls=0), ("b = 64", "up to that", "0", "400 ms", "the largest sizes")),
        (binary(padded=False, calls=None), ("b = 64", "that size", "not counted", "400 ms", "the largest sizes")),
        (binary(sizes={}), ("the only one", "up to that", "3", "400 ms", "the largest sizes")),
        (binary(is_background=True), ("b = 64", "up to that", "3", "400 ms", "the largest sizes, in the background")),
        # said once
        (
            binary(is_background=True, reason="in the background, for b = 64"),
            ("b = 64", "up to that", "3", "400 ms", "in the background, for b = 64"),
        ),
        (binary(reason="padded, a call  at  m.py, line 3"), ("b = 64", "up to that", "3", "400 ms", "a call")),
    ],
)
def test_a_binary_is_a_row(made, cells):
    head = ("binary", "serves", "calls", "compiled in", "why")
    assert binary_rows(replace(PLAIN, binaries=(made,))) == [head, cells]


def test_sizes_have_a_column_of_flops_where_they_are_known_of_all():
    report = replace(PLAIN, sizes=(row(3, 1_000, flops=(10.0, 40.0)),))
    assert size_rows(report, report.sizes) == [
        ("size", "in the bucket", "calls", "a call took", "padding, of the FLOPs", "of the bytes"),
        ("b = 3", "4", "1,000", "20 ms", "75%", "25%"),
    ]
    report = replace(PLAIN, sizes=(row(flops=(None, None)),))
    assert size_rows(report, report.sizes) == [
        ("size", "in the bucket", "calls", "a call took", "padding, of the bytes"),
        ("b = 3", "4", "1", "20 ms", "25%"),
    ]


def test_the_whole_text_of_a_refusal():
    report = ex.types.DynamicReport(
        "f", BOUNDS, "auto", "specialised", "it can't be padded",
        (replace(refusal(), text="y = svd(x)", hint="solve outside"),) * 2 + (refusal("fft", 0, "no rule", ""),),
        faults=("a background compile failed",),
    )  # fmt: skip
    assert report.to_text().splitlines() == [
        "DynamicReport(f: Specialised: 3 equations prevent padding: `svd` at m.py, line 12 and `fft`)",
        "  can be    b = 1 … 64",
        "  served by a binary for each size, compiled at its first call",
        "  `svd` has no rule (2 equations)",
        "    at        m.py, line 12:   y = svd(x)",
        "    equation  f32[b] = svd f32[b,b]",
        "    fix       solve outside",
        "  no rule",
        "  fault: a background compile failed",
    ]


@pytest.mark.parametrize(
    ("count", "after"),
    [(12, []), (13, ["  … and 1 size that waste less"]), (14, ["  … and 2 sizes that waste less"])],
)
def test_twelve_sizes_are_in_the_text_those_that_waste_most(count, after):
    sizes = tuple(row(at, at) for at in range(1, count + 1))
    lines = replace(PLAIN, dimensions={}, sizes=sizes).to_text().splitlines()
    rows = [at for at, line in enumerate(lines) if line.startswith("  b = ")]
    assert [lines[at].split()[2] for at in rows] == [str(size) for size in range(count, count - 12, -1)]
    assert lines[rows[-1] + 1 :] == after
