"""jit() beside plain Python: two worlds that are changed alike, in any order, stay alike; and so do their answers."""

import copy
import gc
import os
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import explorer as ex
from tests.support.state_worlds import (
    ARRAYS,
    CONSTANTS,
    HOLDERS,
    Layer,
    Thick,
    at,
    is_array,
    make_world,
    opened,
    places,
    put,
    remove,
    snapshot,
)

pytestmark = pytest.mark.slow

NUMBERS = st.integers(0, 10_000)


class Fault(Exception):
    pass


def total(root):
    """A number that depends on every array, constant, label and alias below a root: integers, so that it is exact."""
    seen = {}
    sums = [jnp.zeros((), "float32")]

    def walk(value, weight):
        inner = opened(value)
        if inner is None:
            if is_array(value) or isinstance(value, jax.core.Tracer):
                kind = sum(map(ord, str(jnp.asarray(value).dtype))) % 7 + getattr(value, "weak_type", False)
                sums.append(jnp.sum(jnp.asarray(value).astype("float32")) * weight + kind)
            else:
                sums.append(float(sum(map(ord, repr(value))) % 31 * weight))
            return
        if not isinstance(value, tuple):
            if id(value) in seen:
                sums.append(float(seen[id(value)] * weight))
                return
            seen[id(value)] = len(seen) + 1
        sums.append(float(sum(map(ord, type(value).__name__)) % 13))
        for label, item in sorted(inner, key=lambda pair: str(pair[0])):
            walk(item, (weight * 3 + sum(map(ord, str(label)))) % 11 + 1)

    walk(root, 1)
    return sum(sums)


def advance(state, x):
    """Change what is in the state, wherever it is; the answer is of what was there before."""
    answer = total(state) + jnp.sum(x)
    for holder, label in places(state):
        value = at(holder, label)
        if label == "fail" and value:
            raise Fault
        if isinstance(value, tuple) and len(value) == 2 and is_array(value[0]):
            put(holder, label, type(value)(*value) if hasattr(value, "_fields") else (value[1], value[0]))
        elif is_changed(value):
            put(holder, label, (jnp.asarray(value) + 1) % 8)
        elif label == "grows" and isinstance(value, list):
            value.append(jnp.sum(x))
    return answer


def is_changed(value):
    return (is_array(value) or isinstance(value, jax.core.Tracer)) and value.dtype == "float32"


