"""Calls as the ledger keeps them, made by hand, and what is to be done about the last of them."""

from explorer.analysis.recompiles.reasons import explain
from explorer.model.events.key import Function, Key, Leaf

TRACED = frozenset({"trace", "lower", "compile"})
LOWERED = frozenset({"lower", "compile"})
STEP = Function("step", "train.py", 3, identity=1, wrapper=1)


def leaf(path="x", shape=(8,), dtype="float32", **more):
    return Leaf(path, shape, dtype, **{"committed": False, "devices": ("cpu:0",), **more})


def number(path, kind, dtype):
    return Leaf(path, (), dtype, weak=True, given=kind)


def cure(*calls, happened=TRACED, **more):
    """What to do about the last of some calls, each a list of its leaves."""
    *earlier, last = [Key(STEP, tuple(leaves), **more) for leaves in calls]
    return explain(last, earlier, happened).fix


def cure_of_sizes(*shapes, path="x", dtype="float32", **more):
    return cure(*([leaf(path, shape, dtype)] for shape in shapes), **more)
