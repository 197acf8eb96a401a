"""A hot function's compiles are in the ledger as the user's function's, with what its guard saw change."""

import gc
import runpy
from contextlib import contextmanager
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.errors import NotRecordedError
from explorer.model.events.ledger import Ledger

X = jnp.linspace(0.1, 1.0, 64)
MODEL = """
import jax.numpy as jnp

RATE = 2.0
CONFIG = {"turns": 3}
WEIGHTS = jnp.ones(64)

def step(x, scale=1):
    for _ in range(CONFIG["turns"]):
        x = jnp.tanh(x * RATE) + WEIGHTS * scale
    return x
"""


@pytest.fixture
def model(tmp_path):
    """A module of its own for each test: what was compiled before is remembered by file and line."""
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    return SimpleNamespace(**runpy.run_path(str(file)), file=str(file))


@pytest.fixture(autouse=True)
def _worth_it_however_busy_the_machine_is(monkeypatch):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)


@contextmanager
def hot_paths(*functions, **options):
    """Hot paths that look at these functions from their first call on."""
    with ex.auto_compile(**{"background": False, "seconds": 0.0, "threshold": 5, **options}) as hot:
        for function in functions:
            hot.nominate(function)
        yield hot


def compiles(ledger, name="step"):
    """Compiles of one function."""
    return [event for event in ledger.events if event.function == name and event.kind == "compile"]


def own(ledger):
    """What isn't a single operation of JAX's."""
    return [event for event in ledger.events if event.key is None or not event.key.function.eager]


def test_the_first_compile_is_the_users_function_at_its_place_with_its_arguments(model):
    with ex.watch() as ledger, hot_paths(model.step):
        for _ in range(12):
            model.step(X)
    assert [(event.kind, event.function) for event in own(ledger)] == [
        ("trace", "step"), ("lower", "step"), ("compile", "step"),
    ]  # fmt: skip
    (event,) = compiles(ledger)
    function = event.key.function
    assert (function.file, function.line) == (model.file, 8)
    assert [leaf.path for leaf in event.key.leaves] == ["x", "WEIGHTS"]
    assert [(static.path, static.value) for static in event.key.statics] == [("scale", "1")]
    assert event.reason.kind == "first"
    assert event.reason.text == "the first call of `step` that hot paths compile"
    assert event.call_site.text == "model.step(X)"
    assert not ledger.recompiles()
    assert not ledger.faults


@pytest.mark.parametrize("background", [False, True])
def test_a_global_that_changed_is_named_with_its_values_and_its_cure(background, model):
    with ex.watch() as ledger, hot_paths(model.step, background=background) as hot:
        while not any(row.state == "compiled" for row in hot.functions):
            for _ in range(12):
                model.step(X)
        model.step.__globals__["RATE"] = 3.0
        while len(compiles(ledger)) < 2:
            for _ in range(12):
                model.step(X)
    _, event = compiles(ledger)
    reason = event.reason
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("guard", "RATE", "2.0", "3.0")
    assert reason.text == "`RATE`, which the hot function `step` reads, was 2.0 and is now 3.0"
    assert reason.fix == "RATE = jnp.asarray(RATE)  # arrays may change from call to call; or pass it as an argument"
    assert event.call_site.text == "model.step(X)"


def test_each_way_to_be_compiled_anew_is_named_by_what_changed(model):
    with ex.watch() as ledger, hot_paths(model.step):
        for _ in range(12):
            model.step(X)
        for _ in range(12):
            model.step(X.reshape(2, 32)[:, :1])
        for _ in range(12):
            model.step(X, 2)
        model.CONFIG["turns"] = 4
        for _ in range(12):
            model.step(X)
        with jax.default_matmul_precision("highest"):
            for _ in range(12):
                model.step(X)
    reasons = [event.reason for event in compiles(ledger)]
    assert [(reason.kind, reason.leaf) for reason in reasons] == [
        ("first", ""),
        ("rank", "x.ndim"),
        ("static", "scale"),
        ("guard", "CONFIG['turns']"),
        ("context", "jax_default_matmul_precision"),
    ]
    assert str(reasons[3]) == "`CONFIG['turns']`, which the hot function `step` reads, was 3 and is now 4"
    assert reasons[2].fix == "scale = jnp.asarray(scale)  # as an array, if no shape and no Python branch depends on it"
    assert not any("jax.jit" in reason.fix for reason in reasons)
    assert all(event.kind in ("trace", "lower", "compile") for event in own(ledger))
    assert not ledger.faults


