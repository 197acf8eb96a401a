"""Programs of many processes: who compiled which, what it cost and how they differ, each worked out by hand."""

from dataclasses import replace

import pytest

from explorer.analysis.recompiles.process_programs import ProcessFold, headline, process_ledger_text
from explorer.model.events.event import Event, Place
from explorer.model.events.key import Function, Key, Leaf, Static

SITE = Place("/home/a/train.py", 40, "train.py")


def event(kind="compile", seconds=0.5, *, call=1, function="step", line=10, leaves=(), program="", key=True, **more):
    """One event; what begins with `key_` goes into its key."""
    of_key = {name.removeprefix("key_"): more.pop(name) for name in [*more] if name.startswith("key_")}
    eager = more.pop("eager", False)
    made = Key(Function(function, "/home/a/train.py", line, eager=eager), tuple(leaves), **of_key) if key else None
    return Event(kind, function, SITE, seconds, call=call, key=made, program=program, **more)


def sized(size, **more):
    return event(leaves=[Leaf("x", (size,), "float32")], **more)


def folded(*processes, **more):
    fold = ProcessFold(**more)
    for at, events in enumerate(processes):
        fold.begin(str(at))
        fold.add(events)
    return fold.ledger()


def texts(*processes, **more):
    return [difference.text for difference in folded(*processes, **more).differences]


# What a program is ---------------------------------------------------------------------------------------------------


def test_all_that_a_program_is_comes_from_its_compile():
    leaves = [
        Leaf("x", (2, "n"), "float32", weak=True),
        Leaf("y", (), "int8", sharding="S", layout="{0,1}"),
        Leaf("z", (4,), "bool", sharding="S", spread=("P('d')", "d=2", "")),
    ]
    (row,) = folded([
        event(
            leaves=leaves,
            key_statics=(Static("f", "<function f at 0x7f3c>", "function"), Static("n", "3", "int")),
            key_donated=("x", "y"),
            key_context=(("mesh", "<Mesh at 0x12ab>"),),
            key_options=(("xla", "1"),),
            key_wrapping=(("inline", "True"),),
            program="12 mul:float32[8] #aaaa\nadd:float32[8] #bbbb",
        )
    ])  # fmt: skip
    assert (row.function, row.file, row.line, row.call_site) == ("step", "train.py", 10, "train.py, line 40")
    assert row.arguments == (("x", "float32[2,n] weak"), ("y", "int8[] S {0,1}"), ("z", "bool[4] P('d') over d=2"))
    assert row.settings == (
        ("f", "<function f>"), ("n", "3"), ("donated", "x, y"), ("mesh", "<Mesh>"), ("xla", "1"), ("inline", "True"),
    )  # fmt: skip
    assert row.lines == ((12, "mul:float32[8] #aaaa"), (0, "#bbbb"))
    assert (row.eager, row.is_shared) == (False, False)
    (bare,) = folded([event(key=False, program="7 add:f32[] #a")])
    assert (bare.function, bare.file, bare.line, bare.arguments, bare.lines) == (
        "step", "", 0, (), ((7, "add:f32[] #a"),),
    )  # fmt: skip
    assert bare.call_site == "train.py, line 40"


@pytest.mark.parametrize(
    ("device", "local_devices", "is_shared"),
    [
        ("cpu:0", 0, True),  # two devices, of which the process has one
        ("cpu:0-1", 0, False),
        ("gpu:0,2", 0, False),
        ("gpu:3-4", 0, False),
        ("gpu:3", 0, True),
        ("gpu", 0, True),
        ("tpu:a-b", 0, True),
        ("cpu:0", 2, False),
        ("cpu:0-3", 1, True),
    ],
)
def test_an_array_on_more_devices_than_a_process_has_is_shared(device, local_devices, is_shared):
    compiled = event(leaves=[Leaf("x", (2,), "f", devices=("d:0", "d:1"))], device=device)
    (row,) = folded([compiled], local_devices=local_devices)
    assert row.is_shared is is_shared


def test_a_program_is_shared_where_any_of_its_processes_says_so():
    own, far = (event(leaves=[Leaf("x", (2,), "f", devices=devices)]) for devices in (("d:0",), ("d:0", "d:1")))
    for order in ((own, far), (far, own), (own, far, own)):
        (row,) = folded(*([one] for one in order))
        assert row.is_shared


# What it cost --------------------------------------------------------------------------------------------------------


def test_seconds_are_those_of_all_steps_of_a_call_and_the_slowest_process_has_its_own():
    ledger = folded(
        [event("trace", 1.0), event("lower", 2.0), event("miss", 100.0), event("compile", 4.0)],
        [event("trace", 0.5, call=3), event("compile", 16.0, call=2), event("cache-hit", 0.25, call=3)],
        [event("compile", 8.0), event("compile", 1.0, call=2), event("compile", 8.0, call=3, error="E")],
    )
    (row,) = ledger
    assert (row.processes, row.compiles, row.seconds) == (((0, 2),), 5, 7.0 + 16.75 + 9.0)
    assert (row.slowest, row.slowest_process) == (16.75, 1)
    assert ledger.events == 10


