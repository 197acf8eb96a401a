"""One ledger of many processes: who compiled what, who another program, and what that is read from."""

import json
import os
import socket
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

import explorer as ex
from explorer.analysis.recompiles.process_programs import ProcessFold
from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.key import Function, Key, Leaf, Static
from explorer.model.events.process_ledger import ranges_of

PROGRAM = "12 mul:float32[8] #aaaa\n13 reduce_sum:float32[] #bbbb"


def compiled(size=8, *, function="step", line=10, call=1, program=PROGRAM, devices=("cpu:0",), static="3", identity=0):
    """The events of one call in a process."""
    leaf = Leaf("x", (size,), "float32", devices=devices)
    statics = (Static("n", static, "int", token=identity),)
    key = Key(Function(function, "/home/a/train.py", line, identity=identity), (leaf,), statics=statics)
    site, reason = Place("/home/a/train.py", 40, "train.py"), Reason("first")
    steps = (("trace", 0.1, ""), ("lower", 0.1, ""), ("compile", 0.3, program))
    return tuple(
        Event(kind, function, site, seconds, reason, call=call, key=key, device="cpu:0", program=lines)
        for kind, seconds, lines in steps
    )


def merged(*processes):
    ledgers = []
    for events in processes:
        ledger = ex.Ledger()
        for call in events:
            ledger.add(call)
        ledgers.append(ledger)
    return ex.merge_ledgers(ledgers)


def test_equal_programs_are_one_row_whatever_is_of_the_process_alone():
    whole = merged([compiled(identity=5)], [compiled(identity=9, devices=("cpu:2048",))], [compiled(identity=1)])
    (row,) = whole
    assert (row.count, row.compiles, row.processes) == (3, 3, ((0, 2),))
    assert row.seconds == pytest.approx(1.5)
    assert row.slowest == pytest.approx(0.5)
    assert row.place == "step (train.py, line 10)"
    assert row.call_site == "train.py, line 40"
    assert whole.differences == ()
    assert repr(whole).startswith("ProcessLedger(1 program of 3 processes, 1 compiled by all; no process compiled a")


@pytest.mark.parametrize(
    ("other", "what", "usual", "here"),
    [
        ({"size": 9}, "x", "float32[8]", "float32[9]"),
        ({"static": "4"}, "n", "3", "4"),
        ({"program": PROGRAM.replace("mul", "add")}, "line 12", "mul float32[8]", "add float32[8]"),
        ({"program": PROGRAM.splitlines()[0]}, "line 13", "reduce_sum float32[]", "not there"),
    ],
)
def test_who_compiled_another_program_is_named_with_what_differs(other, what, usual, here):
    whole = merged([compiled()], [compiled()], [compiled(**other)], [compiled()])
    (difference,) = whole.differences
    assert whole.named(difference.processes) == "process 2"
    assert (difference.what, difference.usual, difference.here) == (what, usual, here)
    assert not difference.is_shared
    assert f"{what} is {here}, {usual} with 3 others" in difference.text


def test_of_two_processes_the_first_is_what_the_other_is_held_against():
    (difference,) = merged([compiled(8)], [compiled(9)]).differences
    assert (difference.processes, difference.usual, difference.here) == (((1, 1),), "float32[8]", "float32[9]")


def test_a_function_that_one_process_alone_calls_is_no_difference_but_where_its_arrays_are_of_several():
    log = compiled(function="write_log", line=70)
    assert merged([compiled(), log], [compiled()], [compiled()]).differences == ()
    over = {"devices": ("cpu:0", "cpu:2048", "cpu:4096")}
    (difference,) = merged([compiled(**over)], [compiled(**over)], []).differences
    assert difference.is_shared
    assert "process 2 compiled no program for step (train.py, line 10) where" in difference.text
    assert "may deadlock" in difference.text


def test_one_program_more_than_the_others_have_is_a_difference():
    whole = merged([compiled(), compiled(16, call=2)], [compiled(), compiled(16, call=2), compiled(31, call=3)])
    (difference,) = whole.differences
    assert difference.processes == ((1, 1),)
    assert difference.here == "float32[31]"


def test_merging_what_is_merged_gives_what_merging_all_at_once_does(tmp_path):
    processes = [[compiled()], [compiled(), compiled(9, call=2)], [compiled()], [compiled()]]
    merged(*processes[:2]).save(tmp_path / "first.json")
    parts = ex.merge_ledgers([tmp_path / "first.json", merged(*processes[2:])])
    whole = merged(*processes)
    assert {replace(row, call_site="") for row in parts} == {replace(row, call_site="") for row in whole}
    assert [row.processes for row in parts.differences] == [row.processes for row in whole.differences]
    assert parts.events == whole.events


