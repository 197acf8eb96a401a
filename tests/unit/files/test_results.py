"""A saved result comes back as it was, and shows the same; a file that is none, or is damaged, is refused."""

import json
import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.errors import ResultFileError
from explorer.files.results import FORMAT, _check, decode, encode
from explorer.model.results.memory_use import MemoryRow, MemoryUse
from explorer.model.results.profile_events import HOST, THUNK, Events, Op
from explorer.model.results.roofline import Point, Roofline
from explorer.model.results.statistics import Axis
from explorer.model.results.sweep import Sweep, SweepRow
from explorer.model.results.timing import Samples, Timing

FLOATS = st.floats()
TEXT = st.text(max_size=12)
SAMPLES = st.builds(Samples, st.lists(FLOATS, max_size=5).map(tuple), st.integers(1, 10**6), st.floats(0, 1))
TIMINGS = st.builds(
    Timing,
    TEXT,
    TEXT,
    SAMPLES,
    SAMPLES,
    st.none() | SAMPLES,
    st.lists(FLOATS, max_size=3).map(tuple),
    st.dictionaries(TEXT, FLOATS, max_size=3),
    st.lists(TEXT, max_size=3).map(tuple),
    st.dictionaries(TEXT, TEXT, max_size=3),
)


def double(x):
    return jnp.sin(x @ x) * 2


def measure(kind):
    x = jnp.ones((8, 8))
    match kind:
        case "Timing":
            return ex.time(double, x, seconds=0.05)
        case "Comparison":
            return ex.compare({"a": double, "b": jnp.tanh}, x, seconds=0.05)
        case "MemoryUse":
            return ex.memory(double, x)
        case "Sweep":
            return ex.sweep(lambda n: (jnp.ones(n) * 2).sum(), over={"n": [8, 16]}, seconds=0.02)
        case "WhatIf":
            return ex.what_if(double, x, seconds=0.02)
        case "Profile":
            return ex.profile(double, x, seconds=0.05)
        case "Peaks":
            return ex.Peaks("a machine", 10e9, {"f32": 1e11, "bf16": math.inf}, caches={32768: 3e11, 8: 1.0})
        case _:
            points = (Point("dot.1", "dot", "jit_f", 1.0, 2.0, math.nan, math.nan, 2.0, 0.5, "compute", "f.py", 3),)
            return Roofline("f", "(x: f32[8])", measure("Peaks"), points, ("a note",))


KINDS = ("Timing", "Comparison", "MemoryUse", "Sweep", "WhatIf", "Profile", "Peaks", "Roofline")


@pytest.fixture(scope="module", params=KINDS)
def result(request):
    return measure(request.param)


def content_of(result):
    return json.loads(encode(result))


def altered(result, **changes):
    """As format 1 was at first, without the checksum that would tell of any change."""
    content = content_of(result)
    del content["minor"], content["blake2b"]
    return json.dumps(content | changes, separators=(",", ":")).encode()


@given(TIMINGS)
def test_a_timing_of_any_numbers_comes_back(timing):
    loaded = decode(Timing, encode(timing))
    # By repr, since NaN is not itself; of a float it gives back every digit.
    for name in ("function", "signature", "warm_up", "stages", "notes", "environment"):
        assert repr(getattr(loaded, name)) == repr(getattr(timing, name))
    for one, other in zip(
        (loaded.first_call, loaded.steady, loaded.eager), (timing.first_call, timing.steady, timing.eager), strict=True
    ):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert repr((one.samples, one.calls, one.confidence)) == repr(
                (other.samples, other.calls, other.confidence)
            )


def test_a_result_comes_back_and_shows_the_same(result, tmp_path):
    path = tmp_path / "result.json"
    result.save(path)
    loaded = type(result).load(path)
    assert type(loaded) is type(result)
    assert loaded.to_text() == result.to_text()
    assert repr(loaded) == repr(result)
    # Of captures the bytes are compared: a stage is read anew.
    assert encode(loaded) == encode(result) == path.read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def test_the_captures_come_back_and_can_be_asked():
    varied = measure("WhatIf")
    loaded = decode(ex.types.WhatIf, encode(varied))
    for one, other in zip(varied.rows, loaded.rows, strict=True):
        assert (one.capture is None) == (other.capture is None)
        if one.capture is not None:
            assert one.capture.hlo.text == other.capture.hlo.text
    # One capture is one, however often it is referred to.
    assert loaded.rows[1].plain is loaded.rows[0].capture


