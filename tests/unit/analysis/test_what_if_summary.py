"""A what-if in words: each amount, each limit at its boundary."""

from math import nan

import pytest

from explorer.analysis.measure_summary import variant_diff, verdict, what_if_headline
from explorer.errors import NotRecordedError
from explorer.model.results.sweep import Difference, Variant, WhatIf
from explorer.model.results.timing import Ratio, Samples


def variant(name="x", ratio=None, size=1_000_000, *, timed=True, **more):
    memory = {} if size is None else {"temp": size}
    steady = Samples((1e-3,) * 40) if timed else None
    interval = None if ratio is None else Ratio(name, *ratio)
    return Variant(name, "donate", f"donating {name}", steady=steady, ratio=interval, memory=memory, **more)


PLAIN = variant("plain")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (variant(error="TypeError: no"), "failed: TypeError: no"),
        (variant(ratio=(0.5, 0.4, 0.6), size=1, is_same=True), "changes nothing: the program is the same"),
        # of memory, what is over a hundredth
        (variant(size=990_000), "needs as much memory"),
        (variant(size=989_000), "saves 11.0 kB of memory"),
        (variant(size=1_010_000), "needs as much memory"),
        (variant(size=1_011_000), "costs 11.0 kB of memory"),
        (variant(size=None), "was compiled; its memory is unknown"),
        # of time, what the interval shows
        (variant(ratio=(0.5, 0.4, 0.6)), "saves 50 % of time (40 … 60 %)"),
        (variant(ratio=(1.25, 1.2, 1.4)), "costs 25 % of time (20 … 40 %)"),
        (variant(ratio=(1.994, 1.9, 2.1)), "costs 99 % of time (90 … 110 %)"),
        (variant(ratio=(1.995, 1.9, 2.1)), "costs 2.0× the time (1.9 … 2.1×)"),
        (variant(ratio=(0.9, 0.8, 1.0)), "makes no measurable difference to the time (0.80 … 1.00×)"),
        (variant(ratio=(0.9, 0.8, 1.1), size=None), "makes no measurable difference to the time (0.80 … 1.10×)"),
        (variant(ratio=(0.5, 0.4, 0.6), size=400_000), "saves 600.0 kB of memory and 50 % of time (40 … 60 %)"),
        (variant(ratio=(2.0, 1.9, 2.1), size=1_500_000), "costs 500.0 kB of memory and 2.0× the time (1.9 … 2.1×)"),
        (
            variant(ratio=(0.5, 0.4, 0.6), size=1_500_000),
            "saves 50 % of time (40 … 60 %), but costs 500.0 kB of memory",
        ),
        # of the results, what is over float32's rounding
        (variant(size=400_000, difference=Difference(1e-6, 1e-6)), "saves 600.0 kB of memory"),
        (
            variant(size=400_000, difference=Difference(1e-3, 1.1e-6)),
            "saves 600.0 kB of memory (results differ by 1.1e-06 of the largest)",
        ),
        (
            variant(size=400_000, difference=Difference(nan, nan)),
            "saves 600.0 kB of memory (results can't be compared)",
        ),
    ],
)
def test_what_a_variant_brings(row, words):
    assert verdict(row, PLAIN) == words.replace("600.0 kB", "600 kB").replace("500.0 kB", "500 kB")


def tried(*rows, plain=PLAIN):
    return what_if_headline(WhatIf("f", "", [plain, *rows]))


FAST, FASTER = variant("fast", (0.8, 0.7, 0.9)), variant("faster", (0.5, 0.4, 0.6))
SMALL, SMALLER = variant("small", size=800_000), variant("smaller", size=700_000)
SLOW_AND_SMALL = variant("slow", (1.5, 1.4, 1.6), size=100_000)
BROKEN = variant("bad", error="no")


def test_the_two_that_save_most_are_named_time_before_memory():
    assert tried(FAST, SMALL, FASTER) == (
        "donating faster saves 50 % of time (40 … 60 %); donating fast saves 20 % of time (10 … 30 %)"
    )
    assert tried(SMALL, FAST) == ("donating fast saves 20 % of time (10 … 30 %); donating small saves 200 kB of memory")
    # one that costs time is worth as much as one that saves none: memory decides
    assert tried(SMALL, SMALLER, SLOW_AND_SMALL) == (
        "donating slow saves 900 kB of memory, but costs 50 % of time (40 … 60 %); "
        "donating smaller saves 300 kB of memory"
    )
    assert tried(SMALL) == "donating small saves 200 kB of memory"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ((), "nothing was tried"),
        ((BROKEN,), "nothing could be tried: donating bad failed"),
        ((BROKEN, variant()), "no variant measurably saves time or memory"),
        # a tenth that the interval doesn't exclude is worth a word
        ((variant(ratio=(1.0, 0.91, 1.1)),), "no variant measurably saves time or memory"),
        (
            (variant(ratio=(1.0, 0.88, 1.1)), variant(ratio=(1.0, 0.95, 1.1))),
            "no variant measurably saves time or memory; up to 12 % less time could be hidden in the noise",
        ),
        # not of the same program
        ((variant(ratio=(1.0, 0.8, 1.1), is_same=True),), "no variant measurably saves time or memory"),
    ],
)
def test_where_nothing_is_worth_having_it_says_so(rows, sentence):
    assert tried(*rows) == sentence


def test_where_no_time_was_measured_memory_alone_is_not_saved():
    assert tried(variant(timed=False), plain=variant("plain", timed=False)) == ("no variant measurably saves memory")


def test_what_was_not_compiled_has_no_diff():
    with pytest.raises(NotRecordedError, match="there is nothing to compare: bad was not compiled: no"):
        variant_diff(BROKEN)
