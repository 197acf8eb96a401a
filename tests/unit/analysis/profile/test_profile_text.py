"""A profile as text, to the letter; and which kernels have a note."""

from dataclasses import replace
from math import nan

import pytest

from explorer.analysis.profile_trees import profile_text
from explorer.analysis.roofline import build_roofline, with_peaks
from explorer.model.graph import Frame
from explorer.model.results.profile import LineTime, OpTime, Profile
from explorer.model.results.roofline import Peaks

HERE = Frame("/home/ada/train.py", "step", 7)


def op(name="fusion.1", seconds=5e-4, count=1.0, kind="fusion", flops=0.0, moved=0.0, stack=(HERE,)):
    return OpTime(name, kind, "jit_f", 1, seconds, seconds / 8e-4, seconds, count, flops, moved, None, stack, "")


def line(number, seconds, text="y = x", file="/home/ada/train.py"):
    return LineTime(file, number, text, seconds, seconds / 8e-4, 1, None, nan, nan)


PROFILE = Profile(
    "f", "(x: f32[8])", 3, 1e-3, 8e-4, 2e-4,
    ops=[op(), op("dot.2", 3e-4, 24.0, "dot")], lines=[line(3, 4e-4), line(12, 1e-4, "x" * 57)], unattributed=3e-4,
    host={"PjitFunction(f)": 2e-5, "ParseArguments": 5e-6, "a": 4e-6, "b": 3e-6, "c": 2e-6}, notes=("one", "two"),
)  # fmt: skip


def test_the_whole_text():
    assert profile_text(PROFILE).splitlines() == [
        "f(x: f32[8]): 1 ms a call, 800 µs on the device (mean of 3 calls)",
        "",
        "  time  share            line  source",
        "400 µs  50.0%  █████        3  y = x",
        "100 µs  12.5%  █           12  " + "x" * 55 + "…",
        "300 µs  37.5%  ████            no line known",
        "",
        "500 µs  62.5%  ██████  fusion  fusion.1",
        "300 µs  37.5%  ████       dot  dot.2  ×24",
        "",
        "device waits  200 µs (20% of the call)",
        "host          jit's call of f 20 µs, reading the arguments 5 µs, a 4 µs, b 3 µs",
        "note: one",
        "note: two",
    ]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"runs": 1}, "1 ms a call, 800 µs on the device (one call)"),
        ({"runs": 2}, "1 ms a call, 800 µs on the device (mean of 2 calls)"),
        # what recording makes a tenth longer is told beside it
        ({"plain_seconds": 0.92e-3}, "920 µs a call, 800 µs on the device (mean of 3 calls)"),
        (
            {"plain_seconds": 0.9e-3},
            "900 µs a call; recorded 1 ms, of which 800 µs on the device (mean of 3 calls)",
        ),
        # as is a device that was longer at it than the call takes
        (
            {"plain_seconds": 0.95e-3, "device_seconds": 0.96e-3},
            "950 µs a call; recorded 1 ms, of which 960 µs on the device (mean of 3 calls)",
        ),
    ],
)
def test_the_headline_of_the_text(changed, sentence):
    assert profile_text(replace(PROFILE, **changed)).splitlines()[0] == f"f(x: f32[8]): {sentence}"


def test_of_nothing_there_is_little_to_say():
    nothing = Profile("f", "()", 1, 0.0, 0.0, 0.0, ops=(), lines=(), unattributed=0.0)
    assert profile_text(nothing).splitlines() == [
        "f(): 0 s a call, 0 s on the device (one call)",
        "",
        "time  share",
        "",
        "device waits  0 s",
    ]


@pytest.mark.parametrize(("count", "last"), [(12, "12  y = x"), (13, "1 more line"), (15, "3 more lines")])
def test_twelve_lines_are_told_the_others_counted(count, last):
    lines = [line(number, 1e-5) for number in range(1, count + 1)]
    rows = profile_text(replace(PROFILE, ops=(), lines=lines, unattributed=0.0)).splitlines()[3:-5]
    assert len(rows) == min(count, 13)
    assert rows[-1].endswith(f"  {last}")
    assert rows[0].startswith("10 µs   1.2%  ▏")


