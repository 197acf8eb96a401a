"""Ledgers made of events that could have been: few, many, a storm, hostile names."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.key import LEAF, Function, Key, Leaf, TreeNode
from explorer.model.events.ledger import Ledger
from tests.examples.hostile import MARKUP

START = 1_760_000_000.0
LINES = {3: "loss = step(params, batch)", 7: "pad = evaluate(x)", 9: "y = jnp.sort(x)", 12: "fit(data)"}
HOSTILE = MARKUP


def _tree() -> TreeNode:
    params, batch = (TreeNode("dict", steps=(f"['{key}']",), children=(LEAF,)) for key in "wx")
    arguments = TreeNode("tuple", steps=("[0]", "[1]"), children=(params, batch))
    return TreeNode("tuple", steps=("[0]", "[1]"), children=(arguments, TreeNode("dict")))


def place(cell: int, line: int, function: str = "") -> Place:
    return Place(f"/tmp/ipykernel_1/{cell}.py", line, f"cell [{cell}]", LINES.get(line, "f(x)"), function)


def call(
    number: int,
    function: str,
    start: float,
    seconds: tuple[float, float, float],
    reason: Reason,
    cell: int = 4,
    line: int = 3,
    shape: tuple[int, ...] = (32, 128),
    run: int = 0,
    eager: bool = False,
    hit: bool = False,
    stack: tuple[Place, ...] = (),
) -> tuple[Event, ...]:
    """The events of one call that was traced, lowered and compiled."""
    site = place(cell, line)
    whole = stack or (site,)
    file = "" if eager else "/tmp/ipykernel_1/2.py"
    key = Key(
        Function(function, file, 0 if eager else 1, eager=eager),
        (Leaf("params['w']", (128, 64), "float32"), Leaf("batch['x']", shape, "float32")),
        tree=_tree(),
    )
    made: list[Event] = []
    at = START + start
    for kind, took in zip(("trace", "lower", "cache-hit" if hit else "compile"), seconds, strict=True):
        made.append(
            Event(
                kind, function, whole[0], took, reason, f"[{function}/{run + 1}]", number, at, whole, key,
                "MainThread", "cpu:0", saved=2.5 if kind == "cache-hit" else 0.0,
            )
        )  # fmt: skip
        at += took
    return tuple(made)


def varied(size: int, before: int) -> Reason:
    return Reason(
        "shape",
        "batch['x'].shape[0]",
        str(before),
        str(size),
        'step = ex.compile(step, args=[params, {"x": InputInfo((NamedDimension("batch", 32, 36, 40), 128))}])',
        f"batch['x'].shape[0] changed: {before} → {size}",
    )


def ledger_of(calls: Sequence[tuple[Event, ...]]) -> Ledger:
    made = Ledger()
    for events in calls:
        made.add(events)
    return made


def one() -> Ledger:
    return ledger_of([call(1, "step", 0, (0.02, 0.01, 0.3), Reason("first", text="first call"))])


def typical() -> Ledger:
    """Thirty calls: `step` compiled nine times, others for other reasons, eager operations between."""
    first = Reason("first", text="first call of this function")
    inner = (place(3, 12, "fit"), place(4, 3))
    calls = [call(1, "init_params", 0.0, (0.05, 0.02, 0.31), first, 2, 5)]
    at, number = 0.6, 2
    for run in range(9):
        reason = first if run == 0 else varied(32 + run, 31 + run)
        calls.append(call(number, "step", at, (0.42, 0.11, 4.05), reason, 4, 3, (32 + run, 128), run, stack=inner))
        at, number = at + 4.9, number + 1
        if run % 2:
            calls.append(call(number, "sort", at, (0.002, 0.001, 0.03), first, 4, 9, (run,), eager=True))
            at, number = at + 0.1, number + 1
    at += 190
    weak = Reason(
        "weak-type", "scale", "float32 (weak)", "float32", "scale = jnp.float32(0.5)", "`scale` was a Python number"
    )
    new = Reason(
        "function", "", "", "", "hoist the lambda: define it once, outside of the loop",
        "a new <lambda> object each time, made 4 times at cell [6], line 2",
    )  # fmt: skip
    calls.append(call(number, "evaluate", at, (0.1, 0.03, 0.9), first, 6, 7, run=0))
    calls.append(call(number + 1, "evaluate", at + 1.5, (0.1, 0.03, 0.85), weak, 6, 7, run=1))
    for run in range(4):
        why = new if run else first
        calls.append(call(number + 2 + run, "<lambda>", at + 4 + run, (0.03, 0.01, 0.2), why, 6, 2, run=run))
    for run in range(11):
        calls.append(
            call(number + 6 + run, "convert_element_type", at + 9 + 0.1 * run, (0.001, 0.001, 0.02), first, 7, 1,
                 run=run, eager=True, hit=run == 3)
        )  # fmt: skip
    return ledger_of(calls)


def many(count: int = 10_000) -> Ledger:
    """So many calls, of forty functions in twenty cells; one of them is a storm."""
    calls: list[tuple[Event, ...]] = []
    runs: dict[str, int] = {}
    for i in range(count):
        name = "step" if i % 3 == 0 else f"block_{i * 7 % 39}"
        run = runs[name] = runs.get(name, -1) + 1
        size = 32 + run % 97
        reason = Reason("first", text="first call") if run == 0 else varied(size, 31 + run % 97)
        if run % 5 == 3:
            reason = Reason("static", "n", str(run - 1), str(run), "pass `n` as an array", f"n changed to {run}")
        took = (0.004 + i % 7 / 1e3, 0.002, 0.02 + i % 11 / 200)
        stack = (place(i * 20 // count, i % 5 + 1, f"inner_{i % 3}"), place(i * 20 // count, 3))
        calls.append(call(i + 1, name, i * 0.1, took, reason, shape=(size, 128), run=run, stack=stack))
    return ledger_of(calls)


def hostile() -> Ledger:
    """Names that would be markup if anything took them for it."""
    at = Place(f"/tmp/{HOSTILE}.py", 3, HOSTILE, f"f('{HOSTILE}')", HOSTILE)
    calls: list[tuple[Event, ...]] = []
    for run in range(3):
        reason = Reason("static", HOSTILE, HOSTILE, f"{run}{HOSTILE}", HOSTILE, HOSTILE)
        calls.append(call(run + 1, HOSTILE, run, (0.1, 0.1, 0.5), reason, run=run, stack=(at,)))
    return ledger_of(calls)
