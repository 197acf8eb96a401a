"""The static picture of a capture: every word stands in its box, and every box is as wide as what it stands for."""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple

import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.model.stage import Durations
from explorer.view.capture.html import picture
from explorer.view.capture.summary import summarize
from tests.examples.training import training_capture

SVG = "{http://www.w3.org/2000/svg}"
LETTER = 7.3  # px of a letter of 12 px, as it is laid out


class Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float


class Word(NamedTuple):
    x: float
    y: float
    text: str
    kind: str


def normalise(x):
    return (x - x.mean()) / x.std()


def two_steps(x):
    return jnp.tanh(normalise(x)) @ normalise(x * 2).T


@pytest.fixture(scope="module")
def summaries():
    of = {"small": ex.explore(two_steps, jnp.ones((8, 16))), "step": training_capture(2)}
    return {name: summarize(capture) for name, capture in of.items()}


@pytest.fixture(params=["small", "step"])
def summary(request, summaries):
    return summaries[request.param]


def drawn(summary):
    root = ElementTree.fromstring(picture(summary))
    boxes = [Box(*(float(each.get(name)) for name in Box._fields)) for each in root.iter(f"{SVG}rect")]
    words = [Word(float(t.get("x")), float(t.get("y")), t.text or "", t.get("class")) for t in root.iter(f"{SVG}text")]
    return root, boxes, [word for word in words if word.text]


def around(word, boxes):
    """The boxes that a word stands in: it begins right of their left edge, its baseline in their lower half."""
    return [
        box
        for box in boxes
        if box.x < word.x and word.x + LETTER * len(word.text) <= box.x + box.width + LETTER
        if box.y + box.height / 2 < word.y < box.y + box.height - 2
    ]


@pytest.mark.slow
def test_every_stage_group_and_step_that_is_named_stands_in_its_box(summary):
    _, boxes, words = drawn(summary)
    boxes = boxes[1:]  # the ground
    named = [word for word in words if word.kind in ("b", "w") and word.y > 40]
    assert named
    for word in named:
        assert around(word, boxes), word
    # A number stands behind its name, in the same box.
    for word in (word for word in words if word.kind == "m" and re.fullmatch(r"[\d,]+( each)?", word.text)):
        assert around(word, boxes), word


def test_nothing_stands_outside_of_the_picture_nor_upon_another(summary):
    root, boxes, words = drawn(summary)
    width, height = float(root.get("viewBox").split()[2]), float(root.get("viewBox").split()[3])
    assert all(box.x >= 0 and box.x + box.width <= width and box.y + box.height <= height for box in boxes)
    for word in words:
        assert word.x > 0
        assert word.x + LETTER * len(word.text) <= width + LETTER
        assert 12 < word.y < height
    rows = {}
    for word in sorted(words):
        rows.setdefault(word.y, []).append(word)
    for row in rows.values():
        for one, other in itertools.pairwise(row):
            assert one.x + LETTER * len(one.text) <= other.x + 0.11, (one, other)


def test_a_group_is_as_wide_as_its_share_of_the_kernels(summary):
    _, boxes, words = drawn(summary)
    outer = [box for box in boxes if box.y == 80]
    shares = [box.width + 1.5 for box in outer]
    sizes = [part.size for part in summary.groups.children]
    wide = [size / summary.groups.size * (960 - 32) for size in sizes]
    assert shares == pytest.approx([width for width in wide if width >= 2], abs=0.11)
    for box, size in zip(outer, [size for size, width in zip(sizes, wide, strict=True) if width >= 2], strict=True):
        numbers = [word.text for word in words if word.y == box.y + 18.5 and box.x < word.x < box.x + box.width]
        assert not numbers[1:] or numbers[-1] == f"{size:,}"


def test_the_rows_below_lie_within_the_one_above(summary):
    _, boxes, _ = drawn(summary)
    cells = [box for box in boxes if box.height == 28]
    assert {box.y for box in cells} == {80.0 + 30 * level for level in range(len({box.y for box in cells}))}
    for cell in (cell for cell in cells if cell.y > 80):
        above = [box for box in cells if box.y == cell.y - 30]
        assert any(box.x - 0.11 <= cell.x and cell.x + cell.width <= box.x + box.width + 0.11 for box in above), cell


@pytest.mark.parametrize(
    ("durations", "widths", "named"),
    [
        (Durations(trace=0.1, lower=0.1, compile=0.1), [100, 100, 100], ["trace 100 ms", "lower 100 ms", "XLA 100 ms"]),
        (Durations(trace=1e-6, lower=1e-6, compile=3.0), [2, 2, 300], ["XLA 3 s"]),  # a step has 2 px at least
        (Durations(trace=0.25, lower=0.25, compile=0.5), [75, 75, 150], ["XLA 500 ms"]),  # 80 px are none for a name
        (Durations(trace=1.0), [300], ["trace 1 s"]),
    ],
)
def test_what_compiling_took_is_a_bar_of_its_steps(summaries, durations, widths, named):
    from dataclasses import replace

    summary = summaries["small"]
    changed = replace(summary, capture=replace(summary.capture, durations=durations))
    _, boxes, words = drawn(changed)
    bar = [box for box in boxes if box.height == 16]
    assert [box.width for box in bar] == pytest.approx(widths, abs=0.11)
    assert [box.x for box in bar] == pytest.approx([16 + sum(widths[:at]) for at in range(len(widths))], abs=0.2)
    assert [word.text for word in words if word.kind == "w" and word.y > bar[0].y] == named
    # What compiled it stands behind the bar, on its line.
    behind = next(word for word in words if word.text.startswith("jax "))
    assert behind.x == pytest.approx(16 + sum(widths) + 14, abs=0.2)
    assert bar[0].y + 8 < behind.y < bar[0].y + 16


def test_without_times_the_picture_ends_with_its_rows(summaries):
    plain, timed = (picture(summaries["small"], with_times) for with_times in (False, True))
    assert "jax " in timed
    assert "jax " not in plain
    heights = [float(ElementTree.fromstring(text).get("viewBox").split()[3]) for text in (plain, timed)]
    assert heights[1] - heights[0] == 40
