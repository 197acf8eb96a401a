"""A profile in other tools' formats, row by row: Chrome's trace events, XProf's folder."""

import json
from dataclasses import replace

import numpy as np
import pytest

import explorer as ex
from explorer.model.graph import Frame
from explorer.model.results.profile import OpTime
from explorer.model.results.profile_events import BETWEEN, HOST, RECORD, REGION, THUNK, WAIT, Events, Op

MAIN, WORKER = 0, 1
# Thread, start, end, kind, what; seconds that a binary fraction holds. The first call begins at 1.
ROWS = (
    (MAIN, 0.25, 0.5, HOST, 0),  # over before the first call
    (MAIN, 0.5, 1.0, HOST, 1),  # ends as it begins
    (MAIN, 1.0, 2.0, THUNK, 0),
    (MAIN, 1.125, 1.125, RECORD, 7),
    (WORKER, 1.25, 1.5, REGION, 7),
    (MAIN, 1.25, 1.5, WAIT, 2),
    (WORKER, 1.75, 2.0, REGION, -1),  # of work that nobody gave
    (MAIN, 2.0, 2.25, BETWEEN, 3),
    (MAIN, 2.25, 2.5, THUNK, 1),
    (MAIN, 2.5, 2.75, THUNK, 2),
)
OPS = (Op(3, "jit_f", "dot.1"), Op(4, "jit_f", "dot.1"), Op(3, "jit_f", "copy.2"))


def column(at, dtype):
    return np.array([row[at] for row in ROWS], dtype)


EVENTS = Events(
    column(0, np.int32), column(1, float), column(2, float), column(3, np.int32), column(4, np.int64),
    ("python", "worker/1"), OPS, ("import", "dispatch", "Wait", "Execute"), np.array([[1.0, 2.5], [2.5, 3.0]]),
)  # fmt: skip


def op_time(name, program, stack):
    return OpTime(name, "dot", "jit_f", program, 1.0, 0.5, 1.0, 1.0, 2.0, 3.0, None, stack, "layer/dot")


PROFILE = ex.Profile(
    "f", "(x)", 2, 1.0, 0.5, 0.5,
    (op_time("dot.1", 3, (Frame("f.py", "f", 12), Frame("g.py", "g", 3))), op_time("copy.2", 3, ())), (), 0.0,
    events=EVENTS, xspace=b"as recorded",
)  # fmt: skip
OF_DOT = {"module": "jit_f", "line": "f.py:12", "op": "dot", "scope": "layer/dot"}


def trace(profile, path):
    assert profile.to_perfetto(path) == path
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_trace_has_a_row_for_each_event_in_microseconds_from_the_first_call(tmp_path):
    written = trace(PROFILE, tmp_path / "trace.json")
    assert (set(written), written["displayTimeUnit"]) == ({"displayTimeUnit", "traceEvents"}, "ns")
    names, rows = written["traceEvents"][:3], written["traceEvents"][3:]
    assert names == [
        {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": "f"}},
        {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "python"}},
        {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "worker/1"}},
    ]
    assert {(row["ph"], row["pid"]) for row in rows} == {("X", 1)}
    assert [tuple(row[key] for key in ("tid", "name", "cat", "ts", "dur", "args")) for row in rows] == [
        (1, "dispatch", "host", -5e5, 5e5, {}),
        (1, "dot.1", "instruction", 0.0, 1e6, OF_DOT),
        (2, "dot.1", "part of an instruction", 2.5e5, 2.5e5, OF_DOT),
        (1, "Wait", "wait", 2.5e5, 2.5e5, {}),
        (2, "part", "part of an instruction", 7.5e5, 2.5e5, {}),
        (1, "Execute", "runtime", 1e6, 2.5e5, {}),
        # Of another program's instruction of that name, and of one without a line, only the module is known.
        (1, "dot.1", "instruction", 1.25e6, 2.5e5, {"module": "jit_f"}),
        (1, "copy.2", "instruction", 1.5e6, 2.5e5, {"module": "jit_f"}),
    ]


def test_without_calls_the_times_are_the_recorders_own(tmp_path):
    profile = replace(PROFILE, events=replace(EVENTS, windows=np.zeros((0, 2))))
    rows = [row for row in trace(profile, tmp_path / "trace.json")["traceEvents"] if row["ph"] == "X"]
    assert [row["ts"] for row in rows] == [row[1] * 1e6 for row in ROWS if row[3] != RECORD]


def test_a_profile_without_events_is_a_name(tmp_path):
    written = trace(replace(PROFILE, events=None), tmp_path / "trace.json")
    assert [row["name"] for row in written["traceEvents"]] == ["process_name"]


def test_each_recording_has_a_run_of_its_own_in_xprofs_folder(tmp_path):
    paths = [PROFILE.to_xprof(tmp_path) for _ in range(3)]
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        f"plugins/profile/explorer{run}/host.xplane.pb" for run in ("", "-2", "-3")
    ]
    assert {path.read_bytes() for path in paths} == {b"as recorded"}


@pytest.mark.parametrize("kind", ["lines", "ops", "equations", "host"])
def test_a_table_of_nothing_has_its_columns(kind):
    frame = replace(PROFILE, ops=(), host={}).to_frame(kind)
    assert len(frame) == 0
    assert "seconds" in frame.columns


def test_a_table_of_ops_names_the_users_innermost_line():
    frame = PROFILE.to_frame("ops")
    assert frame["stack"].tolist() == ["f.py:12 (f)", ""]
    assert frame["name"].tolist() == ["dot.1", "copy.2"]
