"""A profile's sentences, rows and boxes on figures made by hand: what each says, and where its marks stand."""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from math import nan

import pytest

from explorer.analysis.profile_trees import flame
from explorer.model.graph import Frame
from explorer.model.results.profile import LineTime, Profile
from explorer.model.stage import Source
from explorer.view.measure import profile as message
from explorer.view.measure.profile.chart import flame_picture
from explorer.view.measure.profile.picture import described, headline, hot, picture, plain
from tests.examples.profiles import ops_of

SVG = "{http://www.w3.org/2000/svg}"


def line(number, seconds, *, file="a.py", text="y = x", near=0.0):
    return LineTime(file, number, text, seconds, seconds / 10, 1, None, nan, nan, seconds - near, seconds + near)


def profile(*lines, device=10.0, wall=10.0, gap=0.0, unattributed=0.0, ops=(), runs=1, **more):
    return Profile("f", "()", runs, wall, device, gap, ops, lines, unattributed, **more)


HEAD = "f: 10 s a call"

# Words ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([line(3, 6.0), line(4, 2.0)], HEAD + "; 60% of the device's time is line 3 y = x"),
        ([line(3, 6.0, text="")], HEAD + "; 60% of the device's time is line 3 "),
        (
            [line(3, 6.0), line(4, 2.0, file="/x/b.py")],
            HEAD + "; 60% of the device's time is a.py, line 3 y = x",
        ),
        (
            [line(3, 3.0), line(4, 2.9)],
            HEAD + "; a tie: lines 3 and 4 take 29% to 30% of the device's time each",
        ),
        ([line(3, 3.0), line(4, 3.0)], HEAD + "; a tie: lines 3 and 4 take 30% of the device's time each"),
        (
            [line(3, 3.0), line(4, 3.0, file="/x/b.py"), line(5, 3.0)],
            HEAD + "; a tie: a.py, line 3, b.py, line 4 and a.py, line 5 take 30% of the device's time each",
        ),
        (
            [line(n, 2.0) for n in range(3, 7)],
            HEAD + "; no line dominates: 4 take 20% of the device's time each",
        ),
        ([], HEAD),
    ],
)
def test_the_sentence_names_the_hottest_line_or_those_that_tie(lines, text):
    assert plain(headline(profile(*lines)).text) == text


def test_without_lines_the_longest_kernel_is_named_and_names_and_code_are_code():
    first, second = ops_of([("a", 1, "", ()), ("b", 3, "", ())])
    ops = [replace(first, share=0.25), replace(second, share=0.75)]
    assert headline(profile(ops=ops, device=4.0, wall=4.0)).text == [
        ("f", True), (": 4 s a call", False), ("; 75% of the device's time is ", False), ("b", True),
    ]  # fmt: skip
    assert headline(profile(line(3, 6.0))).text[-1] == ("y = x", True)
    assert headline(profile(line(3, 6.0, text="y" * 64))).text[-1] == ("y" * 64, True)
    assert headline(profile(line(3, 6.0, text="y" * 65))).text[-1] == ("y" * 63 + "…", True)


@pytest.mark.parametrize(
    ("gap", "wall", "waits"),
    [
        (0.999, 10.0, ""),
        (1.0, 10.0, "the device waited 10% of the time: 1 s a call"),
        (1.0, 0.0, ""),
    ],
)
def test_from_a_tenth_of_the_time_on_waiting_is_a_sentence(gap, wall, waits):
    assert plain(headline(profile(gap=gap, wall=wall)).waits) == waits


