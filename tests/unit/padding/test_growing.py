"""Buckets that grow with the calls: which serves a call, when one is compiled, and when a size is worth its own."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from explorer.padding import transfer
from explorer.padding.growing import GrowingProgram, _power


def program(least=1, calls=None):
    """The function x + 1 of one row of n numbers, in buckets."""
    (n,) = export.symbolic_shape("n", constraints=[f"n >= {least}"])
    aval = SimpleNamespace(shape=(n,))

    def make(bucket):
        def run(sizes, arrays):
            if calls is not None:
                calls.append((bucket["n"], int(sizes["n"])))
            return [jnp.asarray(arrays[0]) + 1]

        return run

    return GrowingProgram(SimpleNamespace(in_avals=[aval], out_avals=[aval]), {"n": least}, make)


@pytest.mark.parametrize(
    ("size", "power"), [(0, 1), (1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (1023, 1024), (1024, 1024), (1025, 2048)]
)
def test_a_bucket_is_the_next_power_of_two(size, power):
    assert _power(size) == power


def test_calls_go_to_the_smallest_bucket_that_is_not_far_too_large():
    calls = []
    grown = program(calls=calls)
    for size in (60, 17, 9, 33, 8, 16):
        (result,) = grown.call({"n": size}, [np.arange(size, dtype=np.float32)])
        np.testing.assert_array_equal(result, np.arange(size) + 1)
    # 32 of 17 is half of 64; 16 of 9 a fourth, which is not past it; 8 an eighth.
    assert calls == [(64, 60), (64, 17), (64, 9), (64, 33), (8, 8), (64, 16)]
    assert [sizes for sizes, _ in grown.buckets] == [{"n": 64}, {"n": 8}]
    assert (grown.is_ready({"n": 9}), grown.is_ready({"n": 2}), grown.is_ready({"n": 1})) == (True, True, False)
    assert not grown.is_ready({"n": 65})


def test_of_several_buckets_the_smallest_serves():
    calls = []
    grown = program(calls=calls)
    for size in (8, 32, 6, 8):
        grown.call({"n": size}, [np.ones(size, np.float32)])
    assert calls == [(8, 8), (32, 32), (8, 6), (8, 8)]


def test_no_bucket_is_smaller_than_its_symbol_may_be():
    grown = program(least=5)
    grown.call({"n": 5}, [np.ones(5, np.float32)])
    assert [sizes for sizes, _ in grown.buckets] == [{"n": 8}]
    grown = program(least=9)
    grown.call({"n": 9}, [np.ones(9, np.float32)])
    assert grown._own((3,)) == (9,)


def test_a_size_is_worth_its_own_once_padding_took_as_long_as_a_compile(monkeypatch):
    grown = program()
    #             begun  called  ran    end
    ticks = iter([0.0,   1.0,    11.0,  12.0,
                  20.0,  21.0,   25.0,  26.0,
                  30.0,  31.0,   35.0,  36.0])  # fmt: skip
    monkeypatch.setattr(transfer, "perf_counter", lambda: next(ticks))
    array = [np.ones(3, np.float32)]
    grown.call({"n": 3}, array)
    assert grown.buckets == [({"n": 4}, 10.0)]
    # 1 s to pad, 1 s to cut, and of 10 s in the program the fourth that computes padding.
    assert grown._served[(3,)].spent == pytest.approx(1 + 1 + 10 / 4)
    assert not grown.is_worth_its_own({"n": 3})
    grown.call({"n": 3}, array)
    assert grown._served[(3,)].spent == pytest.approx(4.5 + 1 + 1 + 4 / 4)
    assert not grown.is_worth_its_own({"n": 3})
    grown.call({"n": 3}, array)
    assert grown._served[(3,)].spent == pytest.approx(10.5)
    assert grown.is_worth_its_own({"n": 3})
    assert not grown.is_worth_its_own({"n": 4})


def test_a_size_that_was_given_up_is_worth_its_own_at_once():
    grown = program()
    grown.give_up({"n": 7})
    assert grown.is_worth_its_own({"n": 7})
    assert not grown.is_worth_its_own({"n": 6})


def test_a_bucket_is_prepared_once_and_calls_find_it_compiled():
    traced = []
    (n,) = export.symbolic_shape("n", constraints=["n >= 1"])
    aval = SimpleNamespace(shape=(n,))

    def run(sizes, arrays):
        traced.append(arrays[0].shape)
        return [arrays[0] + 1]

    grown = GrowingProgram(SimpleNamespace(in_avals=[aval], out_avals=[aval]), {"n": 1}, lambda bucket: jax.jit(run))
    array = [np.arange(3, dtype=np.float32)]
    grown.prepare({"n": 3}, array)
    ((sizes, seconds),) = grown.buckets
    assert sizes == {"n": 4}
    assert seconds > 0
    grown.prepare({"n": 4}, [np.ones(4, np.float32)])
    np.testing.assert_array_equal(grown.call({"n": 3}, array)[0], [1, 2, 3])
    assert grown.buckets == [(sizes, seconds)]
    assert traced == [(4,)]
