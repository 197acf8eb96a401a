"""What the profiler recorded is read into columns, of CPUs and of GPUs."""

from types import SimpleNamespace

import numpy as np
import pytest

from explorer.analysis.profile_attribution import segments, shares
from explorer.analysis.profile_events import CALL, RESULT, events_of
from explorer.analysis.profile_recording import Instructions, resolve_ops
from explorer.analysis.profile_rows import build_profile
from explorer.capture.open import open_hlo
from explorer.model.results.profile_events import BETWEEN, HOST, RECORD, REGION, THUNK, WAIT, Op

MICRO = 1e-6


def event(name, start, duration, **stats):
    """An event as ProfileData gives it; in microseconds here."""
    return SimpleNamespace(name=name, start_ns=start * 1e3, duration_ns=duration * 1e3, stats=list(stats.items()))


def line(name, *events):
    return SimpleNamespace(name=name, events=events)


def plane(name, *lines):
    return SimpleNamespace(name=name, lines=lines)


def thunk(name, start, duration, program=7, module="jit_f"):
    return event(name, start, duration, hlo_op=name, hlo_module=module, program_id=program, run_id=1)


def calls(*windows):
    marks = [event(CALL, start, end - start) for start, end in windows]
    return line("python", *marks, *(event(RESULT, end - 1, 1) for _, end in windows))


def rows(found):
    """Of each event that is not the host's: thread, start, end in microseconds, kind, what."""
    columns = (found.thread, found.start / MICRO, found.end / MICRO, found.kind, found.what)
    table = zip(*(np.round(column).astype(int).tolist() for column in columns), strict=True)
    return [row for row in table if row[3] != HOST]


# A CPU ----------------------------------------------------------------------------------------------------------------


def test_an_instruction_of_a_cpu_is_an_event_with_its_name():
    found = events_of([plane("/host:CPU", line("worker", thunk("dot.1", 3, 4)), calls((0, 10)))])
    assert found.ops == (Op(7, "jit_f", "dot.1"),)
    assert rows(found) == [(0, 3, 7, THUNK, 0)]
    assert found.windows / MICRO == pytest.approx(np.asarray([[0, 10]]))
    assert found.threads[found.python] == "python"
    assert set(found.names) == {"Python", "waiting for the result"}


def test_late_ends_are_not_events():
    found = events_of([plane("/host:CPU", line("worker", thunk("dot.1", 3, 4), event("end: dot.1", 90, 1, _c=5)))])
    assert rows(found) == [(0, 3, 7, THUNK, 0)]


def test_work_handed_to_another_thread_is_told_by_its_number():
    first = line("first", thunk("dot.1", 0, 9), event("ThreadpoolListener::Record", 2, 0, _pt=15, _p=42))
    second = line(
        "second",
        event("ThreadpoolListener::StartRegion", 3, 0, _ct=15, _c=42),
        event("ThreadpoolListener::StopRegion", 8, 0),
    )
    found = events_of([plane("/host:CPU", first, second)])
    assert rows(found) == [(0, 0, 9, THUNK, 0), (0, 2, 2, RECORD, 42), (1, 3, 8, REGION, 42)]


def test_regions_in_regions_and_those_without_a_beginning_or_an_end():
    start, stop = "ThreadpoolListener::StartRegion", "ThreadpoolListener::StopRegion"
    given = line(
        "worker",
        event(stop, 1, 0),  # began before the recording
        event(start, 2, 0, _c=1),
        event(start, 3, 0, _c=2),
        event(stop, 5, 0),
        event(stop, 7, 0),
        event(start, 9, 0, _c=3),  # ended after it
        thunk("add.1", 10, 4),
    )
    found = events_of([plane("/host:CPU", given)])
    assert sorted(rows(found)) == [(0, 2, 7, REGION, 1), (0, 3, 5, REGION, 2), (0, 9, 14, REGION, 3), (0, 10, 14, 0, 0)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SlinkyThreadPool::Await", WAIT),
        ("ThunkExecutor::Execute (wait for completion)", WAIT),
        ("ThunkExecutor::Execute", BETWEEN),
        ("PjitFunction(f)", HOST),
        ("Await", WAIT),
        ("Awaiting", HOST),
    ],
)
def test_what_is_no_instruction_is_told_by_its_name(name, kind):
    found = events_of([plane("/host:CPU", line("worker", event(name, 0, 1)))])
    assert found.kind.tolist() == [kind]
    assert found.names == (name,)


def test_programs_of_one_name_are_told_apart():
    given = line("worker", thunk("add.1", 0, 1, program=7), thunk("add.1", 2, 1, program=8))
    assert events_of([plane("/host:CPU", given)]).ops == (Op(7, "jit_f", "add.1"), Op(8, "jit_f", "add.1"))


def test_nothing_recorded_is_no_events():
    found = events_of([])
    assert (len(found), found.windows.shape, found.python) == (0, (0, 2), -1)


# A GPU ----------------------------------------------------------------------------------------------------------------

