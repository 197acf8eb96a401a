"""The HLO reader, held against XLA's own parser."""

from pathlib import Path
from time import thread_time

import pytest
from jaxlib import _hlo

from explorer._jax.binary_reader import printed_hlo
from explorer.capture.readers import hlo
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.hlo_attributes import read_frames
from explorer.errors import UnreadableTextError
from tests.support.functions import FUNCTIONS, compiled_text
from tests.support.xla_oracle import SPELLINGS, assert_read_as_xla_does, spelled

SAMPLES = sorted((Path(__file__).parents[3] / "support" / "hlo_samples").glob("*.hlo"))


@pytest.mark.parametrize("case", FUNCTIONS)
def test_reads_the_same_instructions_types_operands_and_users_as_xla(case):
    assert_read_as_xla_does(compiled_text(*FUNCTIONS[case]))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_reads_every_spelling_as_xla_does(spelling):
    module = _hlo.hlo_module_from_text(compiled_text(*FUNCTIONS["gradient"]))
    assert_read_as_xla_does(spelled(module, spelling))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_reads_other_machines_and_hand_written_modules_as_xla_does(path):
    text = path.read_text()
    assert_read_as_xla_does(printed_hlo(text.encode()) if path.stem == "handwritten" else text)


def sample(name):
    return read_hlo(next(path for path in SAMPLES if path.stem == name).read_text())


def test_an_asynchronous_call_leads_to_its_computation():
    graph = sample("async")
    called = next(group for group in graph.groups if group.name == "gather")
    assert graph.names[called.caller] == "start"
    assert [o.name for o in graph["done"].operands] == ["update"]
    assert [o.name for o in graph["cp-start"].operands] == ["ar-done"]  # what must come before it is no operand


def test_two_modules_in_one_text_keep_to_themselves():
    text = compiled_text(*FUNCTIONS["chain"])
    one, two = read_hlo(text), read_hlo(text + text)
    assert len(two) == 2 * len(one)
    assert sum(group.caller < 0 for group in two.groups) == 2
    assert all(o.index // len(one) == node.index // len(one) for node in two.nodes for o in node.operands)


def test_the_same_names_in_two_computations_are_two_nodes():
    text = "a {\n  x = f32[] parameter(0)\n  ROOT y = f32[] tanh(x)\n}\nENTRY b {\n  x = f32[] parameter(0)\n"
    graph = read_hlo(text + "  ROOT y = f32[] call(x), to_apply=a\n}\n")
    assert [[o.index for o in node.operands] for node in graph.nodes] == [[], [0], [], [2]]
    assert graph.groups[0].caller == 3


def test_a_parent_is_read_from_tables_of_either_count():
    def tables(parents):
        rows = "".join(f"{i} {{file_location_id={i}{parent}}}\n" for i, parent in enumerate(parents, 1))
        places = "".join(f"{i} {{file_name_id=1 function_name_id=1 line={i}}}\n" for i in (1, 2, 3))
        return f'FileNames\n1 "f.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n{places}\nStackFrames\n{rows}'.split(
            "\n"
        )

    one_too_high = read_frames(tables((" parent_frame_id=1", " parent_frame_id=2", " parent_frame_id=2")))
    right = read_frames(tables((" parent_frame_id=0", " parent_frame_id=1", " parent_frame_id=1")))
    left_out = read_frames(tables(("", " parent_frame_id=1", " parent_frame_id=1")))
    assert [frame.parent for frame in one_too_high] == [-1, 0, 0]
    assert one_too_high == right == left_out


def test_lines_that_cannot_be_read_are_named_and_the_others_read():
    graph = read_hlo("ENTRY e {\n  a = f32[] parameter(0)\n  what is this\n  b = f32[]\n  c = f32[] tanh(a)\n}\n")
    assert graph.names == ["a", "c"]
    assert graph.unread == (2, 3)


def test_every_called_computation_knows_its_caller():
    graph = read_hlo(compiled_text(*FUNCTIONS["gradient"]))
    kinds = {group.kind for group in graph.groups}
    assert {"entry", "fusion", "body", "condition", "branch"} <= kinds
    assert sum(group.caller < 0 for group in graph.groups) == 1


def test_frames_lead_from_the_instruction_to_the_users_line():
    graph = read_hlo(compiled_text(*FUNCTIONS["gradient"]))
    functions = {tuple(frame.function for frame in node.source)[:3] for node in graph.nodes if node.source}
    assert ("norm", "loss.<locals>.body", "loss") in functions


def test_text_that_is_no_hlo_is_refused_with_what_came():
    with pytest.raises(UnreadableTextError, match="starts with 'hello'"):
        read_hlo("hello\nworld")
    with pytest.raises(UnreadableTextError, match="empty"):
        read_hlo("")


MODULE = """HloModule broken, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

// a comment
ENTRY main {
  x = f32[8] parameter(0)
  zero = f32[] constant(0)
  this is no instruction

  ROOT total = f32[] reduce(x, zero), dimensions={0}, to_apply=add
}
"""


@pytest.mark.parametrize("size", [0, 20, 60])
def test_what_goes_over_the_end_of_a_block_is_read(size: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hlo, "_BLOCK", size)
    graph = read_hlo(MODULE)
    lines = MODULE.split("\n")
    assert graph.names == ["a", "b", "sum", "x", "zero", "total"]
    assert all(f"{node.name} = " in lines[node.line] for node in graph.nodes)
    assert [lines[line] for line in graph.unread] == ["  this is no instruction"]
    assert [node.name for node in graph["total"].operands] == ["x", "zero"]
    assert graph["total"].attributes["to_apply"] == "add"


def test_a_number_after_an_operand_takes_an_element_of_it():
    graph = read_hlo(
        "HloModule m\nENTRY e {\n  p = (f32[8], (s32[2], pred[])) parameter(0)\n"
        "  a = s32[2] negate(%p#1#0)\n  ROOT b = f32[8] add(%p#0, f32[8] %p#0)\n}\n"
    )
    assert graph.names == ["p", "p#1", "p#1#0", "a", "p#0", "b"]
    element = graph["p#1#0"]
    assert (element.op, element.type, element.attributes["index"]) == ("get-tuple-element", "s32[2]", "0")
    assert [o.name for o in graph["b"].operands] == ["p#0", "p#0"]
    assert (graph.unread, [node.line for node in graph.nodes]) == ((), [2, 3, 3, 3, 4, 4])


def test_an_element_in_a_line_that_cannot_be_read_is_none():
    graph = read_hlo("HloModule m\nENTRY e {\n  p = (f32[8], f32[8]) parameter(0)\n  a = f32[8] negate(%p#0) what\n}\n")
    assert (graph.names, graph.unread) == (["p"], (3,))


def test_elements_in_many_computations_are_read_as_fast_as_other_operands():
    def seconds(operand, count=3000):
        body = "%f{0} (p: (f32[2])) -> f32[2] {{\n  %p = (f32[2]) parameter(0)\n  ROOT %s{0} = f32[2] sine({1})\n}}\n"
        text = "HloModule m\n\n" + "".join([body.format(i, operand) for i in range(count)])
        taken = []
        for _ in range(3):
            start = thread_time()
            assert len(read_hlo(text)) == count * (3 if "#" in operand else 2)
            taken.append(thread_time() - start)
        return min(taken)

    assert seconds("%p#0") < 5 * seconds("%p")
