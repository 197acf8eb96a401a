"""Events as a watch emits them, made by hand."""

from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.key import LEAF, Function, Key, Leaf, Static, TreeNode
from explorer.model.events.ledger import Ledger

HERE = Place("train.py", 12, "train.py", "state = step(state, batch)", "train")
MAIN = Place("train.py", 40, "train.py", "train()")


def call(number, *kinds, function="step", size=8, reason=None, line=3, file="train.py", **more):
    """The events of one call."""
    reason = reason or Reason("shape", "x.shape[0]", str(size - 1), str(size), "pad x", f"x.shape[0] is {size}")
    eager = more.pop("eager", False)
    key = Key(Function(function, file, line, eager=eager), (Leaf("x", (size, 4), "float32"),))
    given = {"key": key, "reason": reason, "call_site": HERE, "stack": (HERE, MAIN), "seconds": 0.25, **more}
    kinds = kinds or ("trace", "lower", "compile")
    return tuple(Event(kind, function, id=f"[{function}/{number}]", call=number, **given) for kind in kinds)


def first(number=1, **more):
    return call(number, reason=Reason("first"), **more)


def storm(times, **more):
    ledger = Ledger(**more)
    ledger.add(first())
    for number in range(2, times + 1):
        ledger.add(call(number, size=number))
    return ledger


FULL = Event(
    "compile",
    "step",
    HERE,
    0.5,
    Reason("shape", "x", "1", "2", "fix", "text"),
    "[step/1]",
    7,
    1e9,
    (HERE, MAIN),
    Key(
        Function("step", "train.py", 3, ("partial",), 4, 5, True),
        (
            Leaf("x", (2, 3), "float32", True, "numpy", True, "S", ("cpu:0",), "{1,0}", ("P('a')", "a=2", "")),
            Leaf("y", ("b", 2), "int8"),
        ),
        TreeNode(
            "class",
            "Net",
            (".w", ""),
            "(2,)",
            (LEAF, TreeNode("dict", steps=("['b']",), children=(LEAF,))),
            (("", "Net", -9), (".size", "2", 3)),
        ),
        (Static("n", "3", "int", 6, 7, True, 8, (("n", "C", -1), ("n.a", "3", 2))),),
        ("x",),
        (("jax_enable_x64", "True"),),
        (("xla", "1"),),
        (("device", "cpu"),),
        8,
        ("x",),
        ("RATE", "2.0", "3.0"),
        ("vmap", "linearize"),
        10,
    ),
    "worker",
    "cpu:0",
    1.5,
    2.5,
    "KeyboardInterrupt",
    "host",
    9,
    "line 3 is mul float32[2,3]",
)
