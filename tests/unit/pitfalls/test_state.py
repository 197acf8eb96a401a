"""What a traced function reads from outside: baked in, and stale when it has changed since."""

import jax.numpy as jnp
import numpy as np
import pytest

from explorer.pitfalls.rule_outside_state import stale_values
from explorer.pitfalls.tracing import gather
from tests.examples.linted import found, hits, piece

X = jnp.ones(3)

gain = 2.0
settings = {"bias": 1.0, "power": 2}
RATE = 0.1
never_written = 3.0
shape_of = (3,)
table = np.arange(3.0)


class Scaler:
    def __init__(self):
        self.scale = 2.0
        self.fixed = 3.0

    def __call__(self, x):
        return x * self.scale + self.fixed  # ATTRIBUTE

    def widen(self):
        self.scale = self.scale * 2


scaler = Scaler()


def reads_outside(x):
    y = x * gain  # HIT
    y = y + settings["bias"]  # HIT
    y = y + table  # HIT
    return y * RATE + never_written + jnp.zeros(shape_of)


def reads_power(x):
    return x ** settings["power"]


def retune():
    global gain
    gain = 3.0
    settings["bias"] = 2.0
    table[0] = 1.0


def test_what_something_else_writes_is_baked_in():
    first, second, third = hits("stale-closure", reads_outside, X)
    assert piece(first) == "gain"
    assert "`gain = 3.0` in line" in first.message
    assert "was 2.0" in first.evidence
    assert piece(second) == 'settings["bias"]'
    assert piece(third) == "table"
    assert "def reads_outside(…, gain)" in first.fix.text


def test_what_is_written_before_the_function_is_made_only_is_a_constant():
    def make(rate=None):
        if rate is None:
            rate = 0.1
        rate = rate * 2
        weights = jnp.ones(3)
        weights = weights * rate
        LAYERS = [1.0, 2.0]
        LAYERS.append(3.0)

        def step(x):
            return x * rate * weights * LAYERS[0]

        return step

    assert not found("stale-closure", make(), X)


def test_items_of_what_can_change_are_notes():
    rates, weights = [0.1, 0.2], {"w": jnp.ones(3)}

    def step(x):
        x = x * rates[0]  # HIT
        return x * weights["w"]  # HIT

    findings = hits("stale-closure", step, X)
    assert {one.severity for one in findings} == {"note"}
    assert "nothing in this file changes it later" in findings[0].evidence


def test_a_closure_that_is_written_later_is_found():
    power = 2

    def step(x):
        return x**power  # HIT

    def widen():
        nonlocal power
        power = 3

    [one] = hits("stale-closure", step, X)
    assert "`power = 3`" in one.message
    widen()


def test_an_attribute_that_a_method_writes_is_found():
    [one] = hits("stale-closure", Scaler.__call__.__get__(scaler), X, mark="ATTRIBUTE")
    assert piece(one) == "self.scale"
    assert "self.scale = self.scale * 2" in one.message


def test_the_same_name_in_another_function_is_another_variable():
    level = 2.0

    def step(x):
        return x * level

    def other():
        level = 3.0
        return level

    other()
    assert not found("stale-closure", step, X)


def test_a_name_of_the_module_that_a_function_has_for_itself_is_another_variable():
    def step(x):
        return x * never_written

    def other():
        never_written = 4.0
        return never_written

    other()
    assert not found("stale-closure", step, X)


@pytest.fixture
def restored():
    kept = dict(settings), scaler.scale, table.copy()
    yield
    global gain
    gain = 2.0
    settings.clear()
    settings.update(kept[0])
    scaler.scale = kept[1]
    table[:] = kept[2]


def test_recheck_tells_what_has_changed_since_the_trace(restored):
    global gain
    evidence = gather(reads_outside, [X], {})
    assert not stale_values(evidence)
    retune()
    stale = stale_values(evidence)
    assert [one.text.split("  #")[0] for one in stale] == [
        "y = x * gain",
        'y = y + settings["bias"]',
        "y = y + table",
    ]
    assert {one.severity for one in stale} == {"error"}
    assert stale[0].evidence == "`gain` was 2.0 at the trace and is 3.0 now"
    assert "not what it was" in stale[2].evidence


def test_recheck_sees_attributes_and_new_containers(restored):
    global settings
    evidence = gather(scaler, [X], {})
    scaler.scale = 5.0
    assert [piece(one) for one in stale_values(evidence)] == ["self.scale"]
    evidence = gather(reads_power, [X], {})
    before, settings = settings, {"bias": 1.0, "power": 7}
    try:
        assert [piece(one) for one in stale_values(evidence)] == ['settings["power"]']
    finally:
        settings = before


def test_recheck_is_quiet_about_equal_values(restored):
    evidence = gather(reads_outside, [X], {})
    settings["bias"] = 5.0
    settings["bias"] = 1.0
    scaler.scale = 2.0
    assert not stale_values(evidence)


REGISTER = {}
handlers = {"double": jnp.sin}


def register(name, function):
    REGISTER[name] = function
    handlers[name] = function


def test_a_register_of_functions_is_no_data():
    def step(x):
        return handlers["double"](x) * len(handlers) * len(REGISTER)

    assert not found("stale-closure", step, X)


def test_what_the_trace_makes_is_made_anew_in_the_next():
    class State:
        def __init__(self):
            self.count = 0
            self.all = [1.0]

        def add(self):
            self.count += 1

    def step(x):
        state = State()
        factors = [2.0]

        def inner(y):
            return y * state.count * state.all[0] * factors[0]

        state.add()
        factors.append(3.0)
        return inner(x)

    assert not found("stale-closure", step, X)
    assert not found("state-write", step, X)


def test_recheck_tells_of_another_array_of_the_same_type():
    scale = [jnp.float32(1)]
    evidence = gather(lambda x: x * scale[0], [X], {})
    scale[0] = jnp.float32(5)
    assert [one.evidence for one in stale_values(evidence)] == [
        "`scale[0]` was float32[] at the trace, and another float32[] is there now"
    ]


frames = []
defaults = [2.0]


def in_a_frame(function):
    def called(params, x):
        frames.append(params)
        result = function(x)
        frames.pop()
        return result

    return called


def reads_its_frame(x):
    return x * frames[-1]["w"]


def fills_the_frames():
    defaults.append(3.0)


def reads_defaults(x):
    return x * defaults[-1]


def test_a_stack_that_the_trace_pushes_to_and_pops_from_holds_nothing_from_before():
    assert not found("stale-closure", in_a_frame(reads_its_frame), {"w": X}, X)
    assert frames == []
    assert [one.severity for one in found("stale-closure", reads_defaults, X)] == ["warning"]
