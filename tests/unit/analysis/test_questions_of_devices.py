"""What is answered of several devices, from programs as text: each sentence to the letter, bytes counted by hand."""

import pytest

import explorer as ex
from explorer.analysis.array_questions import argument_words, collectives, gathered, sharded
from explorer.analysis.collectives import group_text
from explorer.analysis.graphs import entry_parameters

HEAD = """HloModule m, is_scheduled=true, num_partitions=4

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}
"""
# Each device has 8 × 16 elements of 4 bytes, 512 in all.
ENTRY = """
ENTRY %e (x: f32[8,16], w: f32[16,4]) -> f32[8,16] {
  %x = f32[8,16]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}, metadata={op_name="batch[\\'image\\']"}
  %w = f32[16,4]{1,0} parameter(1), sharding={replicated}, metadata={op_name="weight"}
BODY
  ROOT %end = f32[8,16]{1,0} negate(%x)
}
"""
ALL, PAIRS = "replica_groups={{0,1,2,3}}", "replica_groups={{0,1},{2,3}}"


def capture(*body, head=HEAD):
    return ex.open_hlo(head + ENTRY.replace("BODY", "\n".join(f"  {line}" for line in body)))


def said(answer):
    return answer.text, answer.certainty


@pytest.mark.parametrize(
    ("instruction", "kind", "size", "given", "wire"),
    [
        # a ring: 2 b (n - 1) / n, b (n - 1), b (n - 1) / n
        (f"%c = f32[8,16]{{1,0}} all-reduce(%x), {ALL}, to_apply=%sum", "all-reduce", 4, 512, 768),
        (f"%c = f32[8,16]{{1,0}} all-reduce(%x), {PAIRS}, to_apply=%sum", "all-reduce", 2, 512, 512),
        ("%c = f32[8,16]{1,0} all-reduce(%x), replica_groups={}, to_apply=%sum", "all-reduce", 4, 512, 768),
        (f"%c = f32[32,16]{{1,0}} all-gather(%x), {ALL}, dimensions={{0}}", "all-gather", 4, 512, 3 * 512),
        (f"%c = f32[16,16]{{1,0}} all-gather(%x), {PAIRS}, dimensions={{0}}", "all-gather", 2, 512, 512),
        (
            f"%c = f32[2,16]{{1,0}} reduce-scatter(%x), {ALL}, dimensions={{0}}, to_apply=%sum",
            "reduce-scatter", 4, 512, 384,
        ),
        (f"%c = f32[8,16]{{1,0}} all-to-all(%x), {ALL}, dimensions={{0}}", "all-to-all", 4, 512, 384),
        (f"%c = f32[8,16]{{1,0}} collective-broadcast(%x), {ALL}", "collective-broadcast", 4, 512, 512),
        (
            "%c = f32[8,16]{1,0} collective-permute(%x), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}",
            "collective-permute", 2, 512, 512,
        ),
        # of several arrays all are sent
        (
            f"%c = (f32[8,16]{{1,0}}, f32[16,4]{{1,0}}) all-reduce(%x, %w), {ALL}, to_apply=%sum",
            "all-reduce", 4, 512 + 256, 1152,
        ),
    ],
)  # fmt: skip
def test_what_a_collective_sends(instruction, kind, size, given, wire):
    (row,) = capture(instruction).collectives
    assert (row.kind, row.size, row.bytes, row.wire, row.runs) == (kind, size, given, wire, 1.0)
    assert (row.axes, row.overlaps, row.line) == ((), (), 0)


STARTED = (
    f"%begun = (f32[8,16]{{1,0}}, f32[32,16]{{1,0}}) all-gather-start(%x), {ALL}, dimensions={{0}}SYNC",
    "%one = f32[8,16]{1,0} tanh(%x)",
    "%plumbing = f32[128]{0} bitcast(%x)",
    "%copied = (f32[16,4]{1,0}, f32[16,4]{1,0}, u32[]) copy-start(%w)",
    "%two = f32[8,16]{1,0} sine(%one)",
    "%done = f32[32,16]{1,0} all-gather-done(%begun)",
    "%three = f32[8,16]{1,0} cosine(%x)",
)


@pytest.mark.parametrize(
    ("sync", "head", "beside"),
    [
        ("", HEAD, ["one", "two"]),
        (', backend_config={"collective_backend_config":{"is_sync":false}}', HEAD, ["one", "two"]),
        (', backend_config={"collective_backend_config":{"is_sync":true}}', HEAD, []),
        (', backend_config={"other":{}}', HEAD, ["one", "two"]),
        ("", HEAD.replace(", is_scheduled=true", ""), []),  # in which order it runs nobody knows
    ],
)
def test_what_runs_between_a_start_and_its_end_runs_beside_it(sync, head, beside):
    (row,) = capture(*(line.replace("SYNC", sync) for line in STARTED), head=head).collectives
    assert (row.kind, [node.name for node in row.overlaps]) == ("all-gather", beside)


def gathers(count):
    """Of x and then of smaller and smaller parts: 3 × 32 bytes for each column that a device sends."""
    lines: list[str] = []
    for at in range(count):
        lines.append(f"%p{at} = f32[8,{16 - at}]{{1,0}} slice(%x), slice={{[0:8], [0:{16 - at}]}}")
        lines.append(f"%g{at} = f32[32,{16 - at}]{{1,0}} all-gather(%p{at}), {ALL}, dimensions={{0}}")
    return lines


