"""What this machine is, as its operating system says; on one that says nothing, what is safe to assume."""

import os

import pytest

from explorer.measure import machine


def test_the_cores_are_those_that_this_process_may_use(monkeypatch):
    allowed = os.sched_getaffinity(0)
    one = {min(allowed)}
    os.sched_setaffinity(0, one)
    try:
        assert machine.cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    monkeypatch.delattr(os, "sched_getaffinity")
    assert machine.cores() == os.cpu_count()


def test_the_largest_cache_is_the_last(tmp_path, monkeypatch):
    for number, size in enumerate(["48K", "2048K", "36M", "64"]):
        (tmp_path / f"index{number}").mkdir()
        (tmp_path / f"index{number}" / "size").write_text(f"{size}\n")
    monkeypatch.setattr(machine, "_CACHES", tmp_path)
    assert machine.last_cache() == 36 * 1024 * 1024
    monkeypatch.setattr(machine, "_CACHES", tmp_path / "none")
    assert machine.last_cache() == 32 * 1024 * 1024


@pytest.mark.parametrize("limit", ["max", "1000000", str(1 << 60)])
def test_a_control_group_may_allow_less_than_there_is(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(machine, "_LIMITS", ())
    there_is = machine.memory_bytes()
    assert there_is == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    (tmp_path / "limit").write_text(f"{limit}\n")
    monkeypatch.setattr(machine, "_LIMITS", (str(tmp_path / "limit"),))
    assert machine.memory_bytes() == (1_000_000 if limit == "1000000" else there_is)


def test_no_more_is_free_than_may_be_used(monkeypatch, tmp_path):
    assert 0 < machine.free_bytes() <= machine.memory_bytes()
    (tmp_path / "limit").write_text("4096")
    monkeypatch.setattr(machine, "_LIMITS", (str(tmp_path / "limit"),))
    assert machine.free_bytes() == 4096
