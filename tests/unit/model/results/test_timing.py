"""What a timing says of itself: sentences, tables, charts."""

import re
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.model.results.timing import Samples, Timing
from explorer.view import chart as charts
from explorer.view.measure.timing import TimingView, calls_shown, histogram

SECONDS = st.floats(1e-7, 1e3, allow_nan=False)
SAMPLES = st.builds(Samples, st.lists(SECONDS, min_size=1, max_size=60).map(tuple), st.integers(1, 500), st.just(0.95))
TIMINGS = st.builds(
    Timing, st.just("f<x>"), st.just("(x: f32[8])"), SAMPLES, SAMPLES, st.none() | SAMPLES,
    st.lists(SECONDS, max_size=12).map(tuple),
    st.dictionaries(st.sampled_from(["trace", "lower", "compile", "run"]), SECONDS),
    st.lists(st.text(max_size=200), max_size=6).map(tuple),
)  # fmt: skip


def of(seconds, count=9):
    return Samples((seconds,) * count)


def timing(eager=0.03, steady=0.01, first=0.2, **more):
    stages = {"trace": 0.02, "lower": 0.01, "compile": first - 0.04, "run": 0.01}
    return Timing("f", "(x: f32[8])", of(first, 1), of(steady), eager and of(eager), (first, 0.02), stages, **more)


@pytest.mark.parametrize(
    ("eager", "steady", "first", "calls"),
    [(0.03, 0.01, 0.2, 10), (0.03, 0.01, 0.21, 10), (0.03, 0.01, 0.2101, 11), (0.03, 0.01, 0.005, 1),
     (0.01, 0.03, 0.2, None), (None, 0.01, 0.2, None)],
)  # fmt: skip
def test_the_break_even_is_the_first_call_with_which_compiling_took_no_longer(eager, steady, first, calls):
    found = timing(eager, steady, first).break_even
    assert found == calls
    if calls:
        assert first + (calls - 1) * steady <= calls * eager + 1e-12
        assert calls == 1 or first + (calls - 2) * steady > (calls - 1) * eager


@pytest.mark.parametrize(
    ("eager", "steady", "headline"),
    [
        (
            0.03,
            0.01,
            "f: 10 ms compiled, 3.0× faster than eager (2.8 … 3.2×); the 200 ms first call pays off after 10 calls",
        ),
        (0.01, 0.03, "f: 30 ms compiled, 3.0× slower than eager (2.8 … 3.2×): the 200 ms first call never pays off"),
        (0.01, 0.01, "f: 10 ms compiled, as fast as eager (0.94 … 1.06×)"),
        (None, 0.01, "f: 10 ms compiled; the first call took 200 ms"),
    ],
)
def test_the_headline_says_the_result_in_a_sentence(eager, steady, headline):
    assert timing(eager, steady).headline == headline


def test_no_speedup_is_claimed_that_the_intervals_don_t_hold():
    noisy = Samples((0.008, 0.02, 0.009, 0.019, 0.01, 0.018, 0.011, 0.017, 0.012))
    found = Timing("f", "()", of(0.2, 1), of(0.011), noisy)
    assert found.speedup_interval[0] < 1 < found.speedup_interval[1]
    assert found.headline == "f: 11 ms compiled, 12 ms eager (median 9 … 19 ms): no significant difference"
    assert found.break_even is None


def test_the_text_has_every_figure_in_the_same_lines():
    assert repr(timing(notes=("a note",))) == (
        "Timing(f(x: f32[8]))\n"
        "  steady      10 ms     9.7 … 10.3 ms with 95 %, 9 samples\n"
        "  eager       30 ms     29.1 … 30.9 ms with 95 %, 9 samples\n"
        "  first call  200 ms    trace 20 ms, lower 10 ms, compile 160 ms, run 10 ms\n"
        "  3.0× faster than eager (2.8 … 3.2×); the first call pays off after 10 calls\n"
        "  note: a note"
    )


def test_noise_is_said_in_words():
    assert of(0.01).noise == ""
    wide = Samples(tuple(0.01 * (1 + 0.4 * (i * 7 % 11) / 11) for i in range(33)))
    assert wide.is_noisy
    assert re.match(r"noisy: samples differ by ±\d+ %, their median is known to ±\d+ %", wide.noise)
    assert Samples((1.0, 2.0, 3.0)).noise == "only 3 samples: their range holds the median with 75 %"
    assert Samples((1.0,)).noise == "only one sample: no error estimate"
    assert (Samples(()).attained, Samples(()).noise) == (0.0, "no samples")
    slow = Samples((1.0,) * 20 + (2.0,) * 20)
    assert "drift so slowly that they count as" in slow.noise
    assert "it became" in slow.noise


def test_what_is_too_noisy_claims_no_time_anywhere():
    busy = Samples((0.02,) * 30, others=1.2, slowed=0.0, is_disturbed=True)
    found = Timing("f", "()", of(0.2, 1), busy, of(0.03))
    assert busy.noise == "too noisy: other programs used 1.2 cores while it was measured"
    assert found.headline.startswith("f: about 20 ms compiled (median 19.4 … 20.6 ms, too noisy), 30 ms eager")
    assert found.break_even is None, "others may have taken half of what 1.5 times is"
    assert "too noisy: 19.4 … 20.6 ms" in repr(found)
    assert "95 % sure" not in TimingView().svg(found)