def test_compiles_of_no_known_call_are_for_themselves():
    (row,) = folded([event("trace", 1.0, call=0), event("compile", 2.0, call=0)])
    assert (row.compiles, row.seconds) == (1, 2.0)


def test_of_processes_that_took_as_long_the_first_is_the_slowest():
    (row,) = folded([event()], [event()])
    assert (row.slowest, row.slowest_process) == (0.5, 0)


def test_programs_stand_by_what_they_cost():
    ledger = folded([sized(1, seconds=1.0), sized(2, seconds=4.0, call=2), sized(3, seconds=2.0, call=3)])
    assert [row.arguments[0][1] for row in ledger] == ["float32[2]", "float32[3]", "float32[1]"]


def test_ledgers_that_are_folded_go_behind_those_that_are_there():
    first = folded([sized(1)], [sized(2)])
    second = folded([sized(2, seconds=3.0)], [sized(1)], [sized(2)])
    fold = ProcessFold()
    fold.add_ledger(first)
    fold.add_ledger(second, ["a", "b", "c"])
    whole = fold.ledger()
    assert whole.processes == ("0", "1", "a", "b", "c")
    two, one = whole
    assert (two.processes, two.compiles, two.seconds, two.slowest, two.slowest_process) == (
        ((1, 2), (4, 4)), 3, 4.0, 3.0, 2,
    )  # fmt: skip
    assert (one.processes, one.compiles, one.slowest_process) == (((0, 0), (3, 3)), 2, 0)
    assert whole.events == 5


def test_what_is_left_out_is_counted(monkeypatch):
    module = "explorer.analysis.recompiles.process_programs"
    monkeypatch.setattr(f"{module}._MAX_PROGRAMS", 3)
    monkeypatch.setattr(f"{module}._MAX_DIFFERENCES", 1)
    ledger = folded([sized(size, call=size) for size in (1, 2, 3)], [sized(size, call=size) for size in (1, 4, 5)])
    assert len(ledger) == 3
    assert ledger.notes == (
        "2 compiles of more than 3 distinct programs are left out",
        "1 more differences are left out",
    )
    assert len(ledger.differences) == 1
    exact = folded([sized(size, call=size) for size in (1, 2, 3)])
    assert exact.notes == ()


# Who differs ---------------------------------------------------------------------------------------------------------

STEP_AT = "step (train.py, line 10)"
WAITS = "; its arrays span several processes, which may deadlock"


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([[8], [8], [8]], []),
        ([[8], []], []),  # who never calls it is no difference
        (
            [[8], [9]],
            [f"process 1 compiled a different program for {STEP_AT}: x is float32[9], float32[8] with process 0"],
        ),
        (
            [[8], [9], [8]],
            [
                f"process 1 compiled a different program for {STEP_AT}: x is float32[9], "
                "float32[8] with processes 0 and 2"
            ],
        ),
        (
            [[8], [9], [8], [8], [9]],
            [
                f"processes 1 and 4 compiled a different program for {STEP_AT}: x is float32[9], "
                "float32[8] with 3 others"
            ],
        ),
        # Just half is not most: what as many have as any other, the first of them, is what the rest is held against.
        (
            [[9], [8], [8], [9]],
            [
                f"processes 1–2 compiled a different program for {STEP_AT}: x is float32[8], float32[9] "
                "with processes 0 and 3"
            ],
        ),
        (
            [[8, 9], [8], [8, 9]],
            [f"process 1 compiled no program for {STEP_AT} where processes 0 and 2 did"],
        ),
        (
            [[8], [8, 7], [8]],
            [f"process 1 compiled a different program for {STEP_AT}: x is float32[7], float32[8] with 3 others"],
        ),
        (
            [[8], [7], [6]],
            [
                f"process 1 compiled a different program for {STEP_AT}: x is float32[7], float32[8] with process 0",
                f"process 2 compiled a different program for {STEP_AT}: x is float32[6], float32[8] with process 0",
            ],
        ),
    ],
)
def test_who_compiled_another_program_than_most(sizes, expected):
    processes = [[sized(size, call=at + 1) for at, size in enumerate(some)] for some in sizes]
    assert texts(*processes) == expected


def test_who_lacks_a_shared_program_waits_for_it():
    shared = event(leaves=[Leaf("x", (8,), "float32", devices=("d:0", "d:1"))])
    assert texts([shared], [shared], []) == [
        f"process 2 compiled no program for {STEP_AT} where processes 0–1 did{WAITS}"
    ]
    other = event(leaves=[Leaf("x", (9,), "float32", devices=("d:0", "d:1"))])
    assert texts([shared], [other]) == [
        f"process 1 compiled a different program for {STEP_AT}: x is float32[9], float32[8] with process 0{WAITS}"
    ]


