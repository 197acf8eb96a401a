"""A capture is compiled once more with something changed: in Python, and as its page asks for it."""

import gc
import re
import threading
import weakref
from itertools import pairwise

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.model.results.sweep import Difference, Variant, WhatIf
from explorer.view.capture.what_if_link import WhatIfTrials, change_of
from explorer.view.registry import view_of


def doubled(x):
    return x * 2


@pytest.fixture(scope="module")
def capture():
    return ex.explore(doubled, jnp.ones(1000))


def test_what_is_changed_is_compiled_and_held_against_what_is(capture):
    tried = capture.what_if(donate=True, time=False)
    (row,) = tried.variants
    assert row.saved(tried.plain) == 4000
    # The compiler's own figure of what the user's call with the same donation takes.
    donating = jax.jit(doubled, donate_argnums=0).lower(jnp.ones(1000)).compile().memory_analysis()
    assert row.memory["alias"] == donating.alias_size_in_bytes == 4000


def test_all_that_is_asked_for_is_one_variant(capture):
    tried = capture.what_if(donate=0, precision="bfloat16", options={"xla_cpu_enable_fast_math": True}, time=False)
    (row,) = tried.variants
    assert row.name == "donate x + precision bfloat16 + xla_cpu_enable_fast_math=True"


def test_nothing_asked_for_and_what_is_no_option_are_refused(capture):
    with pytest.raises(ex.errors.OptionError, match="no change is requested"):
        capture.what_if()
    with pytest.raises(ex.errors.OptionError, match="precision is exact"):
        capture.what_if(precision="exact")


def test_a_capture_from_a_file_says_that_it_doesn_t_know_its_function(capture, tmp_path):
    capture.save(tmp_path / "f.capture")
    loaded = ex.load(tmp_path / "f.capture")
    assert not loaded.can_change
    with pytest.raises(ex.errors.NotRecordedError, match="isn't known in this session"):
        loaded.what_if(donate=True)


def test_a_function_that_holds_arrays_is_not_kept_by_its_capture():
    class Weights:
        pass

    weights = Weights()
    weights.array = jnp.ones(3)
    alive = weakref.ref(weights)
    function = (lambda held: lambda x: x * held.array)(weights)
    capture = ex.explore(function, jnp.ones(3))
    assert capture.can_change
    capture._repr_mimebundle_()  # its recording lets go of the trace
    del function, weights
    gc.collect()
    assert alive() is None
    with pytest.raises(ex.errors.NotRecordedError, match="is gone"):
        capture.what_if(donate=True)


def answers(trials, message):
    """All that a page gets for a message, until the last."""
    received, ended = [], threading.Event()

    def send(answer, buffers=()):
        received.append((answer, list(buffers)))
        if "tried" in answer or "failed" in answer:
            ended.set()

    trials.receive(message, send)
    assert ended.wait(120)
    return received


@pytest.mark.slow
def test_a_page_gets_progress_then_figures_and_the_program(capture):
    message = {"ask": "what-if", "of": 7, "change": {"donate": True}}
    *progress, (answer, buffers) = answers(WhatIfTrials(capture), message)
    assert [step["fraction"] for step, _ in progress] == sorted(step["fraction"] for step, _ in progress)
    assert all(step["what_if"] == 7 for step, _ in progress)
    plain, changed = answer["tried"]["pairs"]["memory"]
    assert plain - changed == 4000
    assert answer["tried"]["pairs"]["kernels"] == [1, 1]
    assert len(buffers) == 1


@pytest.mark.slow
def test_what_a_page_asks_wrongly_is_said_there(capture):
    ((answer, _),) = [last for last in answers(WhatIfTrials(capture), {"ask": "what-if", "of": 1, "change": "?"})[-1:]]
    assert "no change is requested" in answer["failed"]
    (answer, _) = answers(WhatIfTrials(capture), {"ask": "what-if", "of": 2, "change": {"options": "no_such=1"}})[-1]
    assert "No such compile option" in answer["tried"]["error"]
    assert answer["tried"]["pairs"]["memory"][1] is None


def test_it_can_be_cancelled_between_two_compiles(capture):
    trials, ended, received = WhatIfTrials(capture), threading.Event(), []

    def send(answer, buffers=()):
        received.append(answer)
        if answer.get("doing"):
            trials.receive({"ask": "cancel"}, send)
        if "failed" in answer or "tried" in answer:
            ended.set()

    trials.receive({"ask": "what-if", "of": 1, "change": {"donate": True}}, send)
    assert ended.wait(120)
    assert received[-1]["failed"] == "cancelled"


def test_what_a_page_sends_becomes_keywords():
    options = "xla_a=true, xla_b = 3,xla_c=fast"
    asked = {"donate": True, "remat": "", "precision": 3, "options": options, "seconds": 9}
    assert change_of(asked) == {"donate": True, "options": {"xla_a": True, "xla_b": 3, "xla_c": "fast"}}


def test_the_figures_of_a_row_stand_beside_each_other():
    measured = {"stages": {"trace": 0.01, "lower": 0.02, "compile": 0.05}, "memory": {"argument": 104_857_600}}
    row = Variant("remat", "remat", "rematerialising", kernels=1, difference=Difference(1.0, float("nan")), **measured)
    drawn = view_of(WhatIf).svg(WhatIf("f", "()", [row, row], (), {}))
    texts = re.findall(r'<text[^>]* x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)"[^>]*>([^<]+)<', drawn)
    lines = {}
    for x, y, anchor, text in texts:
        width = 6.7 * len(text)  # as Chromium sets them
        start = float(x) - (width if anchor == "end" else 0)
        lines.setdefault(y, []).append((start, start + width, text))
    assert "not comparable" in [text for *_, text in texts]
    for line in lines.values():
        for (_, end, left), (start, _, right) in pairwise(sorted(line)):
            assert end <= start, (left, right)
