"""How hot paths are shown: as HTML that is complete without a script, and as a figure."""

import linecache
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.model.results.hot_paths import (
    CallTimes,
    HeldValue,
    HotEvent,
    HotPaths,
    HotRow,
    LeftStatement,
    Operation,
    ProposedFunction,
    RepeatedSequence,
)
from explorer.view.figure_svg import svg_of
from explorer.view.hotpath.curve import curve, describe, figure, points_of
from explorer.view.hotpath.html import content, fragment

ATTACK = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
WAYS = ["eager"] * 10 + ["both"] * 3 + ["compiled"] * 27


def looped(eager, compiled, ways=WAYS):
    """A loop whose calls are all there is to it."""
    seconds = [{"eager": eager, "both": eager + compiled, "compiled": compiled, "missed": eager}[way] for way in ways]
    starts = [sum(seconds[:i]) for i in range(len(seconds))]
    return CallTimes(tuple(range(1, len(ways) + 1)), tuple(starts), tuple(seconds), tuple(ways))


STEP = HotRow(
    "train_step", "train.py", 12, "compiled", eager_calls=13, compiled_calls=27, eager_seconds=0.0131,
    compiled_seconds=0.0016, eager_samples=3, compiled_samples=3, basis="both ways", compile_seconds=0.4, variants=1,
    holds=(HeldValue("loss", "global"), HeldValue("jnp", "global"), HeldValue("weights", "global", True)),
    times=looped(0.013, 0.0016),
)  # fmt: skip
LOG = HotRow(
    "log", "train.py", 30, "eager", "`float(…)` reads a value", "train.py", 31, "leave it an array", eager_calls=40,
    eager_seconds=0.002, eager_samples=40, basis="returned",
)  # fmt: skip
COLD = HotRow("helper", "train.py", 2)
PATHS = HotPaths((STEP, LOG, COLD), seconds=0.6, labels={"train.py": "cell [3]"})


