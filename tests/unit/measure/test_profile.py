"""explorer.profile: where the time of calls goes, by instruction and by line."""

import json
import re
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer._jax.profiling import read_profile
from explorer.model.results.profile import Profile
from explorer.model.results.roofline import Peaks

X = jnp.ones((256, 256)) * 0.01
HERE = Path(__file__).name


def mixed(x):
    y = jnp.tanh(x @ x)
    ordered = jnp.sort(y, axis=0)
    return ordered.sum() + y.mean()


def looped(x):
    def body(carry, _):
        return jnp.sin(carry) @ x * 0.1, carry.sum()

    last, sums = jax.lax.scan(body, x, None, length=4)
    return last.sum() + sums.sum()


@pytest.fixture(scope="module")
def found():
    return ex.profile(jax.jit(mixed), X, runs=5)


def line_of(function, text):
    """The number of the line of a function that has some text."""
    lines = Path(function.__code__.co_filename).read_text().splitlines()
    first = function.__code__.co_firstlineno
    return next(i for i in range(first, first + 30) if text in lines[i - 1])


# What it says ---------------------------------------------------------------------------------------------------------


def test_instructions_add_up_to_the_devices_time_and_lines_with_the_rest(found):
    assert sum(op.seconds for op in found.ops) == pytest.approx(found.device_seconds)
    assert sum(op.share for op in found.ops) == pytest.approx(1)
    assert sum(line.seconds for line in found.lines) + found.unattributed == pytest.approx(found.device_seconds)
    assert found.wall_seconds == pytest.approx(found.device_seconds + found.gap_seconds)


def test_each_line_that_does_something_has_time(found):
    lines = {line.line: line for line in found.lines if line.file.endswith(HERE)}
    assert {line_of(mixed, text) for text in ("tanh", "sort", "return ordered")} <= set(lines)
    assert lines[line_of(mixed, "sort")].text == "ordered = jnp.sort(y, axis=0)"


def test_the_capture_has_every_stage_and_the_measured_time(found):
    capture = found.capture
    assert [stage.name for stage in capture.stages] == ["jaxpr", "stablehlo", "hlo"]
    assert capture.hlo.graph.measures["time"].sum() == pytest.approx(found.device_seconds, rel=1e-5)
    assert capture.lines().seconds == pytest.approx(found.device_seconds, rel=1e-5)


def test_an_instruction_says_what_it_is_where_it_is_from_and_how_often_it_ran(found):
    sort = next(op for op in found.ops if op.op == "sort")
    assert (sort.module, sort.count, sort.total) == ("jit_mixed", 1, sort.seconds)
    assert (sort.stack[0].line, sort.stack[0].function) == (line_of(mixed, "sort"), "mixed")
    assert [frame.file for frame in sort.stack if "explorer/measure" in frame.file] == []


def test_equations_of_the_jaxpr_have_the_time_of_their_kernels(found):
    by_op = {equation.op: equation for equation in found.equations}
    assert by_op["sort"].seconds == pytest.approx(next(op.seconds for op in found.ops if op.op == "sort"), rel=1e-3)
    assert by_op["sort"].line == line_of(mixed, "sort")
    assert sum(equation.share for equation in found.equations) <= 1 + 1e-6


def test_what_the_host_did_adds_up_to_the_call():
    found = ex.profile(jax.jit(mixed), X, runs=5)
    assert found.host["waiting for the result"] > 0
    windows = found.events.windows
    assert sum(found.host.values()) <= (windows[:, 1] - windows[:, 0]).max()


