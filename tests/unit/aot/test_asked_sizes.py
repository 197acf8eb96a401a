"""However Python asks for a size, an executable of all sizes answers as a trace for that size does."""

import functools
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.capture.agreement import differ

pytestmark = pytest.mark.slow

TABLE = {4: 2.0}


def from_another_thread(n):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(n == 4))
    thread.start()
    thread.join()
    return answers[0]


def as_int(n):
    try:
        return int(n)
    except Exception:
        return 1


def as_index(n):
    try:
        return [1.0, 2.0, 3.0, 4.0, 5.0][n]
    except Exception:
        return 1.0


@functools.lru_cache
def kept(n):
    return 2.0 if n == 4 else 3.0


def matched(n):
    match n:
        case 4:
            return 2.0
        case _:
            return 3.0


def either(answer):
    return 2.0 if answer else 3.0


WAYS = {
    "==": lambda x, n: either(n == 4),
    "!=": lambda x, n: either(n != 4),
    "== of a float": lambda x, n: either(n == 4.0),
    "== the other way": lambda x, n: either(4 == n),  # noqa: SIM300
    "in a tuple": lambda x, n: either(n in (4, 8)),
    "in a list": lambda x, n: either(n in [4, 8]),
    "in a set": lambda x, n: either(n in {4, 8}),
    "in a dict": lambda x, n: either(n in TABLE),
    "in a range": lambda x, n: either(n in range(4, 5)),
    "get": lambda x, n: TABLE.get(n, 3.0),
    "get of a shape": lambda x, n: {(4,): 2.0}.get(x.shape, 3.0),
    "setdefault": lambda x, n: {4: 2.0}.setdefault(n, 3.0),
    "pop": lambda x, n: {4: 2.0}.pop(n, 3.0),
    "a look-up": lambda x, n: TABLE[n] if n in TABLE else 3.0,  # noqa: SIM401
    "sets that meet": lambda x, n: either({n} & {4}),
    "a subset": lambda x, n: either({n} <= {4, 5}),
    "the length of a set": lambda x, n: float(len({n, 4})),
    "the length of a dict": lambda x, n: float(len({n: 1, 4: 2})),
    "index": lambda x, n: float([4, n].index(n)),
    "count": lambda x, n: float([4, 8].count(n)),
    "isinstance": lambda x, n: either(isinstance(n, int)),
    "type": lambda x, n: either(type(n) is int),
    "an f-string": lambda x, n: either(f"{n}" == "4"),
    "str": lambda x, n: either(str(n) == "4"),
    "repr": lambda x, n: float(len(repr(n))),
    "format": lambda x, n: either("{}".format(n) == "4"),  # noqa: UP032
    "%": lambda x, n: either("%s" % n == "4"),  # noqa: UP031
    "another thread": lambda x, n: either(from_another_thread(n)),
    "int in a try": lambda x, n: float(as_int(n)),
    "an index in a try": lambda x, n: as_index(n),
    "if": lambda x, n: 2.0 if n - 4 else 3.0,
    "not": lambda x, n: 2.0 if not (n - 4) else 3.0,
    "and": lambda x, n: float((n - 4) and 2),
    "a remainder": lambda x, n: 2.0 if n % 2 else 3.0,
    "is": lambda x, n: either(n is TABLE.get("4", 4)),
    "hash": lambda x, n: either(hash(n) == hash(4)),
    "== of a shape": lambda x, n: either(x.shape == (4,)),
    "match": lambda x, n: matched(n),
    "NumPy's ==": lambda x, n: either((np.array(n) == 4).any()),
    "sorted": lambda x, n: float(sorted([n, 4], key=str)[0] == n),
    "max": lambda x, n: either(max((n, 1), (4, 2)) == (n, 1)),
    "hasattr": lambda x, n: either(hasattr(n, "bit_length")),
    "an attribute": lambda x, n: float(n.real) if hasattr(n, "real") else 9.0,
    "lru_cache": lambda x, n: kept(n),
    "size": lambda x, n: either(x.size == 4),
    "len": lambda x, n: either(len(x) == 4),
    "<": lambda x, n: either(n < 5),
    "divmod": lambda x, n: either(divmod(n, 4) == (1, 0)),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_is_that_of_the_size(way, tmp_path):
    def function(x):
        return x * WAYS[way](x, x.shape[0])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        executable = ex.compile(function, args=[ex.InputInfo(((2, 4, 16),), jnp.float32)])
    for n in (2, 3, 4, 5, 8, 16):
        x = jnp.arange(1.0, n + 1)
        wanted = function(x)
        np.testing.assert_array_equal(executable(x), wanted)
        scanned = jax.lax.scan(lambda total, row: (total, executable(row)), 0, jnp.stack([x, x]))[1]
        np.testing.assert_array_equal(scanned, jnp.stack([wanted, wanted]))
    if not caught:  # it asks for one of the smallest sizes: that one has a program of its own, all others share one
        executable.save(tmp_path / "e.explorer")
        loaded = ex.Executable.load(tmp_path / "e.explorer")
        for n in (2, 4, 7, 8):
            x = jnp.arange(1.0, n + 1)
            np.testing.assert_array_equal(loaded(x), function(x))
        return
    [warning] = caught
    assert warning.category is ex.errors.TracedPerShapeWarning
    assert "test_asked_sizes.py, line" in str(warning.message)
    with pytest.warns(ex.errors.TracedPerShapeWarning, match="for these sizes alone"):
        executable.save(tmp_path / "e.explorer")
    loaded = ex.Executable.load(tmp_path / "e.explorer")
    for n in (2, 4, 8):
        x = jnp.arange(1.0, n + 1)
        np.testing.assert_array_equal(loaded(x), function(x))
    with pytest.raises(ex.errors.InputShapeError, match="no program for"):
        loaded(jnp.ones(7))


def test_what_fails_at_one_of_the_sizes_is_told_with_its_line():
    def function(x):
        if isinstance(x.shape[0], int) and x.shape[0] == 2:
            raise ValueError("too short")
        return x + 1

    with pytest.warns(
        ex.errors.TracedPerShapeWarning, match=r"(?s)a trace for x_0 = 2 fails: ValueError.*at .*test_asked_sizes"
    ):
        executable = ex.compile(function, args=[ex.InputInfo(((2, 4, 16),), jnp.float32)])
    np.testing.assert_array_equal(executable(jnp.zeros(5)), np.ones(5))


def test_programs_are_compared_by_what_they_compute():
    def traced(function, *arrays):
        return jax.jit(function).trace(*arrays).jaxpr

    x = jnp.ones((3, 4))
    assert not differ(traced(lambda x: x.sum(0).sum(), x), traced(lambda x: x.sum(), x))
    assert differ(traced(lambda x: x.sum() * 1.01, x), traced(lambda x: x.sum(), x))
    assert differ(traced(lambda x: x.sum(0), x), traced(lambda x: x.sum(1), x))
    assert not differ(traced(lambda x: jnp.log(-jnp.abs(x)), x), traced(lambda x: x * jnp.nan, x))
    half = x.astype(jnp.bfloat16)
    assert not differ(traced(lambda x: x.sum(0).sum(), half), traced(lambda x: x.sum(), half))