def test_the_chart_of_what_is_too_noisy_says_so():
    pytest.importorskip("plotly")
    busy = Samples((0.02,) * 30, others=1.2, slowed=0.0, is_disturbed=True)
    assert "too noisy" in Timing("f", "()", of(0.2, 1), busy, of(0.03)).chart().description


def test_a_count_of_calls_that_rests_on_noisy_times_is_about():
    busy = Samples((0.001,) * 30, others=1.2, slowed=0.0, is_disturbed=True)
    found = Timing("f", "()", of(0.2, 1), busy, of(0.03))
    assert found.headline.endswith("pays off after about 7 calls")
    assert "after about 7 calls" in repr(found)


def test_samples_that_were_left_out_are_said():
    assert Samples((0.01,) * 30, left_out=10).noise == "10 of 40 samples left out: other programs ran meanwhile"
    slower = Samples((0.01,) * 30, others=0.0, slowed=0.21, is_disturbed=True)
    assert slower.noise == "too noisy: fixed work took 21 % longer than before while it was measured"


def test_the_interval_of_short_calls_has_what_runs_differ_by_whatever_they_compute():
    alone, many = (Samples((5e-6,) * 50, calls=calls) for calls in (1, 40))
    assert (alone.low, alone.high) == pytest.approx((4.85e-6, 5.15e-6))
    assert (many.low, many.high) == pytest.approx((4.7e-6, 5.3e-6))


def test_every_figure_is_in_the_frames():
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = timing().to_frame().set_index("what")
    assert list(frame.index) == ["eager", "trace", "lower", "compile", "run", "first call", "steady"]
    assert frame.loc["compile", "median"] == pytest.approx(0.16)
    assert frame.loc["steady", "samples"] == 9
    samples = timing().to_frame(samples=True)
    assert samples.groupby("what").size().to_dict() == {"eager": 9, "warm-up": 2, "steady": 9}


def test_the_curve_begins_with_eager_calls_and_its_compiled_part_with_the_first():
    eager, compiled = calls_shown(timing())
    assert eager == [0.03] * 9
    assert compiled == [0.2, 0.02] + [0.01] * 9
    assert calls_shown(timing(None))[0] == []


@given(SAMPLES)
def test_the_histogram_holds_every_sample_or_counts_it_as_beyond(samples):
    counts, borders, beyond = histogram(samples)
    assert sum(counts) + beyond == samples.count
    assert borders[0] < borders[-1]
    assert len(borders) == len(counts) + 1


@given(TIMINGS)
def test_any_timing_has_a_text_and_a_picture(value):
    assert repr(value).startswith("Timing(f<x>(x: f32[8]))")
    svg = TimingView().svg(value)
    assert svg.startswith("<svg")
    assert not re.search(r'="(nan|-?inf)"', svg)
    assert "f&lt;x&gt;" in svg


def test_a_timing_is_shown_as_a_chart_with_picture_table_and_text():
    pytest.importorskip("plotly", reason="plotly is not installed")
    value = timing(notes=("a <note>",))
    bundle = value._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.plotly.v1+json", "text/html", "text/plain"}
    assert bundle["text/plain"] == repr(value)
    texts = [label["text"] for label in bundle["application/vnd.plotly.v1+json"]["layout"]["annotations"]]
    assert texts[0] == "<b>10 ms compiled, 3.0× faster than eager (2.8 … 3.2×)</b>"
    assert "note: a &lt;note&gt;" in texts
    assert "<table>" in bundle["text/html"]
    assert "a &lt;note&gt;" in bundle["text/html"]
    chart = value.chart()
    assert chart.description.startswith(value.headline)
    assert "3.0× faster than eager" in chart.svg
    assert repr(chart) == "Chart(timing of f)"


def test_without_plotly_the_picture_is_shown_and_a_fault_leaves_the_text(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    value = timing()
    assert set(value._repr_mimebundle_()) == {"text/html", "text/plain"}

    def broken(_):
        raise RuntimeError("oh")

    monkeypatch.setattr("explorer.view.measure.timing._curve", broken)
    shown = value._repr_mimebundle_()
    assert shown["text/plain"].startswith(repr(value))
    assert "the view failed: RuntimeError: oh" in shown["text/plain"]
    assert charts.PLOTLY not in shown


def test_what_threads_share_in_some_microseconds_claims_nothing():
    shared = Samples((34e-6, 33e-6, 35e-6) * 20, calls=6, cores=1.4)
    assert shared.is_too_noisy
    assert "the call is so short" in shared.noise
    assert not replace(shared, cores=1.0).is_too_noisy
    long = replace(shared, samples=tuple(1000 * sample for sample in shared.samples))
    assert not long.is_too_noisy
    assert "threads" not in long.noise