def test_a_profile_comes_back_with_its_columns():
    profile = measure("Profile")
    loaded = decode(ex.Profile, encode(profile))
    assert loaded.ops == tuple(profile.ops)
    assert loaded.xspace == profile.xspace
    for name in ("thread", "start", "end", "kind", "what", "windows"):
        one, other = getattr(profile.events, name), getattr(loaded.events, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    assert loaded.flame().nodes == profile.flame().nodes


def test_numbers_of_numpy_are_saved_as_numbers():
    row = SweepRow((0,), {"n": np.float32(2)}, flops=np.float64(3), kernels=np.int64(1))
    loaded = decode(Sweep, encode(Sweep("f", (Axis("n", ("2",), (2.0,)),), [row])))
    assert loaded.rows[0].values == {"n": 2.0}
    assert (type(loaded.rows[0].kernels), loaded.rows[0].flops) == (int, 3.0)


def test_text_that_is_no_unicode_is_kept():
    peaks = ex.Peaks("\ud800 – ⌀", 1.0)
    assert decode(ex.Peaks, encode(peaks)) == peaks


def test_what_fails_to_be_written_leaves_what_was_there(tmp_path):
    path = tmp_path / "machine.json"
    measure("Peaks").save(path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        replace(measure("Peaks"), notes=(object(),)).save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_a_truncated_file_is_refused(result):
    data = encode(result)
    for size in {0, 1, 10, len(data) // 2, len(data) - 1}:
        with pytest.raises(ResultFileError):
            decode(type(result), data[:size])


def test_another_kind_a_newer_format_and_what_is_no_result_are_refused(tmp_path):
    peaks = measure("Peaks")
    with pytest.raises(ResultFileError, match=r"holds a Peaks, not a Timing\. Hint: explorer\.Peaks\.load"):
        decode(Timing, encode(peaks))
    with pytest.raises(ResultFileError, match=f"has format {FORMAT + 1}; this Explorer reads formats up to {FORMAT}"):
        decode(ex.Peaks, altered(peaks, format=FORMAT + 1))
    with pytest.raises(ResultFileError, match=r"holds a os\.system, not a Peaks"):
        decode(ex.Peaks, altered(peaks, kind="os.system"))
    ex.explore(double, jnp.ones((2, 2))).save(tmp_path / "double.capture")
    with pytest.raises(ResultFileError, match="opens captures"):
        ex.Peaks.load(tmp_path / "double.capture")
    with pytest.raises(FileNotFoundError):
        ex.Peaks.load(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"value": None},
        {"value": []},
        {"value": {}},
        {"value": {"device": 3, "bandwidth": 1.0}},
        {"value": {"device": "x", "bandwidth": "fast"}},
        {"value": {"device": "x", "bandwidth": True}},
        {"value": {"device": "x", "bandwidth": 10**400}},
        {"value": {"device": "x", "bandwidth": {"float": "1"}}},
        {"value": {"device": "x", "bandwidth": {"float": ["nan"]}}},
        {"value": {"device": "x", "bandwidth": 1.0, "__class__": "os.system"}},
        {"value": {"device": "x", "bandwidth": 1.0, "is_provisional": 1}},
        {"value": {"device": "x", "bandwidth": 1.0, "notes": "text"}},
        {"value": {"device": "x", "bandwidth": 1.0, "caches": {" 8": 1.0}}},
        {"captures": {}},
        {"captures": [{"size": 4, "zlib": "AAAA"}]},
        {"captures": [{"size": -1, "zlib": ""}]},
        {"format": "1"},
        {"format": 0},
        {"format": True},
        {"kind": []},
    ],
)
def test_a_file_with_something_of_another_type_is_refused(changes):
    with pytest.raises(ResultFileError):
        decode(ex.Peaks, altered(measure("Peaks"), **changes))


@given(st.binary(max_size=40), st.integers(0, 200))
def test_damage_is_refused_or_gives_a_result_of_the_right_types(noise, at):
    data = encode(measure("Peaks"))
    with_noise = data[:at] + noise + data[at + len(noise) :]
    try:
        loaded = decode(ex.Peaks, with_noise)
    except ResultFileError:
        return
    assert isinstance(loaded.device, str)
    assert isinstance(loaded.bandwidth, int | float)


def test_deep_nesting_is_refused():
    with pytest.raises(ResultFileError):
        decode(ex.Peaks, b'{"explorer":"result",' + b'"a":' + b"[" * 10**6)


AXIS = Axis("n", ("8", "16"), (8.0, 16.0))


@pytest.mark.parametrize(
    "result",
    [
        ex.types.Comparison({"a": Samples((1.0,))}, "b"),
        ex.types.Comparison({"a": Samples((1.0,)), "b": Samples((1.0, 2.0))}, "a"),
        Sweep("f", (), ()),
        Sweep("f", (AXIS,), (SweepRow((2,), {}),)),
        Sweep("f", (AXIS,), (SweepRow((0, 0), {}),)),
        Sweep("f", (replace(AXIS, numbers=(8.0,)),), ()),
        MemoryUse("f", "()", (AXIS,), (MemoryRow((-1,), {}),), "", 0),
        Roofline("f", "()", ex.Peaks("x", 1.0), (Point("d", "d", "m", *[1.0] * 6, "magic", "", 0),)),
        ex.types.WhatIf("f", "()", ()),
    ],
)
def test_a_result_that_refers_to_what_is_not_there_is_refused(result):
    with pytest.raises(ResultFileError, match="does not fit its format"):
        decode(type(result), encode(result))


EVENTS = Events(
    thread=np.zeros(2, np.int32),
    start=np.zeros(2),
    end=np.ones(2),
    kind=np.array([THUNK, HOST], np.int32),
    what=np.zeros(2, np.int64),
    threads=("main",),
    ops=(Op(1, "jit_f", "dot.1"),),
    names=("python",),
    windows=np.array([[0.0, 1.0]]),
)


@pytest.mark.parametrize(
    "changes",
    [
        {"thread": np.ones(2, np.int32)},
        {"kind": np.array([9, 9], np.int32)},
        {"what": np.array([1, 0])},
        {"what": np.array([0, -1])},
        {"start": np.zeros(3)},
        {"windows": np.zeros(2)},
        {"python": 1},
    ],
)
def test_events_that_refer_to_what_is_not_there_are_refused(changes):
    profile = ex.Profile("f", "()", 1, 1.0, 0.5, 0.5, (), (), 0.0, events=EVENTS)
    _check(decode(ex.Profile, encode(profile)))
    with pytest.raises(ResultFileError, match="does not fit its format"):
        decode(ex.Profile, encode(replace(profile, events=replace(EVENTS, **changes))))