def test_shared_programs_come_first_and_then_those_that_few_lack():
    def process(size, other, *, far=()):
        far_leaf = Leaf("w", (size,), "f", devices=("d:0", "d:1"))
        return [
            sized(size),
            sized(other, call=2, function="g"),
            *([event(call=3, function="h", leaves=[far_leaf])] * far),
        ]

    ledger = folded(process(1, 1, far=1), process(1, 2, far=1), process(2, 2, far=1), process(1, 1, far=1), [], [])
    named = [(row.is_shared, ledger.rows[row.program].function, row.processes) for row in ledger.differences]
    assert named == [
        (True, "h", ((2, 2),)),
        (True, "h", ((4, 5),)),
        (False, "step", ((2, 2),)),
        (False, "g", ((1, 2),)),
    ]


def test_single_operations_are_nobodys_difference():
    assert texts([sized(1, eager=True)], [sized(2, eager=True)]) == []


def lines(*rows):
    return event(program="\n".join(rows))


@pytest.mark.parametrize(
    ("usual", "here", "line", "what"),
    [
        (sized(8), sized(9), 10, "x is float32[9], float32[8]"),
        (event(key_context=(("a", "1"),)), event(key_context=(("a", "2"),)), 10, "a is 2, 1"),
        (event(), event(key_context=(("a", "2"),)), 10, "a is 2, not there"),
        (event(leaves=[Leaf("x", (), "f")]), event(leaves=[Leaf("y", (), "f")]), 10, "x is not there, f[]"),
        (lines("3 mul:f[8] #a"), lines("3 add:f[8] #b"), 3, "line 3 is add f[8], mul f[8]"),
        (lines("3 mul:f[8] #a"), lines("3 mul:f[8] #a", "4 add:f[8] #b"), 4, "line 4 is add f[8], not there"),
        (
            lines("3 mul:f[8] #a"), lines("3 mul:f[8] #b"), 3,
            "line 3 is mul f[8] of another kind or number, mul f[8] of one kind",
        ),
        (
            lines("3 a:f b:f c:f d:f #a"), lines("3 a:f b:f c:f d:f e:f #b"), 3,
            "line 3 is a f, b f, c f, d f, …, a f, b f, c f, d f",
        ),
    ],
)  # fmt: skip
def test_the_first_thing_in_which_two_programs_differ_is_named(usual, here, line, what):
    (difference,) = folded([usual], [usual], [here]).differences
    assert (difference.line, difference.program, difference.other) == (line, 0, 1)
    assert difference.text == f"process 2 compiled a different program for {STEP_AT}: {what} with processes 0–1"


def test_arguments_in_another_order_are_something_that_no_argument_shows():
    both = [Leaf("x", (), "f"), Leaf("y", (), "f")]
    (text,) = texts([event(leaves=both)], [event(leaves=both)], [event(leaves=both[::-1])])
    assert ": something that its arguments don't show is another, one thing with processes 0–1" in text


# In a sentence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([[8]], "1 program of 1 process, 1 compiled by all; no process compiled a different program"),
        (
            [[8], [8]],
            "1 program of 2 processes, 1 compiled by all; no process compiled a different program",
        ),
        (
            [[8], [8], [9]],
            "2 programs of 3 processes, 0 compiled by all; process 2 compiled a different program from most",
        ),
        (
            [[8, 1], [8, 1], [8, 1], [9, 1], [7, 1]],
            "4 programs of 5 processes, 1 compiled by all; processes 3–4 compiled a different program from most",
        ),
    ],
)
def test_how_much_was_compiled_by_how_many_is_one_sentence(sizes, expected):
    ledger = folded(*([sized(size, call=at + 1) for at, size in enumerate(some)] for some in sizes))
    assert headline(ledger) == expected
    rows = [f"  {difference.text}" for difference in ledger.differences]
    assert process_ledger_text(ledger) == "\n".join([f"ProcessLedger({expected})", *rows])


def test_of_many_differences_the_first_five_are_printed():
    ledger = folded(*([sized(size)] for size in (8, 8, 8, 8, 8, 8, 8, 8, 1, 2, 3, 4, 5, 6)))
    assert len(ledger.differences) == 6
    assert len(process_ledger_text(ledger).splitlines()) == 6


def test_calls_of_one_key_may_have_compiled_two_programs():
    """As where a global that the function reads has changed."""
    first = lines("3 mul:f[8] #a")
    second = replace(first, call=2, program="3 mul:f[8] #b")
    assert second.key is first.key
    assert [row.lines for row in folded([first, second, replace(first, call=3)])] == [
        ((3, "mul:f[8] #a"),), ((3, "mul:f[8] #b"),),
    ]  # fmt: skip