class Worlds(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.muted = warnings.catch_warnings()
        self.muted.__enter__()
        warnings.simplefilter("ignore", ex.errors.RecompilationWarning)

    def teardown(self):
        self.muted.__exit__(None, None, None)

    @initialize()
    def start(self):
        self.plain, self.state = make_world(), make_world()
        plain, state = self.plain, self.state
        self.functions = {
            "advance": (lambda x: advance(plain, x), ex.jit(lambda x: advance(state, x), inputs=state, outputs=state)),
            "again": (
                lambda x: advance(plain, x) * 2,
                ex.jit(lambda x: advance(state, x) * 2, inputs=state, outputs=state),
            ),
            "read": (lambda x: total(plain) + x, ex.jit(lambda x: total(state) + x, inputs=state)),
            "a part": (
                lambda x: advance(plain.layers, x),
                ex.jit(lambda x: advance(state.layers, x), inputs=state.layers, outputs=state.layers),
            ),
        }
        self.layers = plain.layers, state.layers

    def both(self, number):
        """The same place in both worlds."""
        theirs, ours = places(self.plain), places(self.state)
        assert [label for _, label in theirs] == [label for _, label in ours]
        return [found[number % len(found)] for found in (theirs, ours)] if theirs else []

    @rule(
        which=st.sampled_from(["advance", "again", "read", "a part"]),
        x=st.sampled_from([1.0, 2, np.float32(3), "f32[2]", "i32[2]"]),
    )
    def call(self, which, x):
        x = ARRAYS[x]() if isinstance(x, str) else x
        plain, compiled = self.functions[which]
        before, arrays = snapshot(self.plain), leaves(self.state)
        if which == "a part" and getattr(self.state, "layers", None) is not self.layers[1]:
            return  # it is another list now
        theirs, error = outcome(plain, x)
        if error is not None:
            with pytest.raises(Exception):  # noqa: B017, PT011 - JAX's may be another class than NumPy's
                compiled(x)
            assert snapshot(self.state) == before
            assert all(a is b for a, b in zip(leaves(self.state), arrays, strict=True))
            assert which == "read" or self.rebuild(before)
            return
        np.testing.assert_array_equal(np.asarray(compiled(x)), np.asarray(theirs))
        assert snapshot(self.state) == snapshot(self.plain)
        if which == "read":
            assert all(a is b for a, b in zip(leaves(self.state), arrays, strict=True))

    def rebuild(self, before):
        """Where plain Python stopped halfway: the plain world starts anew from the other one, which is as it was."""
        vars(self.plain).update(vars(copied(self.state)))
        for name in vars(self.plain).keys() - vars(self.state).keys():
            delattr(self.plain, name)
        self.layers = (getattr(self.plain, "layers", None), self.layers[1])
        return snapshot(self.plain) == before

    @rule(which=st.sampled_from(["advance", "read"]), times=st.integers(1, 4))
    def call_again(self, which, times):
        for _ in range(times):
            self.call(which, 1.0)

    @rule(number=NUMBERS, kind=st.sampled_from(sorted(ARRAYS)))
    def set_an_array(self, number, kind):
        for holder, label in self.both(number):
            put(holder, label, ARRAYS[kind]())

    @rule(number=NUMBERS, kind=st.sampled_from(sorted(CONSTANTS)))
    def set_a_constant(self, number, kind):
        for holder, label in self.both(number):
            put(holder, label, CONSTANTS[kind]())

    @rule(number=NUMBERS, kind=st.sampled_from(sorted(HOLDERS)), array=st.sampled_from(sorted(ARRAYS)))
    def set_a_container(self, number, kind, array):
        for holder, label in self.both(number):
            put(holder, label, HOLDERS[kind](ARRAYS[array]()))

    @rule(number=NUMBERS)
    def replace_a_container_by_a_copy(self, number):
        for holder, label in self.both(number):
            value = at(holder, label)
            if not (isinstance(value, jax.Array) and value.is_deleted()):  # which nobody can copy
                put(holder, label, copy.copy(value))

    @rule(number=NUMBERS, other=NUMBERS)
    def give_one_thing_two_names(self, number, other):
        for (holder, label), (source, name) in zip(self.both(number), self.both(other), strict=True):
            put(holder, label, at(source, name))

    @rule(
        number=NUMBERS,
        name=st.sampled_from(["new", "grows", "weight", "fail", "a"]),
        kind=st.sampled_from(["f32[2]", "list", "none", "bool"]),
    )
    def add(self, number, name, kind):
        value = {**ARRAYS, **CONSTANTS}.get(kind)
        for holder, _ in self.both(number):
            new = value() if value is not None else []
            if isinstance(holder, dict):
                holder[name] = new
            elif hasattr(holder, "append"):
                holder.append(new)
            elif hasattr(holder, "__dict__") or name == "weight":
                object.__setattr__(holder, name, new)

    @rule(number=NUMBERS)
    def remove(self, number):
        for holder, label in self.both(number):
            remove(holder, label)

    @rule(number=NUMBERS)
    def delete_an_array(self, number):
        for holder, label in self.both(number):
            value = at(holder, label)
            if isinstance(value, jax.Array) and not value.is_deleted():
                copied = value + 0
                put(holder, label, copied)
                copied.delete()

    @rule(number=NUMBERS)
    def change_a_class(self, number):
        for holder, _ in self.both(number):
            if type(holder) in (Layer, Thick):
                holder.__class__ = Thick if type(holder) is Layer else Layer

    @rule(number=NUMBERS)
    def change_the_order(self, number):
        for holder, _ in self.both(number):
            entries = holder if isinstance(holder, dict) else getattr(holder, "__dict__", {})
            for key in sorted(entries, key=str):
                entries[key] = entries.pop(key)

    @rule(number=NUMBERS)
    def change_a_set_in_place(self, number):
        for holder, label in self.both(number):
            if isinstance(at(holder, label), set):
                at(holder, label).add(len(at(holder, label)))

    @rule()
    def collect(self):
        gc.collect(0)


def outcome(function, x):
    try:
        return function(x), None
    except (Fault, RuntimeError, TypeError, ValueError) as error:
        return None, error


def leaves(root):
    return [value for value in (at(*place) for place in places(root)) if is_array(value)]


def copied(root):
    """The same again, with the same arrays in it."""
    arrays = {id(array): array for array in all_arrays(root)}
    return copy.deepcopy(root, memo=arrays)


def all_arrays(root):
    found, seen, todo = [], set(), [root]
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        inner = opened(value)
        if inner is None and is_array(value):
            found.append(value)
        todo += [item for _, item in inner or ()]
    return found


Worlds.TestCase.settings = settings(
    max_examples=int(os.environ.get("EXAMPLES", "12")),
    stateful_step_count=16,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
test_two_worlds_stay_alike = Worlds.TestCase
