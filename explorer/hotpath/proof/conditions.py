"""What decides a condition, and whether guards hold it."""

from __future__ import annotations

from types import FunctionType, MethodType, ModuleType

import jax
import numpy as np

from explorer.capture.safe_reading import attributes, kind_of, member
from explorer.hotpath.proof import known
from explorer.hotpath.proof.attributes import attribute, classified_fields, is_structured, read_contents
from explorer.hotpath.proof.outside import refuse_hooks, refuse_protocols
from explorer.hotpath.proof.refusal import NotProven
from explorer.hotpath.proof.values import PLAIN_TYPES, Data, Either, Given, Items, Known, Made, Value
from explorer.hotpath.proof.walker import Walker

_CONTAINERS = (list, tuple, dict, set, frozenset)


def truth(value: Value, walker: Walker) -> bool | None:
    """Whether a condition holds; None where guards don't decide it.

    Raises:
        NotProven: It is asked of an array from outside, whose value a trace would read once.
    """
    match value:
        case Known(held) if isinstance(held, (jax.Array, np.generic)):
            raise NotProven("it decides by the value of an array", "jnp.where chooses without reading")
        case Either(values):
            decided = {truth(one, walker) for one in values}
            return decided.pop() if len(decided) == 1 else None
        case Known(held) if held is None or type(held) in PLAIN_TYPES:
            return bool(held)
        case Known(held) if isinstance(held, (FunctionType, MethodType, type, ModuleType)):
            return True
        case Known(held) if type(held) in _CONTAINERS:
            return bool(read_contents(held, walker, "a container"))
        case Known(held) if not isinstance(held, np.dtype):
            refuse_protocols(kind_of(held), "a condition")
            return None
        case Made(kind):
            refuse_protocols(kind, "a condition")
            return None
        case Given(example) if type(example) not in _CONTAINERS:
            refuse_protocols(kind_of(example), "a condition")
            return None
        case Items(items):
            return bool(items)
        case Given(example) if type(example) in _CONTAINERS:
            return bool(example)
        case _:
            return None


def has_attribute(owner: Value, name: str, walker: Walker, text: str) -> bool | None:
    """Whether a value has an attribute; None where both may be. What decides it is held by guards."""
    match owner:
        case Known(value) if not isinstance(value, (jax.Array, np.generic, ModuleType)):
            kind = kind_of(value)
            refuse_hooks(kind, "__getattr__", "__getattribute__")
            if name in attributes(value) or any(name in vars(base) for base in kind.__mro__):
                attribute(owner, name, walker, text)
                return True
            walker.reads.add("absent", value, name, None, text)
            for base in kind.__mro__:
                walker.reads.add("absent", base, name, None, text)
            return False
        case Known(ModuleType() as module):
            held = member(module, name)
            if held is not ...:
                walker.reads.add("global", vars(module), name, held, text)
                return True
            raise NotProven(f"whether there is `{text}` isn't known")
        case Known() | Data():
            if name in known.ARRAY_ATTRIBUTES | known.ARRAY_METHODS:
                return True
            raise NotProven(f"whether there is `{text}` isn't known")
        case Given(example) if is_structured(example) and name in classified_fields(example):
            return True
        case _:
            raise NotProven(f"whether there is `{text}` isn't known")
