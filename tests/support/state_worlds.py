"""State of every kind that jit() captures, and every way to change it: for the tests that hold it against plain Python.

A world is a state; two of them that are changed alike stay alike. What is in one is found by the path from its root.
"""

from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

Pair = namedtuple("Pair", "one other")


class Layer:
    def __init__(self, **attributes):
        vars(self).update(attributes)


class Thick(Layer):
    """The same to look at; another class."""


class Slots:
    __slots__ = ("bias", "weight")


class SlotsAndMore(Slots):  # attributes of both kinds
    pass


@dataclass
class Data:
    weight: object
    name: object = "data"


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Registered:
    weight: object


ARRAYS = {
    "f32[2]": lambda: jnp.asarray([1.0, 2.0]),
    "f32[3]": lambda: jnp.asarray([1.0, 2.0, 3.0]),
    "f32[]": lambda: jnp.asarray(3.0, "float32"),
    "i32[2]": lambda: jnp.asarray([1, 2]),
    "bool[2]": lambda: jnp.asarray([True, False]),
    "weak": lambda: jnp.asarray(3.0),
    "numpy": lambda: np.asarray([1.0, 2.0], "float32"),
    "numpy scalar": lambda: np.float32(2.0),
}
CONSTANTS = {
    "int": lambda: 1,
    "another int": lambda: 12345,
    "float": lambda: 1.0,
    "minus zero": lambda: -0.0,
    "nan": lambda: float("nan"),
    "bool": lambda: True,
    "none": lambda: None,
    "text": lambda: "text",
    "bytes": lambda: b"text",
    "complex": lambda: 1j,
    "set": lambda: {1, 2},
    "frozenset": lambda: frozenset({1}),
    "dtype": lambda: np.dtype("float32"),
    "type": lambda: Layer,
    "function": lambda: len,
    "texts": lambda: np.asarray(["a", "b"]),
    "empty": lambda: (),
}
HOLDERS = {
    "list": lambda a: [a, a],
    "empty list": lambda a: [],
    "deque": lambda a: deque([a, 1]),
    "dict": lambda a: {"a": a, "b": a},
    "mixed keys": lambda a: {1: a, "b": 2.0},
    "ordered": lambda a: OrderedDict(a=a, b=1),
    "object": lambda a: Layer(weight=a, bias=a),
    "namespace": lambda a: SimpleNamespace(weight=a, name="namespace"),
    "slots": lambda a: filled(Slots(), weight=a),
    "slots and more": lambda a: filled(SlotsAndMore(), weight=a, extra=[a]),
    "dataclass": lambda a: Data(a),
    "frozen": lambda a: Registered(a),
    "tuple": lambda a: (a, [a], 1),
    "namedtuple": lambda a: Pair(a, {"a": a}),
    "tuple of constants": lambda a: (1, (2.0, "x")),
}


def filled(value, **attributes):
    for name, attribute in attributes.items():
        setattr(value, name, attribute)
    return value


def make_world():
    a = jnp.asarray([1.0, 2.0])
    shared = Layer(weight=a, bias=jnp.asarray([3.0, 4.0]))
    return Layer(
        first=shared,
        second=shared,
        layers=[Layer(weight=a + 1, name="one"), Layer(weight=a + 2, name="two")],
        optimizer=(Pair({"m": a, "v": a}, 0), ()),
        data={"x": a, "scale": 2.0, "text": "text", "slots": filled(Slots(), weight=a)},
        arrays=[a, a + 1, a + 2],
    )


def is_array(value):
    return isinstance(value, (jax.Array, np.generic)) or (
        isinstance(value, np.ndarray) and value.dtype.kind not in "OUSmM"
    )


def opened(value):
    """The labels of what a container holds, and what that is; None of anything else."""
    if isinstance(value, dict):
        return [(key, value[key]) for key in value]
    if isinstance(value, (list, deque, tuple)):
        return list(enumerate(value))
    if isinstance(value, (Layer, Slots, Data, Registered, SimpleNamespace)):
        names = [*getattr(value, "__dict__", ()), *(n for n in ("bias", "weight") if isinstance(value, Slots))]
        return [(name, getattr(value, name)) for name in names if hasattr(value, name)]
    return None


def put(holder, label, value):
    if isinstance(holder, (dict, list, deque)):
        holder[label] = value
    else:
        object.__setattr__(holder, label, value)


def remove(holder, label):
    if isinstance(holder, (dict, list, deque)):
        del holder[label]
    else:
        object.__delattr__(holder, label)


def places(root):
    """Every place that can be set, once, as the holder and the label; in an order that two equal worlds share."""
    found, seen, todo = [], set(), [root]
    while todo:
        value = todo.pop(0)
        inner = opened(value)
        if inner is None or id(value) in seen:
            continue
        seen.add(id(value))
        inner.sort(key=lambda pair: str(pair[0]))
        if not isinstance(value, tuple):
            found += [(value, label) for label, _ in inner]
        todo += [item for _, item in inner]
    return found


def at(holder, label):
    return dict(opened(holder))[label]


def snapshot(root):
    """All of a world as plain data: kinds, values, and who is the same as whom."""
    seen = {}

    def walk(value):
        inner = opened(value)
        if inner is None:
            if isinstance(value, jax.Array) and value.is_deleted():
                return ("a deleted array", value.shape)
            if is_array(value):
                array = jnp.asarray(value)
                return ("array", str(array.dtype), array.shape, array.weak_type, np.asarray(array).tolist())
            return (
                type(value).__name__,
                repr(sorted(map(repr, value)) if isinstance(value, (set, frozenset)) else value),
            )
        if not isinstance(value, tuple):
            if id(value) in seen:
                return ("again", seen[id(value)])
            seen[id(value)] = len(seen)
        if not isinstance(value, OrderedDict):
            inner.sort(key=lambda pair: str(pair[0]))
        return (type(value).__name__, [(label, walk(item)) for label, item in inner])

    return walk(root)
