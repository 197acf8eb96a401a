"""What a machine can do at most: measured with programs that do the work, once, and kept."""

import math
import os
import re
import stat

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.measure import machine
from explorer.measure import peaks as module
from explorer.measure.peaks import Budget
from explorer.model.results.roofline import Peaks

QUICK = Budget(0.0, least=1, most=1)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A cache folder of its own, a session that knows nothing yet, and a machine that is quick to be measured."""
    measured = []

    def measure(environment):
        measured.append(environment)
        return Peaks(
            "here", 1e9 * len(measured), {"f32": 2e9}, {"f32": 1e9}, caches={1024: 5e9}, environment=environment
        )

    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_kept", {})
    monkeypatch.setattr(module, "_measure", measure)
    monkeypatch.setattr(module, "load", lambda: 0.0)
    return measured


def another_session(monkeypatch):
    monkeypatch.setattr(module, "_kept", {})


def the_file():
    return next(module.cache_folder().glob("peaks-*.json"))


# -- kept


def test_a_machine_is_measured_once(kept, monkeypatch, capsys):
    first = ex.peaks()
    assert ex.peaks() is first
    another_session(monkeypatch)
    assert ex.peaks() == first
    assert len(kept) == 1
    assert capsys.readouterr().err == "explorer: measuring this machine once, about 5 s\n"


def test_what_is_compiled_to_measure_is_in_no_ledger(kept, monkeypatch):
    def measure(environment):
        jax.jit(lambda x: x * 3)(jnp.ones(7))
        return Peaks("here", 1e9, environment=environment)

    monkeypatch.setattr(module, "_measure", measure)
    with ex.watch() as ledger:
        ex.peaks()
    assert not ledger.events


def test_what_the_figures_depend_on_is_told_apart(kept, monkeypatch):
    ex.peaks()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    ex.peaks()
    assert len(kept) == 2
    assert len(list(module.cache_folder().glob("*.json"))) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"format":1', '"format":0'),
        lambda text: re.sub(r'"bandwidth":[\d.]+', '"bandwidth": "fast"', text),
        lambda text: re.sub(r'"bandwidth":[\d.]+', '"bandwidth": 0.0', text),
        lambda text: text.replace('"jax"', '"xaj"'),
        lambda text: text.replace('"matmul"', '"mulmat"'),
    ],
)
def test_what_cannot_be_read_is_measured_again_and_replaced(kept, monkeypatch, damage):
    ex.peaks()
    the_file().write_text(damage(the_file().read_text()))
    another_session(monkeypatch)
    ex.peaks()
    assert len(kept) == 2
    another_session(monkeypatch)
    ex.peaks()
    assert len(kept) == 2


def test_bytes_that_are_no_text_are_measured_again(kept, monkeypatch):
    ex.peaks()
    the_file().write_bytes(b"\xff\xfe\x00")
    another_session(monkeypatch)
    ex.peaks()
    assert len(kept) == 2


def test_where_nothing_can_be_kept_it_is_measured_all_the_same(kept, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert ex.peaks().bandwidth == 1e9
    another_session(monkeypatch)
    ex.peaks()
    assert len(kept) == 2


def test_a_file_is_written_whole_and_leaves_nothing_beside(kept):
    ex.peaks()
    assert [file.name for file in module.cache_folder().iterdir()] == [the_file().name]
    assert Peaks.load(the_file()).bandwidth == 1e9
    assert stat.S_ISREG(the_file().stat().st_mode)


def test_refreshing_keeps_the_better_of_both(kept):
    kept.append({})  # the first one is twice as fast as one alone
    assert ex.peaks().bandwidth == 2e9
    kept.clear()
    assert ex.peaks(refresh=True).bandwidth == 2e9
    assert Peaks.load(the_file()).bandwidth == 2e9


def test_what_a_busy_machine_gave_is_measured_again_in_a_quieter_session(kept, monkeypatch):
    def busy(environment):
        kept.append(environment)
        return Peaks("here", 1.0, is_provisional=True, environment=environment)

    quiet = module._measure
    monkeypatch.setattr(module, "_measure", busy)
    monkeypatch.setattr(module, "load", lambda: 100.0)
    assert ex.peaks().is_provisional
    monkeypatch.setattr(module, "_measure", quiet)
    another_session(monkeypatch)
    assert ex.peaks().is_provisional  # still busy
    assert len(kept) == 1
    another_session(monkeypatch)
    monkeypatch.setattr(module, "load", lambda: 0.0)
    assert not ex.peaks().is_provisional
    assert len(kept) == 2


def test_the_folder_is_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("EXPLORER_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert module.cache_folder() == tmp_path / "explorer"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert module.cache_folder() == tmp_path / ".cache" / "explorer"


# -- the better of two

rates = st.dictionaries(st.sampled_from(["f32", "bf16", "f16"]), st.floats(1, 1e15))
machines = st.builds(
    Peaks,
    device=st.just("here"),
    bandwidth=st.floats(1, 1e13),
    matmul=rates,
    fma=rates,
    overhead=st.floats(0, 1e-3),
    caches=st.dictionaries(st.integers(1, 1 << 30), st.floats(1, 1e13), max_size=3),
)


@given(machines, machines)
def test_the_better_of_two_needs_no_more_time_than_either(one, other):
    best = one.better(other)
    for dtype in set(one.matmul) & set(other.matmul):
        assert best.matmul[dtype] == max(one.matmul[dtype], other.matmul[dtype])
    assert best.bandwidth == max(one.bandwidth, other.bandwidth)
    for size in (1.0, 1e5, 1e12):
        least = [each.bandwidth_of(size) for each in (one, other) if each.caches == best.caches]
        assert all(best.bandwidth_of(size) >= rate for rate in least)
    assert one.better(one).matmul == one.matmul


# -- the probes


def ran(monkeypatch, probe):
    """The optimised programs that a probe times, with its figure."""
    texts = []
    compiled = module._compiled

    def recorded(*args, **options):
        run = compiled(*args, **options)
        texts.append(run.as_text())
        return run

    monkeypatch.setattr(module, "_compiled", recorded)
    figure = probe()
    assert 0 < figure < math.inf
    return texts


def test_bandwidth_is_measured_by_a_loop_that_reads_and_writes_in_place(monkeypatch):
    (text,) = ran(monkeypatch, lambda: module.in_place_bandwidth(1 << 20, QUICK))
    assert " multiply(" in text
    assert '"known_trip_count":{"n":"32"}' in text
    assert "input_output_alias={ {}: (0" in text
    assert not re.search(r"f32\[262144\]\S* copy\(", text)


def test_new_memory_is_written_by_a_kernel_of_its_own(monkeypatch):
    (text,) = ran(monkeypatch, lambda: module.fresh_bandwidth(1 << 20, QUICK))
    assert " multiply(" in text
    assert "input_output_alias" not in text


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_every_multiply_add_of_a_chain_is_done(monkeypatch, dtype):
    (text,) = ran(monkeypatch, lambda: module.fma_rate(dtype, 4096, (8,), 4, QUICK))
    assert len(re.findall(r" multiply\(", text)) >= 8
    assert len(re.findall(r" add\(", text)) >= 8


class OneSecond:
    """A budget whose best call takes a second, so that a rate is the work of a call."""

    def best(self, call):
        call()
        return 1.0


def test_a_rate_is_the_work_of_a_call_over_its_seconds():
    count, length, steps = 4096, 8, 4
    assert module.fma_rate(jnp.float32, count, (length,), steps, OneSecond()) == 2 * length * steps * count


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.int8])
def test_a_product_is_done_when_it_is_called_and_not_when_it_is_compiled(monkeypatch, dtype):
    (text,) = ran(monkeypatch, lambda: module.matmul_rate(dtype, QUICK, 64, 64))
    assert " dot(" in text


@pytest.mark.parametrize("op", module.SPECIAL)
def test_each_function_is_in_the_program_that_measures_it(monkeypatch, op):
    (text,) = ran(monkeypatch, lambda: module.special_rate(op, 2048, QUICK))
    assert f" {op}(" in text


def test_sorting_is_measured_by_sorting(monkeypatch):
    (text,) = ran(monkeypatch, lambda: module.sort_rate(4, 64, QUICK))
    assert " sort(" in text


def test_the_cost_of_a_kernel_is_that_of_one_more_in_a_loop(monkeypatch):
    texts = []
    compiled = module._compiled
    monkeypatch.setattr(module, "_compiled", lambda *args: texts.append(compiled(*args)) or texts[-1])
    assert 0 <= module.kernel_seconds(QUICK) < 1
    few, many = (text.as_text() for text in texts)
    assert few.count(" while(") == many.count(" while(") == 1


def test_the_best_of_several_calls_counts():
    called = []
    assert Budget(0.0, least=3, most=9).best(lambda: called.append(1)) >= 0
    assert len(called) == 1 + 3  # the first is not timed
    called.clear()
    Budget(60.0, least=1, most=5).best(lambda: called.append(1))
    assert len(called) == 1 + 5


def test_what_fails_or_comes_too_late_is_left_out_and_said():
    measuring = module._Probes(end=float("inf"))

    def fails():
        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: no such type")

    assert measuring.probe("matmul f8", fails) == 0
    assert measuring.notes == ["matmul f8 could not be measured: JaxRuntimeError"]
    measuring.end = 0.0
    assert measuring.probe("memory", lambda: 1.0) == 0
    assert measuring.left_out == ["memory"]


# -- the machine


def test_the_machine_is_known_where_it_tells():
    assert machine.cores() >= 1
    assert machine.last_cache() >= 1 << 15
    assert machine.processor()
    assert machine.load() >= 0
    assert 0 <= machine.memory_bytes() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_a_machine_that_tells_nothing_is_one_all_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "_CACHES", tmp_path)
    monkeypatch.setattr(machine, "_LIMITS", (str(tmp_path / "memory.max"),))
    assert machine.last_cache() == 32 << 20
    (tmp_path / "memory.max").write_text("1048576\n")
    assert machine.memory_bytes() == 1 << 20
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.memory_bytes() > 1 << 20


@pytest.mark.slow
def test_this_machine_can_be_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "_kept", {})
    found = ex.peaks()
    assert found.bandwidth > 0
    assert {"f32"} <= set(found.matmul) & set(found.fma)
    assert ex.peaks(refresh=True).bandwidth >= found.bandwidth