@pytest.mark.slow
def test_what_the_recorder_takes_for_each_event_is_taken_off():
    def steps(x, y):
        def step(carry, _):
            moved = jax.lax.optimization_barrier(jnp.sort(carry) + y)  # a sort is never part of a loop in one kernel
            return jax.lax.optimization_barrier(jnp.cumsum(moved) * 0.1), moved[0]

        return jax.lax.scan(step, x, None, length=1000)

    found = ex.profile(jax.jit(steps), jnp.ones(8), jnp.ones(8), runs=10)
    recorded = np.diff(found.events.windows, axis=1).min()
    assert recorded > 2 * found.plain_seconds, "nothing to take off: this tests nothing"
    assert found.seconds == found.plain_seconds
    (note,) = [note for note in found.notes if "that recording took were subtracted from a call" in note]
    assert re.search(r"for each of \d,0\d\d events", note)
    assert sum(op.seconds for op in found.ops) == pytest.approx(found.device_seconds, rel=1e-6)
    assert sum(line.seconds for line in found.lines) + found.unattributed == pytest.approx(
        found.device_seconds, rel=0.01
    )


def test_a_call_of_few_events_loses_next_to_nothing_to_the_recorder():
    found = ex.profile(jax.jit(lambda x: x @ x), jnp.ones((600, 600)), runs=5)
    assert not any("that recording took were subtracted" in note for note in found.notes)


@pytest.mark.slow
def test_a_loop_of_unknown_length_counts_as_often_as_it_was_seen_to_run():
    def search(x):
        def step(carry):
            return carry[0] + 1, jnp.sin(carry[1] @ carry[1]) * 0.01

        return jax.lax.while_loop(lambda c: (c[0] < 7) | (c[1].sum() > 1e9), step, (0, x))[1]

    x = jnp.ones((200, 200))
    assert any(row.one_iteration for row in ex.explore(search, x).lines())
    measured = ex.profile(search, x)
    (capture,) = measured.captures.values()
    table = capture.lines()
    product = next(row for row in table if "@" in row.text)
    assert product.flops == pytest.approx(7 * 2 * 200**3, rel=0.02)
    assert not any(row.one_iteration for row in table)
    assert table.notes == ()
    assert next(line.flops for line in measured.lines if "@" in line.text) == pytest.approx(product.flops)
    assert sum(op.flops for op in measured.ops) == pytest.approx(table.flops, rel=1e-5)


def test_a_loop_has_its_own_time_and_with_that_of_its_body_a_total():
    found = ex.profile(jax.jit(looped), X, runs=3)
    loop = next(op for op in found.ops if op.op == "while")
    inside = [op for op in found.ops if op.count == 4]
    assert loop.seconds < loop.total <= found.device_seconds * (1 + 1e-9)
    assert loop.total >= sum(op.seconds for op in inside)
    assert sum(op.seconds for op in found.ops) == pytest.approx(found.device_seconds)


def test_a_convolution_has_its_line_though_xla_forgets_it():
    def convolved(x):
        y = jax.lax.conv_general_dilated(x[None, None], x[None, None, :5, :5], (1, 1), "SAME")
        z = jnp.tanh(y)
        return z.sum()

    found = ex.profile(jax.jit(convolved), X, runs=3)
    convolution = next(op for op in found.ops if op.op == "convolution")
    lines = {line.line: line.seconds for line in found.lines}
    assert lines[line_of(convolved, "conv_general")] >= convolution.seconds * (1 - 1e-6)
    assert convolution.stack[0].line == line_of(convolved, "conv_general")
    assert found.capture.lines().seconds is not None
    assert "conv_general_dilated" in {equation.op for equation in found.equations}


def test_the_branch_that_was_taken_has_the_time():
    def chosen(x):
        return jax.lax.cond(x[0, 0] > 0, lambda: jnp.sort(x).sum(), lambda: (x @ x).sum())

    found = ex.profile(jax.jit(chosen), X, runs=3)
    assert {op.op for op in found.ops} >= {"sort", "conditional"}
    assert not [op for op in found.ops if op.op == "dot"]


def test_a_scope_is_of_the_people_who_named_it():
    def scoped(x):
        with jax.named_scope("layer"), jax.named_scope("attention"):
            return jnp.sort(x)

    found = ex.profile(jax.jit(scoped), X, runs=3)
    assert {op.scope for op in found.ops if op.op == "sort"} == {"layer/attention"}


