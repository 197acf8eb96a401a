"""sweep, what_if and compare_targets on workers: the same rows as here; Dask with a worker that is killed."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import jax.numpy as jnp
import pytest

import explorer as ex

KS = (1, 2, 3, 4)


def chain(x, k):
    for _ in range(2):
        x = jnp.tanh(x @ x) * k
    return x


def facts(row):
    """What a row says beside seconds."""
    return repr((row.values, row.memory, row.flops, row.bytes, row.kernels, row.error))  # NaN equals itself so


def processes():
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def kill_at_work(client, address, process):
    """Kill a worker's process while it has something to do."""
    while not client.processing().get(address):
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)


def test_a_sweep_on_workers_has_the_rows_of_one_here_and_a_failing_point_costs_its_own():
    def function(x, n):
        return jnp.tanh(x.reshape(n, -1))

    with ThreadPoolExecutor(2) as executor:
        there = ex.sweep(function, jnp.ones(8), over={"n": [2, 3, 4]}, seconds=1e-4, executor=executor)
    here = ex.sweep(function, jnp.ones(8), over={"n": [2, 3, 4]}, seconds=1e-4)
    assert [facts(row) for row in there] == [facts(row) for row in here]
    assert there.rows[1].error.startswith("TypeError: cannot reshape")
    assert all(row.steady is not None and row.first_call > 0 for row in (there.rows[0], there.rows[2]))
    assert there.rows[0].capture.nodes_at(there.rows[0].capture.line + 1)
    assert any("then each point ran alone" in note for note in there.notes)


def test_without_time_nothing_runs_and_nothing_is_said_of_it():
    with ThreadPoolExecutor(1) as executor:
        there = ex.sweep(chain, jnp.ones((4, 4)), over={"k": [1]}, time=False, executor=executor)
    assert there.rows[0].steady is None
    assert "run" not in there.rows[0].stages
    assert there.notes == ["a worker compiled: a compile alone may take less"]


@pytest.mark.slow
def test_what_if_on_workers_has_the_variants_of_one_here():
    options = {"donate": [0, True], "precision": "bfloat16", "time": False}
    with ThreadPoolExecutor(2) as executor:
        there = ex.what_if(chain, jnp.ones((4, 4)), 2.0, **options, executor=executor)
    here = ex.what_if(chain, jnp.ones((4, 4)), 2.0, **options)
    assert [(row.name, row.memory, row.kernels, row.is_same) for row in there] == [
        (row.name, row.memory, row.kernels, row.is_same) for row in here
    ]
    assert all(row.compile_seconds > 0 for row in there)
    assert there.rows[1].diff.stages["hlo"].is_empty


def test_what_can_t_be_compiled_at_all_is_raised_as_it_would_be_here():
    with ThreadPoolExecutor(1) as executor, pytest.raises(ex.errors.ExploreError):
        ex.what_if(lambda x: x.reshape(7), jnp.ones(4), donate=0, executor=executor)


@pytest.mark.slow
def test_targets_on_workers_have_the_rows_of_those_here():
    with ThreadPoolExecutor(2) as executor:
        there = ex.compare_targets(jnp.sin, jnp.ones(8), targets=["h100", "v5e:2x2"], executor=executor)
    here = ex.compare_targets(jnp.sin, jnp.ones(8), targets=["h100", "v5e:2x2"])
    assert [(row.target, row.failure, row.memory, row.kernels) for row in there] == [
        (row.target, row.failure, row.memory, row.kernels) for row in here
    ]


@pytest.mark.slow
def test_what_one_process_compiled_another_one_times_from_the_cache():
    with processes() as executor:
        there = ex.sweep(chain, jnp.ones((4, 4)), over={"k": KS}, seconds=1e-3, executor=executor)
    assert [row.values["k"] for row in there] == [*KS]
    assert all(row.steady is not None for row in there)
    assert all(row.compile_seconds > row.stages["run"] for row in there)  # not the seconds of a look into the cache


@pytest.mark.slow
def test_on_a_cluster_of_dask_with_a_worker_killed_the_table_is_the_same():
    distributed = pytest.importorskip("distributed")
    here = ex.sweep(chain, jnp.ones((4, 4)), over={"k": [*range(24)]}, time=False)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        (address, victim), (_, other) = client.run(os.getpid).items()
        killer = threading.Thread(target=kill_at_work, args=(client, address, victim), daemon=True)
        killer.start()
        there = ex.sweep(chain, jnp.ones((4, 4)), over={"k": [*range(24)]}, time=False, executor=client)
        killer.join(60)
        assert not killer.is_alive()
        client.wait_for_workers(2, timeout=60)
        alive = client.run(os.getpid, on_error="ignore").values()
        assert other in alive
        assert victim not in alive
    assert [facts(row) for row in there] == [facts(row) for row in here]