def test_the_facts():
    assert headline(profile(gap=0.5)).facts == ["device 10 s", "waiting 500 ms", "without a line 0%", "one call"]
    made = ops_of([(name, 1, "", ()) for name in "abc"])
    ops = [replace(op, wasted=wasted) for op, wasted in zip(made, (1.5, None, 1.0), strict=True)]
    many = profile(ops=ops, unattributed=0.5, runs=2000, wall=11.0, plain_seconds=10.0)
    assert headline(many).facts == [
        "device 10 s", "waiting 0 s", "without a line 5.0%, 500 ms", "wasted 2.5 s (25%)", "mean of 2,000 calls",
    ]  # fmt: skip
    longer = replace(many, wall_seconds=11.01)  # more than a tenth
    assert headline(longer).facts[-1] == "11 s a call while recorded, split into these parts"
    assert headline(profile(device=0.0, unattributed=0.0)).facts[2] == "without a line 0%"


# The picture ----------------------------------------------------------------------------------------------------------


def drawn(svg):
    """The boxes of a picture, x, y, width, height and colour, without its ground, and its texts: x, y, what."""
    root = ElementTree.fromstring(svg)
    boxes = [
        (*(float(part.get(name)) for name in ("x", "y", "width", "height")), part.get("fill"))
        for part in root.iter(f"{SVG}rect")
        if part.get("class") != "ground"
    ]
    texts = [(float(part.get("x")), float(part.get("y")), part.text) for part in root.iter(f"{SVG}text")]
    return boxes, texts, (float(root.get("width")), float(root.get("height")))


@pytest.mark.parametrize(
    ("part", "colour"),
    [(1.0, "#ec7a1c"), (2.0, "#ec7a1c"), (0.0, "#fdefe4"), (-1.0, "#fdefe4"), (0.25, "#f4b580")],
)
def test_the_hotter_the_nearer_to_orange(part, colour):
    # From white, 12 % of the way and 88 % more by the root of the part: at a quarter 56 %, 255 - 0.56 × (255 - 236) …
    assert hot(part) == colour


def test_a_bar_is_whole_for_the_hottest_line_and_its_part_for_the_others():
    boxes, texts, (_, height) = drawn(picture(profile(line(3, 4.0), line(4, 1.0), unattributed=2.0)))
    tracks, bars = boxes[::2], boxes[1::2]
    assert [bar[2] for bar in bars] == [150, 37.5, 75]  # 4, 1 and 2 of 4
    assert {(track[2], track[4]) for track in tracks} == {(150, "#f1f2f3")}
    assert [bar[4] for bar in bars] == [hot(1), hot(0.25), "#9aa1ab"]
    assert [(bar[0], bar[1]) for bar in bars] == [(track[0], track[1]) for track in tracks]
    assert {after[1] - before[1] for before, after in itertools.pairwise(bars)} == {24}
    # Each row's texts are on one line, that of its bar.
    rows = {y: [text for _, at, text in texts if at == y] for y in {at for _, at, _ in texts}}
    assert [rows[bar[1] + 12] for bar in bars] == [
        ["3", "4 s", "40%", "y = x"], ["4", "1 s", "10%", "y = x"], ["2 s", "20%", "no line is known"],
    ]  # fmt: skip
    assert all(bar[1] + bar[3] < height for bar in bars)
    assert all(x >= 16 for x, *_ in texts)


def test_a_line_that_takes_next_to_nothing_is_not_drawn_as_hot():
    # A tenth of the device's time is a whole bar: a line of a hundredth has a tenth of one.
    boxes, *_ = drawn(picture(profile(line(3, 0.1), line(4, 0.0))))
    assert [box[2] for box in boxes[1::2]] == [15, 1.5]


def test_figures_end_where_their_column_ends():
    _, texts, _ = drawn(picture(profile(line(3, 4.0), line(12345, 1.25))))
    ends = [(round(x + 7.3 * len(text), 1), text) for x, _, text in texts]
    for names, end in ((("3", "12345"), 68), (("4 s", "1.25 s"), 298), (("40%", "12%"), 348)):
        assert [at for at, text in ends if text in names] == [pytest.approx(end, abs=0.11)] * 2