# What can be profiled -------------------------------------------------------------------------------------------------


def test_a_plain_function_is_compiled_first():
    found = ex.profile(mixed, X, runs=3)
    assert next(iter(found.captures.values())).function == "mixed"
    assert found.notes[0] == "compiled by jax.jit for this"
    assert {op.module for op in found.ops} == {"jit_mixed"}


def test_a_plain_function_that_calls_compiled_ones_is_called_as_it_is():
    first, second = jax.jit(mixed), jax.jit(looped)

    def step(x):
        return first(x) + second(x)

    found = ex.profile(step, X, runs=3)
    assert {op.module for op in found.ops} >= {"jit_mixed", "jit_looped"}
    assert "it calls compiled functions (mixed, looped)" in found.notes[0]
    assert sum(op.seconds for op in found.ops) == pytest.approx(found.device_seconds)
    assert len(found.captures) == len({op.program for op in found.ops})
    lines = {line.line for line in found.lines}
    assert {line_of(mixed, "sort"), line_of(looped, "sin")} <= lines
    assert {"sort", "sin"} <= {equation.op for equation in found.equations}
    whole = ex.profile(step, X, runs=3, compiled=True)
    assert {op.module for op in whole.ops} == {"jit_step"}


def test_a_plain_function_that_needs_values_is_called_as_it_is():
    found = ex.profile(lambda x: float(mixed(x)), X, runs=3)
    assert "it can't be compiled as a whole (ConcretizationTypeError)" in found.notes[0]
    assert len({op.program for op in found.ops}) > 1


def test_operation_by_operation_where_that_is_asked():
    found = ex.profile(mixed, X, runs=3, compiled=False)
    assert len({op.module for op in found.ops}) > 2


def test_two_programs_of_one_name_are_told_apart():
    function = jax.jit(mixed)

    def both(x):
        return function(x) + function(x[:128, :128])

    found = ex.profile(both, X, runs=3)
    programs = {op.program for op in found.ops if op.module == "jit_mixed"}
    assert len(programs) == 2
    texts = [found.captures[program].hlo.text for program in programs]
    assert sum("f32[128,128]" in text.splitlines()[0] for text in texts) == 1


def test_what_was_compiled_before_is_profiled():
    exe = ex.compile(mixed, args=[ex.InputInfo((256, 256), jnp.float32)])
    assert ex.profile(exe, X, runs=3).lines
    compiled = jax.jit(mixed).lower(X).compile()
    assert ex.profile(compiled, X, runs=3).lines
    assert ex.profile(ex.jit(mixed), X, runs=3).lines


def test_methods_and_partials_are_profiled():
    class Model:
        @partial(jax.jit, static_argnums=0)
        def step(self, x, scale):
            return jnp.sort(x * scale)

    assert ex.profile(Model().step, X, 2.0, runs=3).ops
    assert ex.profile(partial(jax.jit(lambda scale, x: jnp.sort(x * scale)), 2.0), X, runs=3).ops


def test_a_donated_argument_survives():
    x = jnp.ones((64, 64))
    found = ex.profile(jax.jit(lambda x: x * 2, donate_argnums=0), x, runs=3)
    assert found.ops
    assert not x.is_deleted()
    assert float(x[0, 0]) == 1


def test_a_function_that_does_nothing_has_a_profile_without_instructions():
    found = ex.profile(jax.jit(lambda x: None), X, runs=3)
    assert (len(found.ops), found.device_seconds) == (0, 0)
    assert found.gap_seconds == found.wall_seconds > 0
    assert "device waits" in repr(found)


def test_a_function_without_arrays_has_a_profile():
    found = ex.profile(lambda n: sum(range(n)), 1000, runs=3, compiled=False)
    assert (len(found.ops), found.host.keys()) == (0, {"Python", "waiting for the result"})
    with pytest.raises(ex.errors.NotRecordedError, match="nothing ran on the device"):
        _ = found.capture


