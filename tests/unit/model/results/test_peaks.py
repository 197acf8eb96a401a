"""What a machine's peaks say of a kernel: the least time, what holds it back, and which of two measurements count."""

from math import isnan, nan

import pytest

from explorer.model.results.roofline import Peaks

MACHINE = Peaks(
    "a machine",
    bandwidth=10e9,
    matmul={"f32": 100e9, "bf16": 200e9},
    fma={"f32": 20e9, "f64": 10e9},
    special={"exponential": 1e9},
    overhead=1e-6,
    caches={1_000: 80e9, 10_000: 40e9, 100_000: 20e9},
)


@pytest.mark.parametrize(
    ("machine", "dtype", "is_matmul", "rate"),
    [
        (MACHINE, "f32", True, 100e9),
        (MACHINE, "f32", False, 20e9),
        (MACHINE, "f16", True, 200e9),  # of what wasn't measured the fastest
        (MACHINE, "f16", False, 20e9),
        (Peaks("m", 1, fma={"f32": 20e9}), "f32", True, 20e9),  # no units of its own for products
        (Peaks("m", 1, matmul={"f32": 100e9}), "f32", False, 100e9),
        (Peaks("m", 1), "f32", True, 0.0),
    ],
)
def test_the_rate_is_that_of_the_type_and_of_the_units_for_it(machine, dtype, is_matmul, rate):
    assert machine.rate(dtype, is_matmul=is_matmul) == rate


@pytest.mark.parametrize(
    ("size", "rate"),
    [(1, 80e9), (1_000, 80e9), (9_999, 80e9), (10_000, 40e9), (50_000, 40e9), (100_000, 20e9), (10**9, 20e9)],
)
def test_between_two_sizes_the_smaller_ones_bandwidth_holds(size, rate):
    assert MACHINE.bandwidth_of(size) == rate


def test_a_larger_cache_that_is_faster_holds_for_smaller_sizes_too():
    machine = Peaks("m", 10e9, caches={1_000: 40e9, 10_000: 80e9})
    assert [machine.bandwidth_of(size) for size in (500, 5_000, 20_000)] == [80e9, 80e9, 80e9]
    assert Peaks("m", 10e9).bandwidth_of(500) == 10e9


def test_what_moves_in_one_run_decides_which_cache_holds_it():
    assert MACHINE.memory_seconds(20_000) == 20_000 / 40e9
    assert MACHINE.memory_seconds(20_000, runs=10) == 20_000 / 80e9
    assert MACHINE.memory_seconds(20_000, runs=0) == 20_000 / 40e9
    assert Peaks("m", 0.0).memory_seconds(20_000) == 0


@pytest.mark.parametrize(
    ("flops", "special", "seconds"),
    [
        (20e9, None, 1.0),
        (20e9, {"exponential": 1e9}, 19e9 / 20e9 + 1.0),
        (1e9, {"exponential": 2e9}, 2.0),  # more of these than there are operations
        (20e9, {"logistic": 1e9}, 19e9 / 20e9 + 1.0),  # it takes an exponential
        (20e9, {"sine": 1e9}, 1.0),  # nobody measured sines
        (nan, None, nan),
    ],
)
def test_operations_that_take_longer_are_counted_at_their_own_rate(flops, special, seconds):
    assert MACHINE.compute_seconds(flops, "f32", is_matmul=False, special=special) == pytest.approx(
        seconds, nan_ok=True
    )


def test_where_nothing_was_measured_operations_take_no_time_and_unknown_ones_are_unknown():
    machine = Peaks("m", 10e9)
    assert machine.compute_seconds(5e9, "f32", is_matmul=True) == 0
    assert isnan(machine.compute_seconds(nan, "f32", is_matmul=True))
    assert isnan(Peaks("m", 0.0).memory_seconds(nan))


def least_and_bound(flops, bytes_, seconds, **more):
    least = MACHINE.least_seconds(flops, bytes_, "f32", is_matmul=False, **more)
    return least, MACHINE.bound(flops, bytes_, "f32", is_matmul=False, seconds=seconds, **more)


@pytest.mark.parametrize(
    ("flops", "bytes_", "seconds", "least", "bound"),
    [
        (20e9, 10e9, 2.0, 1.0, "compute"),
        (2e9, 20e9, 2.0, 1.0, "memory"),
        (20e9, 20e9, 2.0, 1.0, "memory"),  # of equal ones
        (nan, 1e9, 2.0, nan, "unknown"),
        (1e9, nan, 2.0, nan, "unknown"),
        (0.0, 0.0, 9.0, 0.0, "overhead"),  # it has nothing to do, however long it took
        (0.0, 800, 1e-6, 1e-8, "overhead"),
        (0.0, 800, 1.0, 1e-8, "memory"),  # it took far longer than to start one
        (0.0, 80e9 * 1e-6, 1e-6, 2e-6, "memory"),
    ],
)
def test_a_kernel_is_held_back_by_what_takes_it_longest(flops, bytes_, seconds, least, bound):
    found = least_and_bound(flops, bytes_, seconds)
    assert (pytest.approx(found[0], nan_ok=True), found[1]) == (least, bound)


def test_a_kernel_that_runs_often_is_started_as_often():
    assert least_and_bound(0.0, 800 * 50, 50e-6, runs=50)[1] == "overhead"
    assert least_and_bound(0.0, 800 * 50, 50e-6, runs=0.5)[1] == "memory"


def test_of_two_measurements_of_a_machine_the_better_figures_count():
    one = Peaks("m", 5.0, {"f32": 1.0, "f64": 2.0}, {"f32": 9.0}, {"exp": 1.0}, 2.0, 0.0, {1: 7.0}, 3.0, True, ("old",))
    other = Peaks("m", 6.0, {"f32": 3.0, "bf16": 4.0}, {"f32": 8.0}, {}, 1.0, 5.0, {2: 1.0}, 2.0, False, ("new",))
    best = one.better(other)
    assert best == Peaks(
        "m",
        6.0,
        {"f32": 3.0, "f64": 2.0, "bf16": 4.0},
        {"f32": 9.0},
        {"exp": 1.0},
        1.0,
        5.0,  # 0 is for what wasn't measured
        {1: 7.0, 2: 1.0},
        3.0,
        False,
        ("new",),
    )
    assert other.better(one).overhead == 1.0
    assert one.better(one).is_provisional
    assert not other.better(one).is_provisional


def test_who_measured_beside_others_is_warned():
    assert Peaks("m", 1.0, notes=("a",)).warnings == ("a",)
    first, second = Peaks("m", 1.0, notes=("a",), is_provisional=True).warnings
    assert first == "a"
    assert second.startswith("the peaks were measured while other programs were running")