@pytest.mark.parametrize(("count", "last"), [(6, "dot.6"), (7, "1 more kernel"), (8, "2 more kernels")])
def test_six_kernels_are_told_the_others_counted(count, last):
    ops = [op(f"dot.{number}", 4e-4, kind="dot") for number in range(1, count + 1)]
    rows = profile_text(replace(PROFILE, ops=ops)).splitlines()[7:-5]
    assert len(rows) == min(count, 7)
    assert rows[-1].endswith(f"  {last}")
    assert count < 8 or rows[-1].startswith("800 µs  100.0%")  # both together


def test_where_there_are_several_files_lines_say_which():
    lines = [line(3, 4e-4), line(4, 1e-4, file="/home/ada/model.py")]
    rows = profile_text(replace(PROFILE, lines=lines)).splitlines()
    assert rows[3].split() == ["400", "µs", "50.0%", "█████", "train.py:3", "y", "=", "x"]
    assert rows[4].split() == ["100", "µs", "12.5%", "█", "model.py:4", "y", "=", "x"]


PEAKS = Peaks("a machine", bandwidth=1e9, fma={"f32": 1e9}, overhead=1e-9)


def roofline(*ops, **changed):
    seconds = sum(each.seconds for each in ops)
    profile = replace(PROFILE, ops=ops, lines=(), device_seconds=seconds, notes=(), **changed)
    return build_roofline(profile, PEAKS)


def test_a_kernels_point_has_the_figures_of_its_row():
    # 1 GB/s and 1 GFLOP/s: 300,000 B take 300 µs, 100,000 operations 100 µs
    (point,) = roofline(op(flops=1e5, moved=3e5)).points
    assert (point.seconds, point.flops, point.bytes) == (5e-4, 1e5, 3e5)
    assert (point.intensity, point.rate) == (pytest.approx(1 / 3), pytest.approx(2e8))
    assert (point.least, point.bound) == (pytest.approx(3e-4), "memory")
    assert (point.file, point.line, point.lines) == (HERE.file, 7, ((HERE.file, 7, 1.0),))
    (point,) = roofline(op(flops=4e5, moved=3e5, stack=())).points
    assert (point.least, point.bound, point.file, point.line, point.lines) == (
        pytest.approx(4e-4),
        "compute",
        "",
        0,
        (),
    )
    (point,) = roofline(op(flops=1e5)).points
    assert (point.intensity, point.bound) == (float("inf"), "compute")
    (point,) = roofline(op()).points
    assert (point.intensity != point.intensity, point.bound) == (True, "overhead")
    assert roofline(op(seconds=0.0)).points == ()  # that took no time


def unknown(name, seconds, **more):
    return op(name, seconds, flops=nan, moved=nan, **more)


@pytest.mark.parametrize(
    ("ops", "notes"),
    [
        # two hundredths of the time are worth a note
        ((op(seconds=0.98, moved=1e8), unknown("a", 0.02)), ()),
        (
            (op(seconds=0.97, moved=1e8), unknown("a", 0.03)),
            ("the minimum costs of a (train.py:7) are unknown: 3% of the time",),
        ),
        (
            (op(seconds=0.5, moved=1e8), *(unknown(name, 0.1, stack=()) for name in "abcde")),
            ("the minimum costs of a, b, c and 2 more are unknown: 50% of the time",),
        ),
        (
            (op(seconds=0.7, moved=1e8), *(unknown(name, 0.1, stack=()) for name in "abc")),
            ("the minimum costs of a, b, c are unknown: 30% of the time",),
        ),
        # a tenth over the peaks is what measuring may be off by
        ((op(seconds=1.0, moved=1.09e9),), ()),
        (
            (op(seconds=1.0, moved=1.2e9), op("quick", seconds=0.5, moved=0.75e9)),
            (
                "quick is faster than the peaks of this machine allow (150%): they were measured while the machine "
                "was busy, or the kernel's data was in a cache; peaks(refresh=True) measures again",
            ),
        ),
        # of what takes little nobody doubts the peaks
        ((op(seconds=1.0, moved=1e8), op("quick", seconds=0.02, moved=1e8)), ()),
    ],
)
def test_a_note_is_of_what_takes_much_of_the_time(ops, notes):
    first, *others = roofline(*ops).notes
    assert first.startswith("a call takes ")
    assert tuple(others) == notes


def test_wasted_is_what_is_over_the_least_never_less_than_nothing():
    ops = [op(flops=1e5, moved=3e5), op("b", 1e-4, flops=1e5, moved=3e5), unknown("c", 1e-4)]
    wasted = [each.wasted for each in with_peaks(replace(PROFILE, ops=ops), PEAKS).ops]
    assert wasted == [pytest.approx(2e-4), 0.0, None]