class Page(HTMLParser):
    """Every tag with its attributes, and all that is text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.parts = [], []
        self.feed(html)
        self.text = " ".join(" ".join(self.parts).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.parts.append(data)

    def of(self, name):
        """The attributes of all tags of a class."""
        return [attributes for _, attributes in self.tags if name in (attributes.get("class") or "").split()]


def test_a_compiled_function_is_shown_with_what_it_gained_and_what_that_is_measured_on():
    text = Page(content(replace(PATHS, functions=(STEP,)))).text
    assert "8.2× 13.1 ms → 1.6 ms about 310 ms saved" in text
    assert "medians of 3 calls that waited for the results" in text
    assert "40: 13 eager, 27 compiled" in text
    assert "about 310 ms: 27 × 11.5 ms" in text
    assert "in 400 ms, in the background" in text
    assert "each call checks that loss and jnp are what they were compiled with" in text
    assert "the current value of weights at each call" in text
    assert "no call: the guarded values have not changed" in text
    assert "cell [3], line 12" in text


def test_what_missed_is_named():
    row = replace(STEP, misses={"SCALE": 2, "rate": 1})
    assert (
        "ran eagerly: 2 calls as SCALE had changed; 1 call as rate had changed" in Page(content(HotPaths((row,)))).text
    )


def test_what_stays_eager_says_why_in_which_line_and_the_cure():
    linecache.cache["train.py"] = (0, None, [*["\n"] * 30, "    print(float(loss))\n"], "train.py")
    try:
        page = Page(content(replace(PATHS, functions=(LOG,))))
    finally:
        del linecache.cache["train.py"]
    assert "why float(…) reads a value cell [3], line 31" in page.text
    assert "31 print(float(loss))" in page.text
    assert "fix leave it an array" in page.text
    assert "40 calls, 80 ms" in page.text


def test_what_was_never_hot_is_folded_away_below():
    page = Page(content(PATHS))
    assert "1 function not hot yet" in page.text
    assert "called by other functions alone" in page.text
    assert [attributes.get("data-key") for attributes in page.of("xf-one")] == ["train_step", "log"]


def test_a_compile_that_the_program_waited_for_is_no_gain():
    row = replace(STEP, is_background=False)
    text = Page(content(HotPaths((row,)))).text
    assert "310 ms saved" not in text
    assert "in 400 ms, while the program waited" in text


@pytest.mark.parametrize("is_on", [True, False])
def test_it_says_whether_it_is_still_on(is_on):
    text = Page(content(replace(PATHS, is_on=is_on))).text
    assert ("● on" in text) == is_on
    assert ("was on for 600 ms" if not is_on else "on for 600 ms") in text
    assert ("was on" in text) != is_on


def test_hostile_texts_are_texts():
    row = replace(LOG, name=ATTACK, reason=ATTACK, cure=ATTACK, file=ATTACK)
    held = replace(STEP, name=ATTACK, holds=(HeldValue(ATTACK, "global"),), misses={ATTACK: 1})
    page = Page(fragment(HotPaths((row, held), notes=(ATTACK,), labels={ATTACK: ATTACK}), ATTACK))
    assert [tag for tag, _ in page.tags if tag in ("img", "script")] == ["script"]
    svg_of(figure(HotPaths((row, held))))


def test_nothing_yet_is_said_in_the_headline():
    page = Page(content(HotPaths()))
    assert page.text.startswith("no function was called often")
    assert not page.of("xf-one")


# The curve.


def test_each_call_is_a_point_of_its_way_the_slow_ones_above_the_fast_ones():
    page = Page(curve(STEP, ()))
    points = [attributes for attributes in page.of("hp-point") if "style" in attributes]
    assert [point["class"].split("hp-")[-1] for point in points] == WAYS[:-1], "of the last, no call follows"
    heights = [float(re.search(r"bottom:([\d.]+)%", point["style"])[1]) for point in points]
    assert min(heights[:10]) > max(heights[13:])
    assert points[0]["title"] == "call 1, eager: 13 ms"
    assert "compiled, 26" in page.text


def test_the_picture_is_in_words_too():
    assert describe(STEP) == (
        "time from one call to the next, train_step: calls 1 to 10 eager, 13 ms each; calls 11 to 13 both ways, "
        "compared, 14.6 ms each; calls 14 to 39 compiled, 1.6 ms each."
    )


def test_calls_that_were_not_kept_are_a_gap_with_their_number():
    times = looped(0.013, 0.0016)
    late = CallTimes(
        (*times.numbers[:20], *(n + 1000 for n in times.numbers[20:])),
        *[getattr(times, name) for name in ("starts", "seconds", "ways")],
    )
    page = Page(curve(replace(STEP, times=late), ()))
    assert [gap["title"] for gap in page.of("hp-gap")] == ["1,001 more calls"], (
        "and the one before them, whose end is unknown"
    )
    assert "compiled, 1,026" in page.text


def test_calls_that_ran_while_it_was_compiled_stand_on_a_band():
    events = [HotEvent(0.05, "train_step", "compile"), HotEvent(0.11, "train_step", "compiled")]
    (band,) = [attributes for attributes in Page(curve(STEP, events)).of("hp-beside") if "style" in attributes]
    assert band["title"] == "compiled in the background in 60 ms"
    assert not [a for a in Page(curve(replace(STEP, is_background=False), events)).of("hp-beside") if "style" in a]


def test_a_band_that_no_call_stands_on_is_in_no_legend():
    events = [HotEvent(0.05, "train_step", "compile"), HotEvent(0.11, "train_step", "compiled")]
    assert len(Page(curve(STEP, events)).of("hp-beside")) == 2
    waited = Page(curve(replace(STEP, is_background=False), events))
    assert "compiled in 400 ms" in waited.text
    assert waited.of("hp-beside") == []


@pytest.mark.parametrize("compiled", [0.0130, 0.0131, 0.0120, 0.0016])
def test_labels_of_two_levels_never_lie_on_each_other(compiled):
    text = curve(replace(STEP, compiled_seconds=compiled), ())
    levels = re.findall(r'hp-level hp-\w+" style="bottom:([\d.]+)%"><b style="bottom:([-\d.]+)px"', text)
    bottoms = [float(up) * 1.5 + float(offset) for up, offset in levels]
    assert abs(bottoms[0] - bottoms[1]) >= 11.5


def test_where_jax_runs_ahead_the_mean_of_calls_is_shown_and_said():
    ways = ["eager"] * 10 + ["compiled"] * 61
    seconds = [0.01] * 10 + [1e-5] * 61
    gaps = [0.01] * 10 + [0.02 if i % 10 == 9 else 2e-5 for i in range(61)]
    starts = [sum(gaps[:i]) for i in range(71)]
    points = points_of(HotRow("f", times=CallTimes(tuple(range(1, 72)), tuple(starts), tuple(seconds), tuple(ways))))
    assert points.what == "time from one call to the next (compiled: means of 20, as JAX runs ahead)"
    assert points.times.seconds[:10] == pytest.approx([0.01] * 10)
    assert points.times.seconds[10:] == pytest.approx([0.002018] * 60)


@given(st.lists(st.floats(1e-6, 1.0), min_size=3, max_size=150), st.integers(1, 12))
def test_means_change_where_time_stands_but_never_how_much_there_is(gaps, eager):
    eager = min(eager, len(gaps) - 1)
    ways = ["eager"] * eager + ["compiled"] * (len(gaps) - eager)
    starts = [sum(gaps[:i]) for i in range(len(gaps))]
    seconds = [gap if way == "eager" else 1e-6 for gap, way in zip(gaps, ways, strict=True)]
    points = points_of(
        HotRow("f", times=CallTimes(tuple(range(1, len(gaps) + 1)), tuple(starts), tuple(seconds), tuple(ways)))
    )
    assert points.what.startswith("time from one call to the next")
    assert sum(points.times.seconds) == pytest.approx(starts[-1])
    assert all(0 <= at <= 100 for at in points.across)


def test_a_function_that_takes_little_of_its_loop_has_the_time_of_its_calls():
    starts = tuple(float(i) for i in range(40))
    times = replace(STEP.times, starts=starts)
    points = points_of(replace(STEP, times=times))
    assert points.what.startswith("time until a call returned")
    assert points.times.seconds == times.seconds


def test_the_figure_has_the_headline_and_the_curve():
    text = Page(svg_of(figure(PATHS))).text
    assert "train_step: 8.2× as fast, 13.1 ms → 1.6 ms" in text
    assert "log stays eager: float(…) reads a value (cell [3], line 31)" in text


def test_what_is_held_in_two_ways_is_named_once():
    holds = (HeldValue("train_step", "code"), HeldValue("loss", "global"), HeldValue("loss", "code"))
    text = Page(content(HotPaths((replace(STEP, holds=holds),)))).text
    assert "each call checks that loss is what it was compiled with" in text


def test_a_function_that_is_in_anothers_program_says_so():
    inner = replace(STEP, name="loss", state="comparing", inside="train_step", eager_calls=13, compiled_calls=0)
    paths = HotPaths((STEP, inner))
    text = Page(content(paths)).text
    assert "comparing" not in text
    assert "its calls are in the compiled program of train_step" in text
    assert paths.headline.startswith("`train_step` runs compiled, 8.2× as fast")
    assert "undecided" not in paths.headline
    assert "loss        inside" in repr(paths)


def test_loops_are_shown_as_functions_with_what_stays_and_with_the_stream_folded_into_repeats():
    matmul, tanh = (Operation(at, name, inputs=("f32[8,8]",), outputs=("f32[8,8]",)) for at, name in
                    enumerate(("matmul", "tanh")))  # fmt: skip
    repeat = RepeatedSequence("0" * 12, (matmul, tanh), (((-1, 0),), ((0, 0),)), (1, 3, 5), "train.py", 40, 41)
    text = "def update_x(x):\n    return jnp.tanh(x @ x)"
    paths = replace(
        PATHS,
        functions=(replace(STEP, name="update_x"),),
        proposed=(ProposedFunction("update_x", "train.py", 40, 41, text, 4),),
        left=(LeftStatement("train.py", 43, "`step` is a different number in each iteration", "keep it in an array"),),
        operations=8,
        repeats=(repeat,),
    )
    page = Page(content(paths))
    assert "made of the loop at cell [3], line 40 to 41; as a function to paste:" in page.text
    assert "def update_x(x): return jnp.tanh(x @ x)" in page.text
    assert "1 statement of loops left as written" in page.text
    assert "cell [3], line 43 `step` is a different number in each iteration keep it in an array" in page.text
    assert "the first 8 single operations, before anything ran compiled: 75% of them are repeats" in page.text
    assert "3 × 2 operations matmul → tanh cell [3], line 40 to 41" in page.text