def test_twelve_lines_are_drawn_each_file_under_its_name_and_the_rest_is_summed():
    lines = [line(n, 13.0 - 0.1 * n, file="a.py" if n < 6 else "/x/b.py") for n in range(14)]
    shown = [text for *_, text in drawn(picture(profile(*lines)))[1]]
    assert shown[2] == "a.py"
    assert shown[3 + 4 * 6] == "b.py"
    assert [text for text in shown if text.isdigit()] == [str(n) for n in range(12)]
    assert shown[-1] == "and 2 more lines: 23.5 s"
    ys = [y for _, y, _ in drawn(picture(profile(*lines)))[1]]
    assert ys == sorted(ys)
    assert drawn(picture(profile(*lines[:13])))[1][-1][2] == "and 1 more line: 11.8 s"
    assert "more line" not in drawn(picture(profile(*lines[:12])))[1][-1][2]
    one_file = [text for *_, text in drawn(picture(profile(*lines[:2])))[1]]
    assert "a.py" not in one_file


def test_the_invitation_and_what_waits_are_lines_of_their_own():
    plainly, waiting = (drawn(picture(profile(line(3, 4.0), gap=gap), invites=True)) for gap in (0.0, 2.0))
    assert [text for *_, text in waiting[1]][1] == "the device waited 20% of the time: 2 s a call"
    assert [text for *_, text in waiting[1]][-1] == "trust the notebook for the interactive view"
    assert waiting[2][1] - plainly[2][1] == 21
    assert plainly[1][-1][1] < plainly[2][1]
    without = drawn(picture(profile(line(3, 4.0))))
    assert plainly[2][1] - without[2][1] == 20


def test_the_picture_in_words():
    assert described(profile(line(3, 4.0), line(4, 1.0), gap=2.0)) == (
        "f: 10 s a call; 40% of the device's time is line 3 y = x. the device waited 20% of the time: 2 s a call. "
        "device 10 s, waiting 2 s, without a line 0%, one call. line 3 y = x: 4 s, 40%; line 4 y = x: 1 s, 10%"
    )


# The flame graph ------------------------------------------------------------------------------------------------------


def test_in_a_flame_graph_a_box_is_as_wide_as_its_time_and_stands_under_its_caller():
    ops = ops_of([("dot", 3, "net/attention", ()), ("add", 1, "net", ()), ("copy", 2, "", ())])
    boxes, texts, size = drawn(flame_picture(flame(ops, "scope", "f")))
    # 936 pixels are 6 s; a pixel between boxes; a row is 22 pixels.
    dark, grey = hot(1), "#e4e6e9"
    assert sorted(boxes) == sorted([
        (12, 12, 935, 20, grey), (12, 34, 623, 20, grey), (12, 56, 467, 20, grey), (12, 78, 467, 20, dark),
        (480, 56, 155, 20, hot(1 / 3)), (636, 34, 311, 20, grey), (636, 56, 311, 20, hot(2 / 3)),
    ])  # fmt: skip
    assert {(text, x - 4, y - 14) for x, y, text in texts} == {
        ("f 100%", 12, 12), ("net 67%", 12, 34), ("attention 50%", 12, 56), ("dot 50%", 12, 78),
        ("add 17%", 480, 56), ("no named scope 33%", 636, 34), ("copy 33%", 636, 56),
    }  # fmt: skip
    assert size == (960, 24 + 4 * 22)


@pytest.mark.parametrize(
    ("seconds", "name", "shown"),
    [
        (100, "abc", "abc 10%"),  # 93.6 pixels: 11 letters
        (100, "abcdefg", "abcdefg 10%"),
        (100, "abcdefgh", "abcdefgh"),  # with its share it is too long
        (100, "abcdefghijkl", "abcdefghij…"),
        (33, "abc", "abc"),  # 30.9 pixels: 3 letters
        (31, "abc", None),  # 29.0 pixels: 2 letters, which say nothing
    ],
)
def test_a_box_says_as_much_as_it_has_room_for(seconds, name, shown):
    ops = ops_of([(name, seconds, "", ()), ("rest", 1000 - seconds, "", ())])
    texts = [text for *_, text in drawn(flame_picture(flame(ops, "scope", "f")))[1]]
    assert [text for text in texts if text.startswith("abc")] == [shown] * bool(shown)