def test_files_of_a_folder_are_processes_in_the_order_of_their_numbers(tmp_path):
    for at in (0, 2, 10):
        ledger = ex.Ledger()
        ledger.add(compiled(9 if at == 10 else 8))
        ledger.save(tmp_path / f"{at}.jsonl")
    whole = ex.merge_ledgers(tmp_path)
    assert whole.processes == ("0", "2", "10")
    assert whole.named(whole.differences[0].processes) == "process 10"
    path = tmp_path / "whole.json"
    whole.save(path)
    again = ex.types.ProcessLedger.load(path)
    assert (again.rows, again.differences, again.processes) == (whole.rows, whole.differences, whole.processes)


def test_what_is_no_ledger_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("no ledger")
    with pytest.raises(ex.errors.LedgerFileError, match=r"notes\.txt"):
        ex.merge_ledgers(tmp_path)
    with pytest.raises(ex.errors.OptionError, match="no ledger"):
        ex.merge_ledgers([])
    with pytest.raises(ex.errors.OptionError, match="names"):
        ex.merge_ledgers([ex.Ledger()], names=["a", "b"])


def test_without_other_processes_there_is_nothing_to_gather():
    with pytest.raises(ex.errors.NotRecordedError, match="no other processes"):
        ex.gather_ledgers(ex.Ledger())


def test_the_shell_shows_who_differs_and_writes_a_page(tmp_path, capsys):
    from explorer.__main__ import main

    for at in range(3):
        ledger = ex.Ledger()
        ledger.add(compiled(9 if at == 1 else 8))
        ledger.save(tmp_path / f"{at}.jsonl")
    files = [str(tmp_path / f"{at}.jsonl") for at in range(3)]
    assert main(["ledger", "--by-process", *files]) == 0
    assert "process 1 compiled a different program for step (train.py, line 10)" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["ledger", "--by-process", *files, "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "Processes whose program differs: 1" in page
    assert "2 of 3" in page


def test_a_frame_has_a_row_for_each_program():
    frame = merged([compiled()], [compiled(9)]).to_frame()
    assert list(frame["count"]) == [1, 1]
    assert set(frame["arguments"]) == {"x: float32[8]", "x: float32[9]"}


def test_ranges_stand_for_the_indices_that_they_are_made_of():
    indices = [0, 1, 2, 7, 9, 10]
    runs = ranges_of(indices)
    assert [at for first, last in runs for at in range(first, last + 1)] == indices
    assert runs == ((0, 2), (7, 7), (9, 10))


def test_many_distinct_programs_are_counted_and_not_all_kept(monkeypatch):
    monkeypatch.setattr("explorer.analysis.recompiles.process_programs._MAX_PROGRAMS", 10)
    fold = ProcessFold()
    fold.begin("0")
    for size in range(30):
        fold.add(compiled(size, call=size + 1))
    ledger = fold.ledger()
    assert len(ledger) == 10
    assert ledger.notes == ("20 compiles of more than 10 distinct programs are left out",)


PROCESS = textwrap.dedent(
    """
    import json, sys, time, warnings
    import jax
    index, count, port = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{port}", count, index)
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec
    import explorer as ex

    mesh = jax.make_mesh((count,), ("x",))
    own = np.ones(2, np.float32)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("x")), own, (2 * count,))

    @jax.jit
    def step(x):
        y = x * 2
        if jax.process_index() == 1:
            y = y + 1
        return y.sum()

    @jax.jit
    def same(x):
        return x.sum()

    shown = []
    warnings.showwarning = lambda message, kind, file, line, *rest: shown.append([kind.__name__, str(message), line])
    warnings.simplefilter("always")
    with ex.watch() as ledger:
        same(x), step(x)
        whole = ex.gather_ledgers(ledger)
        time.sleep(1)  # what differs is said by a thread of its own
    rows = {row.function: row.count for row in whole if row.is_shared}
    found = [[whole.named(row.processes), row.line, row.what, row.is_shared] for row in whole.differences]
    print(json.dumps({"same": rows["same"], "found": found, "shown": shown, "faults": len(ledger.faults)}))
    jax.distributed.shutdown()
    """
)


def run_processes(code, count):
    """What each of some real processes over loopback prints last, as JSON."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    run = [sys.executable, "-c", code]
    every = [
        subprocess.Popen(
            [*run, str(at), str(count), port], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        for at in range(count)
    ]
    try:
        ended = [process.communicate(timeout=300) for process in every]
    finally:
        for process in every:
            process.kill()
    assert all(out.strip() for out, _ in ended), ended[-1][1].decode()[-2000:]
    return [json.loads(out.decode().strip().splitlines()[-1]) for out, _ in ended]


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_real_processes_have_one_ledger_and_the_one_that_differs_is_warned_of(count):
    line = next(at for at, text in enumerate(PROCESS.splitlines(), 1) if "y + 1" in text)
    told = run_processes(PROCESS, count)
    for process in told:
        assert process["same"] == count
        assert process["faults"] == 0
        assert process["found"] == [["process 1", line, f"line {line}", True]]
    assert [process["shown"] != [] for process in told] == [at == 1 for at in range(count)]
    kind, message, at = told[1]["shown"][0]
    assert (kind, at) == ("ProcessWarning", line)
    assert "process 1 compiled a different program for step" in message
    assert "add float32" in message