GROUP = "all-gather along {0,1,2,3}"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "Nothing is gathered: there is no all-gather in the program."),
        (1, f"1 array is gathered: {GROUP} (each device sends 1.5 kB)."),
        (2, f"2 arrays are gathered: {GROUP} (each device sends 1.5 kB) and {GROUP} (each device sends 1.4 kB)."),
        (
            3,
            f"3 arrays are gathered: {GROUP} (each device sends 1.5 kB), {GROUP} (each device sends 1.4 kB) and "
            f"{GROUP} (each device sends 1.3 kB).",
        ),
        (
            4,
            f"4 arrays are gathered: {GROUP} (each device sends 1.5 kB), {GROUP} (each device sends 1.4 kB) and "
            f"{GROUP} (each device sends 1.3 kB) and 1 more.",
        ),
    ],
)
def test_what_is_gathered(count, text):
    # a sum beside it is no gather
    answer = gathered(capture(*gathers(count), f"%r = f32[8,16]{{1,0}} all-reduce(%x), {ALL}, to_apply=%sum"))
    assert said(answer) == (text, "exact")
    assert answer.hint == ""
    assert len(answer.nodes) == count


def test_which_collectives_send_most():
    assert said(collectives(capture())) == ("There is no collective: the devices send each other nothing.", "exact")
    reduced = f"%r = f32[8,16]{{1,0}} all-reduce(%x), {PAIRS}, to_apply=%sum"
    answer = collectives(capture(*(line.replace("SYNC", "") for line in STARTED), reduced))
    # 1,536 bytes and 512 of 2,048
    assert said(answer) == (
        f"By the bytes that each device sends: "
        f"{GROUP} sends 1.5 kB (75%); all-reduce along {{0,1}}, {{2,3}} sends 512 B (25%). "
        "1 of 2 run while no kernel runs.",
        "inferred",
    )
    assert answer.hint == "No time was measured."


def test_of_more_than_three_the_rest_is_counted():
    # 3 × 512, 480, 448, 416 bytes: 1,536, 1,440, 1,344 of 5,568
    answer = collectives(capture(*gathers(4)))
    assert answer.text == (
        f"By the bytes that each device sends: "
        f"{GROUP} sends 1.5 kB (28%); {GROUP} sends 1.4 kB (26%); {GROUP} sends 1.3 kB (24%)"
        ", and 1 more the rest. 4 of 4 run while no kernel runs."
    )
    assert [node for node in answer.nodes] == sorted(answer.nodes)
    assert "more" not in collectives(capture(*gathers(3))).text


WHOLE = "weight is f32[16,4]: whole on each device"
PART = "batch['image'] is f32[32@devices,16]: split along devices"


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("how are the arguments sharded?", f"On 4 devices (devices 4) {PART}; {WHOLE}."),
        ("how is weight sharded?", f"On 4 devices (devices 4) {WHOLE}."),
        ("how is batch['image'] sharded?", f"On 4 devices (devices 4) {PART}."),
        ("how is the image sharded?", f"On 4 devices (devices 4) {PART}."),
        ("how is end sharded?", "On 4 devices (devices 4) end is f32[32@devices,16]: split along devices."),
        ("how is end. sharded?", "On 4 devices (devices 4) end is f32[32@devices,16]: split along devices."),
    ],
)
def test_how_a_value_lies(question, text):
    assert said(sharded(capture(), question)) == (text, "exact")


def test_how_the_chosen_value_lies_and_the_arguments_words():
    program = capture()
    graph = program.hlo.graph
    assert sharded(program, "how is this sharded", graph["end"].index).nodes == (graph["end"].index,)
    assert [node.name for node in entry_parameters(graph)] == ["x", "w"]
    assert argument_words(program) == {"batch", "image", "weight"}


def test_three_arguments_are_told_the_others_counted():
    several = "\n".join(f"  %p{at} = f32[4]{{0}} parameter({at}), sharding={{replicated}}" for at in range(5))
    text = f"HloModule m, num_partitions=4\n\nENTRY %e {{\n{several}\n  ROOT %r = f32[4]{{0}} negate(%p0)\n}}\n"
    answer = sharded(ex.open_hlo(text), "how is it sharded?")
    assert answer.text == (
        "On 4 devices (devices 4) p0 is f32[4]: whole on each device; p1 is f32[4]: whole on each device; "
        "p2 is f32[4]: whole on each device and 2 arguments more."
    )
    assert len(answer.nodes) == 3


def test_a_program_of_one_device_has_all_of_it():
    text = "HloModule m\n\nENTRY %e {\n  %p = f32[4]{0} parameter(0)\n  ROOT %r = f32[4]{0} negate(%p)\n}\n"
    assert said(sharded(ex.open_hlo(text))) == ("The program runs on one device, which has every array whole.", "exact")


def test_of_groups_two_are_written():
    assert group_text(((0, 1), (2, 3))) == "{0,1}, {2,3}"
    assert group_text(((0, 1), (2, 3), (4, 5))) == "{0,1}, {2,3}, …"