def test_what_is_under_a_pixel_or_too_deep_is_not_drawn():
    ops = ops_of([("small", 0.9, "", ()), ("rest", 936 - 0.9, "", ())])
    assert len(drawn(flame_picture(flame(ops, "scope", "f")))[0]) == 3
    ops = ops_of([("small", 1.0, "", ()), ("rest", 936 - 1.0, "", ())])
    boxes = drawn(flame_picture(flame(ops, "scope", "f")))[0]
    assert len(boxes) == 4
    assert min(box[2] for box in boxes) == 0.5
    deep = ops_of([("dot", 1, "/".join(f"s{n}" for n in range(40)), ())])
    boxes, _, (_, height) = drawn(flame_picture(flame(deep, "scope", "f")))
    assert len(boxes) == 25  # the root, and 24 below it
    assert max(y + high for _, y, _, high, _ in boxes) <= height == 24 + 25 * 22


def test_small_boxes_that_were_put_together_are_lighter_than_any():
    made = flame(ops_of([(f"op{n}", 1, "", ()) for n in range(9)]), "scope", "f").pruned(4)
    assert "#f2f3f4" in [box[4] for box in drawn(flame_picture(made))[0]]


# Source lines in the message ------------------------------------------------------------------------------------------

TEXT = """\
import jax

def outer(x):

    def inner(y):
        a = 1
        # one

        # two

        # three
        b = a
        return b @ y


    return inner(x)

z = outer(1)
"""


@pytest.mark.parametrize(
    ("hot_line", "shown"),
    [
        # Three lines of context, and those that say what it is in; a blank line at an end is left out.
        (12, [3, 5, 9, 10, 11, 12, 13]),
        (6, [3, 5, 6, 7, 8, 9]),
        (5, [3, 5, 6, 7]),
        (16, [3, 13, 14, 15, 16]),  # the next block of the file is none of its context
        (3, [1, 2, 3, 4, 5, 6]),  # at the left edge every neighbour is
        (18, [16, 17, 18]),
        (1, [1, 2, 3]),
    ],
)
def test_a_hot_line_has_its_neighbours_and_the_heads_around_it(hot_line, shown):
    rows = message._rows(Source("a.py", "a.py", TEXT), {hot_line})
    assert [number for number, _ in rows] == shown
    assert [text for _, text in rows] == [TEXT.splitlines()[number - 1] for number in shown]


def test_lines_that_the_source_does_not_have_are_left_out_and_wide_ones_cut():
    # As when the file was edited since: it has become shorter than what ran.
    assert message._rows(None, {1}) == []
    assert [number for number, _ in message._rows(Source("a.py", "a.py", "x = 1"), {1, 7})] == [1]
    wide = Source("a.py", "a.py", "x" * 401)
    assert message._rows(wide, {1}) == [(1, "x" * 400)]


@pytest.mark.parametrize(
    ("given", "sent"), [(1.23456789, 1.2346), (0.0, 0.0), (None, None), (nan, None), (float("inf"), None)]
)
def test_numbers_travel_with_five_digits_and_what_none_is_as_none(given, sent):
    assert message._number(given) == sent


def test_a_frame_is_sent_as_its_file_and_line():
    ops = ops_of([("dot", 3, "", (Frame("a.py", "main", 7),))])
    sent = message.message(profile(line(7, 3.0), ops=ops, device=3.0))["flames"]["stack"]
    by_name = {sent["names"][name]: at for at, name in enumerate(sent["name"])}
    at = next(at for name, at in by_name.items() if re.match("main", name))
    assert (sent["frame"][at], sent["parent"][at], sent["seconds"][at]) == (["a.py", 7], 0, 3.0)
    assert sent["kernel"][by_name["dot"]] == 0
    assert sent["kernel"][at] == -1
