"""Which size is the largest that fits, and how that is said."""

from math import nan

import pytest

from explorer.model.results.targets import LargestFit, Trial

MB = 10**6


def trial(size, fits, needed=None, **more):
    return Trial(size, fits, size * MB if needed is None else needed, **more)


def fit(*trials, **more):
    given = {"function": "step", "dimension": "batch", "device": "a chip", "target": "", "capacity": 100 * MB, **more}
    return LargestFit(**given, basis="the compiler says so", trials=trials)


@pytest.mark.parametrize(
    ("found", "figures"),
    [
        # size, the one that doesn't fit, whether that is the next one, what fits besides
        (fit(), (0, None, False, ())),
        (fit(trial(8, True)), (8, None, False, ())),
        (fit(trial(99, True), trial(100, False)), (99, 100, True, ())),
        (fit(trial(98, True), trial(100, False)), (98, 100, False, ())),
        (fit(trial(96, True), trial(104, False), multiple=8), (96, 104, True, ())),
        (fit(trial(96, True), trial(112, False), multiple=8), (96, 112, False, ())),
        (fit(trial(1, False)), (0, 1, False, ())),
        (fit(trial(8, True), trial(9, False), trial(10, False), trial(12, True)), (8, 9, True, (12,))),
    ],
)
def test_the_largest_is_the_last_below_which_all_fit(found, figures):
    end = found.too_large
    assert (found.size, end and end.size, found.is_exact, found.exceptions) == figures
    assert found.is_monotone is not bool(found.exceptions)
    assert (found.fit and found.fit.size) == (found.size or None)


@pytest.mark.parametrize(
    ("found", "headline"),
    [
        (fit(), "no size of batch was compiled."),
        (
            fit(trial(8, True)),
            "batch = 8 fits on a chip, the largest requested size, 8.0 MB of 100 MB; 1 size compiled.",
        ),
        (
            fit(trial(8, True), capacity=0),
            "batch = 8 fits on a chip, the largest requested size, 8.0 MB; 1 size compiled.",
        ),
        (
            fit(trial(8, True, nan)),
            "batch = 8 fits on a chip, the largest requested size, not known; 1 size compiled.",
        ),
        (
            fit(trial(1000, False)),
            "no batch fits on a chip: batch = 1,000 doesn't: 1.0 GB is more than the 100 MB available; "
            "1 size compiled.",
        ),
        (
            fit(trial(99, True), trial(100, False, error="out of memory")),
            "batch = 99 fits on a chip (99.0 MB of 100 MB), batch = 100 doesn't: out of memory; 2 sizes compiled.",
        ),
        (
            fit(trial(64, True), trial(128, False)),
            "batch = 64 fits on a chip (64.0 MB of 100 MB), batch = 128 doesn't: 128 MB is more than the 100 MB "
            "available; sizes between the two were not tried; 2 sizes compiled.",
        ),
        (
            fit(trial(8, True), trial(9, False, error="no"), trial(1200, True, 8 * MB), trial(1300, True, 8 * MB)),
            "batch = 8 fits on a chip (8.0 MB of 100 MB), batch = 9 doesn't: no, though 1,200, 1,300 fit again; "
            "4 sizes compiled.",
        ),
    ],
)
def test_the_result_is_said_in_a_sentence(found, headline):
    assert found.headline == headline


def test_as_text_each_size_has_a_line():
    found = fit(trial(8, True), trial(1000, False), notes=("a note",))
    assert len(found) == 2
    assert repr(found).splitlines()[1:] == [
        "             8  fits  8.0 MB of 100 MB",
        "         1,000  no    1.0 GB of 100 MB",
        "  note: a note",
    ]
    assert repr(found).startswith(f"LargestFit(step: {found.headline})\n")