MODULE = """HloModule jit_f
fused (p: f32[8]) -> f32[8] {
  p = f32[8] parameter(0)
  ROOT sine = f32[8] sine(p), metadata={op_name="jit(f)/sin" source_file="model.py" source_line=3}
}
captured (q: f32[8]) -> f32[8] {
  q = f32[8] parameter(0)
  loop_sine_fusion.2 = f32[8] fusion(q), kind=kLoop, calls=fused
  ROOT gemm-fusion.1 = f32[8] add(loop_sine_fusion.2, q), metadata={source_file="model.py" source_line=4}
}
ENTRY main {
  x = f32[8] parameter(0)
  call.1 = f32[8] call(x), to_apply=captured
  ROOT sort.3 = f32[8] sort(call.1), dimensions={0}, metadata={source_file="model.py" source_line=5}
}
"""


def kernel(name, start, duration, op, program=7):
    stats = {"correlation_id": 3, "hlo_module": "jit_f", "program_id": program, "kernel_details": "regs:32"}
    return event(name, start, duration, **({"hlo_op": op} if op else {}), **stats)


def gpu(*streams, host=()):
    return [plane("/device:GPU:0", *streams), plane("/host:CPU", calls((0, 100)), line("launches", *host))]


def test_the_streams_of_a_gpu_are_its_threads():
    found = events_of(
        gpu(
            line("Stream #7(Kernel)", kernel("sort_3", 1, 4, "sort.3"), kernel("sort_3__1", 6, 2, "sort.3")),
            line("Stream #9(MemcpyD2D)", event("MemcpyD2D", 2, 3)),
        )
    )
    assert found.threads[:2] == ("GPU:0 Stream #7(Kernel)", "GPU:0 Stream #9(MemcpyD2D)")
    assert found.ops == (
        Op(7, "jit_f", "sort.3", "sort_3"),
        Op(7, "jit_f", "sort.3", "sort_3__1"),
        Op(-1, "", "MemcpyD2D"),
    )
    assert rows(found) == [(0, 1, 5, THUNK, 0), (0, 6, 8, THUNK, 1), (1, 2, 5, THUNK, 2)]


def test_lines_that_are_derived_from_streams_are_not_counted_again():
    found = events_of(
        gpu(
            line("Stream #7(Kernel)", kernel("sort_3", 1, 4, "sort.3")),
            line("XLA Ops", kernel("sort.3", 1, 4, "sort.3")),
            line("XLA Modules", event("jit_f", 0, 9)),
            line("CUPTI overhead", event("Buffer flush", 0, 9)),
        )
    )
    assert rows(found) == [(0, 1, 5, THUNK, 0)]


def test_the_host_launching_an_instruction_of_a_gpu_is_not_it():
    found = events_of(
        gpu(
            line("Stream #7(Kernel)", kernel("sort_3", 5, 4, "sort.3")),
            host=[thunk("sort.3", 1, 1), thunk("a", 2, 1, 8)],
        )
    )
    assert [found.ops[row[4]].name for row in rows(found)] == ["sort.3", "a"]  # program 8 ran on the CPU


def test_the_kernels_of_an_instruction_are_one():
    program = Instructions(open_hlo(MODULE).hlo.graph)
    found = resolve_ops(
        events_of(gpu(line("Stream #7(Kernel)", kernel("first", 1, 4, "sort.3"), kernel("second", 6, 2, "sort.3")))),
        {7: program},
    )
    assert found.ops == (Op(7, "jit_f", "sort.3"),)
    assert shares(found, segments(found)).seconds[0] / MICRO == pytest.approx([6])


def test_the_kernels_of_a_cuda_graph_are_told_apart_by_their_names():
    """All are said to be of the call that launched the graph."""
    program = Instructions(open_hlo(MODULE).hlo.graph)
    stream = line(
        "Stream #7(Kernel)",
        kernel("loop_sine_fusion_2", 1, 4, "call.1"),
        kernel("gemm_fusion_1", 6, 2, "call.1"),
        kernel("cutlass_kernel", 9, 1, "call.1"),
    )
    found = resolve_ops(events_of(gpu(stream)), {7: program})
    assert [op.name for op in found.ops] == ["loop_sine_fusion.2", "gemm-fusion.1", "call.1"]


def test_a_profile_of_a_gpu_has_lines_and_what_belongs_to_none():
    stream = line(
        "Stream #7(Kernel,MemcpyD2H)",
        kernel("loop_sine_fusion_2", 10, 40, "call.1"),
        kernel("sort_3", 50, 10, "sort.3"),
        event("MemcpyD2H", 70, 10),
    )
    found = build_profile("f", "(x: f32[8])", events_of(gpu(stream)), {7: open_hlo(MODULE)})
    assert [(op.name, round(op.seconds / MICRO, 3)) for op in found.ops] == [
        ("loop_sine_fusion.2", 40.0),
        ("MemcpyD2H", 10.0),
        ("sort.3", 10.0),
    ]
    assert {(row.line, round(row.seconds / MICRO, 3)) for row in found.lines} == {(3, 40.0), (5, 10.0)}
    assert found.unattributed / MICRO == pytest.approx(10)
    assert found.device_seconds / MICRO == pytest.approx(60)
    assert found.gap_seconds / MICRO == pytest.approx(40)
    assert found.capture.hlo.graph.measures["time"].sum() / MICRO == pytest.approx(50)