def test_profiling_compiles_a_function_once():
    compiled = []

    def listen(name, *_, **__):
        if "backend_compile" in name:
            compiled.append(name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        ex.profile(jax.jit(lambda x: jnp.cos(x) @ x), X, runs=3)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert len(compiled) == 1


# How it can be looked at ----------------------------------------------------------------------------------------------


def test_a_profile_is_a_table_of_lines_in_text(found):
    shown = repr(found)
    first = shown.splitlines()[0]
    assert first.startswith("mixed(x: f32[256,256]): ")
    assert "ordered = jnp.sort(y, axis=0)" in shown
    assert f"{found.ops[0].name}" in shown
    assert "device waits" in shown
    assert repr(found) == shown


def test_a_profile_is_tables(found):
    pytest.importorskip("pandas")
    lines, ops, host = (found.to_frame(kind) for kind in ("lines", "ops", "host"))
    assert lines["seconds"].sum() + found.unattributed == pytest.approx(found.device_seconds)
    assert ops["seconds"].tolist() == [op.seconds for op in found.ops]
    assert dict(zip(host["name"], host["seconds"], strict=True)) == found.host
    assert len(found.to_frame("equations")) == len(found.equations)
    with pytest.raises(ex.errors.OptionError, match="it got 'rows'"):
        found.to_frame("rows")


def test_a_profile_is_sorted_by_time_or_by_what_is_wasted(found):
    with pytest.raises(ex.errors.OptionError, match="with_peaks"):
        found.sort("wasted")
    with pytest.raises(ex.errors.OptionError, match="'time' or by 'wasted'"):
        found.sort("name")
    known = found.with_peaks(Peaks("a machine", 1e10, {"f32": 1e11}, {"f32": 1e11}))
    wasted = [op.wasted for op in known.sort("wasted").ops if op.wasted is not None]
    assert wasted == sorted(wasted, reverse=True)
    assert all(0 <= op.wasted <= op.seconds for op in known.ops if op.wasted is not None)
    assert sum(line.wasted or 0 for line in known.lines) <= sum(wasted) * (1 + 1e-6)
    assert [op.name for op in known.sort("wasted").sort("time").ops] == [op.name for op in found.ops]


def test_perfetto_opens_what_was_recorded(found, tmp_path):
    trace = json.loads(found.to_perfetto(tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["args"]["name"] for event in trace if event["ph"] == "M"}
    ran = [event for event in trace if event.get("cat") == "instruction"]
    assert "mixed" in names
    assert {event["name"] for event in ran} == {op.name for op in found.ops}
    assert all(event["dur"] >= 0 and event["args"]["module"] == "jit_mixed" for event in ran)
    sort = next(event for event in ran if event["args"]["op"] == "sort")
    assert sort["args"]["line"].endswith(f"{HERE}:{line_of(mixed, 'sort')}")
    assert {event["cat"] for event in trace if event["ph"] == "X"} >= {"instruction", "host"}


def test_xprof_finds_what_was_recorded_where_it_looks(found, tmp_path):
    path = found.to_xprof(tmp_path)
    assert path.relative_to(tmp_path).as_posix() == "plugins/profile/explorer/host.xplane.pb"
    assert {plane.name for plane in read_profile(path.read_bytes()).planes} >= {"/host:CPU"}
    assert found.to_xprof(tmp_path) != path  # an earlier one is kept


def test_the_timeline_lies_within_one_call(found):
    timeline = found.timeline
    assert 0 < len(timeline) <= 20_000
    assert (timeline.start >= 0).all()
    assert (timeline.end <= timeline.seconds + 1e-12).all()
    assert set(timeline.op.tolist()) <= set(range(len(found.ops)))


def test_a_profile_is_a_model_object(found):
    assert isinstance(found, Profile)
    assert found.environment["backend"] == jax.default_backend()
    assert found.signature == "(x: f32[256,256])"
