"""Iterators that a traced function goes through, and arguments that it changes."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.examples.linted import found, hits, piece

X = jnp.ones(3)

batches = iter([jnp.ones(3), jnp.zeros(3)])


def test_an_iterator_from_outside_is_found():
    def function(x):
        return x + next(batches)  # HIT

    [one] = hits("iterator", function, X)
    assert piece(one) == "next(batches)"
    assert "function(…, next(batches))" in one.fix.text


def test_loops_over_generators_and_files_are_found(tmp_path):
    numbers = (i for i in range(3))
    path = tmp_path / "numbers"
    path.write_text("1\n2\n")

    def function(x):
        for number in numbers:  # HIT
            x = x + number
        x = x + sum(int(line) for line in file)  # HIT
        return x + sum(itertools.islice(endless, 2))  # HIT

    endless = itertools.count()
    with open(path) as file:
        hits("iterator", function, X)


def test_iterators_of_the_functions_own_are_fine():
    layers = [1.0, 2.0]

    def function(x, key):
        keys = iter(jax.random.split(key))

        def draw():
            return jax.random.normal(next(keys), (3,))

        for layer, number in zip(layers, range(2), strict=True):
            x = x * layer + number
        return x + draw() + next(iter(layers)) + sum(y for y in layers)

    assert not found("iterator", function, X, jax.random.key(0))


buffer = np.zeros(3)


def changes_arguments(state, items, x):
    state["n"] = x  # HIT
    items.append(x)  # HIT
    state["deep"]["m"] += 1  # HIT
    taken = state.pop("n")
    return x + taken


def test_changing_a_copy_of_the_callers_containers_is_found():
    state, items = {"deep": {"m": 1.0}}, [X]
    findings = found("argument-mutation", changes_arguments, state, items, X)
    assert [one.text.split("  #")[0] for one in sorted(findings, key=lambda one: one.line)] == [
        "items.append(x)",
        'state["deep"]["m"] += 1',
    ]
    assert state == {"deep": {"m": 1.0}}


def test_what_is_changed_and_returned_is_fine():
    def step(state, x):
        state["n"] = state["n"] + 1
        state["all"].append(x)
        return state, x

    assert not found("argument-mutation", step, {"n": 0, "all": [X]}, X)


def test_what_is_changed_and_only_used_is_found():
    def step(items):
        items.append(X)  # HIT
        return sum(items)

    hits("argument-mutation", step, [X])


def test_taking_an_item_out_is_a_note():
    def step(batch):
        label = batch.pop("label")  # HIT
        return batch["x"] + label

    [one] = hits("argument-mutation", step, {"x": X, "label": X})
    assert one.severity == "note"


@pytest.mark.parametrize(
    ("operator", "cure"),
    [
        ("x[0] = 1.0", "x = x.at[0].set(1.0)"),
        ("x[i, :2] += y", "x = x.at[i, :2].add(y)"),
        ("x[...] *= 2", "x = x.at[...].multiply(2)"),
        ("x[0] //= 2", "x = x.at[0].set(x[0] // 2)"),
    ],
)
def test_an_array_can_not_be_changed(operator, cure, tmp_path):
    path = tmp_path / "snippet.py"
    path.write_text(f"def f(x, y, i=0):\n    {operator}\n    return x\n")
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    [one] = found("argument-mutation", space["f"], jnp.ones((3, 3)), 2.0)
    assert (one.severity, one.line, one.fix.text) == ("error", 2, cure)
    assert piece(one) == operator


def test_a_shared_numpy_buffer_is_a_note():
    def function(x):
        return x + jnp.asarray(buffer)  # HIT

    def copies(x):
        return x + jnp.array(buffer)

    [one] = hits("argument-mutation", function, X)
    assert one.severity == "note"
    assert not found("argument-mutation", copies, X)