def test_a_closure_cell_and_a_function_that_is_called_are_guards_too():
    rate = 2.0

    def helper(x):
        return x + 1

    def inner(x):
        return jnp.tanh(helper(x)) * rate

    with ex.watch() as ledger, hot_paths(inner):
        for _ in range(12):
            inner(X)
        rate = 5.0
        for _ in range(12):
            inner(X)

        def helper(x):
            return x + 2

        for _ in range(12):
            inner(X)
    reasons = [event.reason for event in compiles(ledger, "inner")]
    assert [(reason.kind, reason.leaf, reason.before, reason.after) for reason in reasons[1:]] == [
        ("guard", "rate", "2.0", "5.0"),
        ("guard", "helper", "function helper", "another function helper"),
    ]


def test_an_array_that_is_read_and_gets_another_shape_is_named(model):
    with ex.watch() as ledger, hot_paths(model.step) as hot:
        for _ in range(12):
            model.step(X)
        model.step.__globals__["WEIGHTS"] = jnp.ones(1)
        for _ in range(12):
            model.step(X)
    last = compiles(ledger)[-1].reason
    assert (last.kind, last.leaf, last.before, last.after) == ("shape", "WEIGHTS.shape[0]", "64", "1")
    assert hot.report()["step"].misses == {"WEIGHTS": 1}


def test_the_users_own_jit_of_the_same_function_is_no_earlier_call_of_it(model):
    jitted = jax.jit(model.step)
    jitted(X)
    with ex.watch() as ledger, hot_paths(model.step):
        jitted(X[:1])
        for _ in range(12):
            model.step(X)
    assert [event.reason.kind for event in compiles(ledger)][-1] == "first"


def test_hot_paths_that_are_turned_on_anew_compile_anew_and_say_so(model):
    with ex.watch() as ledger:
        for _ in range(2):
            with hot_paths(model.step):
                for _ in range(12):
                    model.step(X)
    last = compiles(ledger)[-1].reason
    assert last.text == "`step` was compiled for calls like this before: other hot paths have a copy of their own"


def test_options_that_are_only_tried_are_no_recompiles(model):
    with ex.watch() as ledger, hot_paths(model.step, mode="max-autotune"):
        for _ in range(12):
            model.step(X)
    assert len(compiles(ledger)) == 1


def test_an_event_leads_to_the_capture_as_long_as_the_copy_is_there(model):
    with ex.watch() as ledger, hot_paths(model.step) as hot:
        for _ in range(12):
            model.step(X)
        capture = ledger.capture(compiles(ledger)[0])
        assert "tanh" in capture.hlo.text
        assert any(frame.line == 10 for frame in capture.jaxpr.graph.frames)
        model.step.__globals__["RATE"] = 3.0
        for _ in range(12):
            model.step(X)
        gc.collect()
        with pytest.raises(NotRecordedError, match="a value that it relies on changed"):
            ledger.capture(compiles(ledger)[0])
        assert hot.functions


def test_it_survives_a_file(tmp_path, model):
    with ex.watch() as ledger, hot_paths(model.step):
        for _ in range(12):
            model.step(X)
        model.step.__globals__["RATE"] = 3.0
        for _ in range(12):
            model.step(X)
    path = tmp_path / "ledger.jsonl"
    ledger.save(path)
    loaded = Ledger.load(path)
    assert [event.reason for event in loaded.events] == [event.reason for event in ledger.events]
    assert compiles(loaded)[-1].key.guard == ("RATE", "2.0", "3.0")
