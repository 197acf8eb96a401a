"""Where an instruction of HLO comes from, in each spelling of its metadata that XLA has printed."""

import pytest

from explorer.capture.readers.graph_builder import is_runner, users_frames, users_part
from explorer.capture.readers.hlo_attributes import is_whole, read_frames, read_metadata
from explorer.model.graph import Frame


@pytest.mark.parametrize(
    ("rest", "name", "row", "frame", "attributes"),
    [
        ("", "", -1, None, ""),
        (", dimensions={0}", "", -1, None, ", dimensions={0}"),
        (', metadata={op_name="x"}', "x", -1, None, ""),
        # Rows are numbered from 1 in the text.
        (', metadata={op_name="f/sum" stack_frame_id=3}', "f/sum", 2, None, ""),
        (
            ', dimensions={0}, metadata={op_name="f/sum" stack_frame_id=3}, backend_config={"a":1}',
            *("f/sum", 2, None, ', dimensions={0}, backend_config={"a":1}'),
        ),
        (', metadata={op_type="sum" op_name="f/sum" stack_frame_id=1}', "f/sum", 0, None, ""),
        (", metadata={stack_frame_id=12}, channel_id=1", "", 11, None, ", channel_id=1"),
        (r', metadata={op_name="state[\'step\']"}', "state['step']", -1, None, ""),
        # A name may hold what looks like a number of a row.
        (r', metadata={op_name="\'stack_frame_id=7\'" stack_frame_id=2}', "'stack_frame_id=7'", 1, None, ""),
        # Before there were tables, an instruction had its line.
        (
            ', dimensions={0}, metadata={op_type="add" op_name="f/add" source_file="f.py" source_line=7}',
            *("f/add", -1, Frame("f.py", "", 7, 0, 7, 0), ", dimensions={0}"),
        ),
        (
            ', metadata={source_file="a \\"b\\".py" source_line=7 source_end_line=9'
            " source_column=4 source_end_column=5}",
            *("", -1, Frame('a "b".py', "", 7, 4, 9, 5), ""),
        ),
        (', metadata={op_name="a" source_file="f.py"}', "a", -1, Frame("f.py", "", 0, 0, 0, 0), ""),
        (', metadata={op_name="a" source_file="f.py" source_line=7 stack_frame_id=2}', "a", 1, None, ""),
        # That of a sharding, or in a string, is not the instruction's.
        (
            ', sharding={replicated metadata={op_name="no"}}, metadata={op_name="yes"}',
            *("yes", -1, None, ', sharding={replicated metadata={op_name="no"}}'),
        ),
        (
            ', backend_config="metadata={op_name=no}", metadata={op_name="yes"}',
            *("yes", -1, None, ', backend_config="metadata={op_name=no}"'),
        ),
        (', sharding={metadata={op_name="no"}}', "", -1, None, ', sharding={metadata={op_name="no"}}'),
        # One that is cut off.
        (', dimensions={0}, metadata={op_name="x"', "x", -1, None, ", dimensions={0}"),
    ],
)  # fmt: skip
def test_what_metadata_says_and_what_is_left_without_it(rest, name, row, frame, attributes):
    assert read_metadata(rest) == (name, row, frame, attributes)


TABLES = """
FileNames
1 "f.py"
2 "a "b".py"

FunctionNames
1 "inner"
2 "outer"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=4 column=8 end_column=20}
2 {file_name_id=2 function_name_id=2 line=7 end_line=7 column=1 end_column=5}

StackFrames
1 {file_location_id=2}
3 {file_location_id=1 parent_frame_id=1}
"""


def test_the_tables_of_a_module_are_one_table_of_frames():
    assert read_frames(TABLES.split("\n")) == [
        Frame('a "b".py', "outer", 7, 1, 7, 5, parent=-1),
        Frame("", "", 0, 0, 0, 0, parent=-1),  # the table has no second row
        Frame("f.py", "inner", 3, 8, 4, 20, parent=0),
    ]
    assert read_frames([]) == read_frames(["StackFrames"]) == []


def test_a_damaged_number_of_a_row_makes_no_more_rows_than_twice_those_that_are_there():
    rows = ["StackFrames", "1 {file_location_id=1}", "999999999 {file_location_id=1}"]
    assert len(read_frames(rows)) == 4


def frame(file, line=1, parent=-1):
    return Frame(file, "f", line, 0, line, 0, parent=parent)


RUNNER = "/env/lib/python3.11/site-packages/IPython/core/interactiveshell.py"


@pytest.mark.parametrize(
    ("file", "runs"),
    [
        (RUNNER, True),
        ("/env/lib/python3.11/asyncio/events.py", True),
        ("/env/lib/python3.11/site-packages/flax/linen/module.py", False),
        ("/home/me/IPython/model.py", False),  # not where an environment keeps its packages
        ("/src/explorer/capture/explore.py", True),
        ("/src/explorer/analysis/search.py", False),  # it runs nobody's code
        ("<frozen runpy>", True),
        ("train.py", False),
    ],
)
def test_what_runs_the_users_code_is_known_by_its_file(file, runs):
    assert is_runner(file) is runs


def test_a_stack_ends_where_its_runner_begins():
    user, runner, outer = frame("f.py"), frame(RUNNER), frame("train.py")
    assert users_part([user, outer]) == (user, outer)
    assert users_part([user, runner, outer]) == (user,)
    assert users_part([runner]) == ()


def test_a_table_of_frames_loses_the_runners_and_who_called_them():
    # 0 calls 1 (a runner), which calls 2, which calls 3; 4 has no file; 5 is called by nobody.
    called = [frame("train.py"), frame(RUNNER, parent=0), frame("f.py", parent=1), frame("g.py", parent=2)]
    table = [*called, frame("", parent=5), frame("h.py")]
    assert users_frames(table) == (
        [frame("f.py"), frame("g.py", parent=0), frame("h.py")],
        [-1, -1, 0, 1, -1, 2],
    )


def test_a_stack_that_stands_on_itself_again_is_cut():
    # Inlining puts the callee's whole stack on the caller's, which is the same again.
    table = [frame("f.py"), frame("g.py", parent=0), frame("f.py", parent=1), frame("g.py", parent=2)]
    users, _ = users_frames(table)
    assert [user.parent for user in users] == [-1, 0, -1, 2]


def test_a_parent_that_is_not_there_is_none():
    assert users_frames([frame("f.py", parent=7)])[0] == [frame("f.py")]


@pytest.mark.parametrize(
    ("attributes", "whole"),
    [
        ("", True),
        (", a=1, b={0,1}, to_apply=%add", True),
        (', s="x, {", m={op_name="a(" b=1}', True),
        (", g=[2,4]<=[4,2]T(1,0)", True),
        (", a={{{{{1}}}}}", True),
        (", a=" + "{" * 20 + "}" * 20, True),
        (", literal=s32[2]{0} {1, 2}", True),
        (", backend_config={index = 0 : ui64}", True),
        (", replica_groups=mesh['a'=1,'b'=4] {'b'}, dimensions={1}", True),
        (", a=1 ", False),
        (" x", False),
        (", a=", False),
        (", a={1", False),
        (", to_apply={ ROOT %x = f32[] add()}", False),
        (", to_apply={ x = f32[] add(y) }", False),
        (", branch_computations={%a, %b}", True),
        (", branch_computations={%a, /*index=1*/%b}", True),
        (", branch_computations={%a, {%b}}", False),
    ],
)
def test_a_pattern_takes_only_what_is_attributes_alone(attributes, whole):
    assert is_whole(attributes) is whole
