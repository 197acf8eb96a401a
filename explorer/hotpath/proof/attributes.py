"""Parts of an abstract value: attributes, items, elements; and its truth as a condition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, cast

import jax
import numpy as np

from explorer.capture.safe_reading import attributes, kind_of, member, mro
from explorer.hotpath.proof import known
from explorer.hotpath.proof.known import note_buffer, refuse_hooks, refuse_own_protocols, refuse_protocols
from explorer.hotpath.proof.values import (
    BUFFER,
    DATA,
    PLAIN,
    PLAIN_TYPES,
    Arguments,
    Buffer,
    Data,
    Either,
    Fresh,
    Given,
    Items,
    Known,
    Made,
    Method,
    NotProven,
    Observation,
    Operation,
    Plain,
    Value,
    Walker,
    contents,
    is_plain,
    join_all,
)

_PLAIN_ATTRIBUTES = frozenset(["shape", "ndim", "size", "dtype", "itemsize", "nbytes"])
_TEXT_ATTRIBUTES = frozenset(["real", "imag", "is_integer", "bit_length", "name", "kind"])
_CONTAINERS = (list, tuple, dict)
_SIZED = (list, tuple, dict, set, frozenset)


def classify(example: Any) -> Value:
    if isinstance(example, (jax.Array, np.generic)):
        return DATA
    if type(example) in _CONTAINERS or is_structured(example):
        return Given(example)
    return Known(example)  # numbers, texts, functions: the guard holds the very same


def is_structured(example: Any) -> bool:
    """Return True if JAX knows the parts of `example` and they are its attributes: a named tuple, a dataclass."""
    if is_named_tuple(example):
        return True
    return is_dataclass(kind_of(example)) and not jax.tree_util.all_leaves([example])


def is_named_tuple(example: Any) -> bool:
    return issubclass(kind_of(example), tuple) and hasattr(kind_of(example), "_fields")


def as_data(value: Value) -> Value:
    if isinstance(value, Either):
        for one in value.values:
            as_data(one)
        return DATA
    if isinstance(value, (Data, Plain, Buffer, Fresh, Items)) or is_plain(value):
        return DATA
    if isinstance(value, Known) and isinstance(value.value, (jax.Array, np.generic, np.dtype, type(None))):
        return DATA
    if isinstance(value, Given) and type(value.example) in _CONTAINERS:
        return DATA
    raise NotProven(f"the effects of arithmetic with {_described(value)} are unknown")


def attribute(owner: Value, name: str, walker: Walker, text: str) -> Value:
    match owner:
        case Either(values):
            each = [attribute(one, name, walker, text) for one in values if not _is_none(one)]
            return _joined(each)
        case Data():
            return _of_data(name, text)
        case Buffer():
            return _of_buffer(owner, name, text)
        case Plain():
            return _of_text(name, text)
        case Fresh() | Items():
            return _of_container(owner, name, text)
        case Made(kind, own):
            return own[name] if name in own else _of_class(kind, owner, name, walker, text)
        case Given(example):
            return _of_given(example, owner, name, walker, text)
        case Known(value):
            refuse_hooks(kind_of(value), "__getattribute__")  # first: reading an attribute would run the hook
            return _of_known(value, owner, name, walker, text)
        case _:
            raise NotProven(f"the value of `{text}` is unknown")


def _of_data(name: str, text: str) -> Value:
    if name in _PLAIN_ATTRIBUTES:
        return PLAIN
    if name in known.ARRAY_ATTRIBUTES:
        return DATA
    if name in ("item", "tolist", "__array__", "__float__", "__int__", "__bool__"):
        raise NotProven(f"`{text}` reads a value", "keep it an array, and read its value outside of the function")
    if name in known.ARRAY_METHODS | known.CONTAINER_METHODS | known.TEXT_METHODS:
        return Operation(name)
    raise NotProven(f"`{text}` of a computed value is unknown")


def _of_buffer(owner: Buffer, name: str, text: str) -> Value:
    if name in _PLAIN_ATTRIBUTES:
        return PLAIN
    if name in known.ARRAY_METHODS | {"item", "tolist"} and name not in known.CHANGING_METHODS:
        return Method(Operation(name), owner)
    if name in known.ARRAY_ATTRIBUTES:
        return BUFFER
    raise NotProven(f"the effects of `{text}` on a NumPy array from outside are unknown")


def _of_text(name: str, text: str) -> Value:
    if name in known.TEXT_METHODS | known.CONTAINER_METHODS | _TEXT_ATTRIBUTES:
        return Operation(name)
    if name in _PLAIN_ATTRIBUTES:
        return PLAIN
    raise NotProven(f"the value of `{text}` is unknown")


def _of_container(owner: Fresh | Items, name: str, text: str) -> Value:
    is_array = isinstance(owner, Fresh) and owner.kind is np.ndarray
    if is_array and name in _PLAIN_ATTRIBUTES:
        return PLAIN
    if is_array and name in known.ARRAY_ATTRIBUTES:
        return DATA
    if name in known.CONTAINER_METHODS | known.CHANGING_METHODS or (is_array and name in known.ARRAY_METHODS):
        return Method(Operation(name), owner)
    raise NotProven(f"the value of `{text}` is unknown")


def _of_given(example: Any, owner: Given, name: str, walker: Walker, text: str) -> Value:
    if type(example) in _CONTAINERS:
        if name in known.CHANGING_METHODS:
            raise NotProven(
                f"`{text}` changes an argument of the call", "return the new value instead of changing the old one"
            )
        if name in known.CONTAINER_METHODS:
            return Method(Operation(name), owner)
        raise NotProven(f"the value of `{text}` is unknown")
    if is_named_tuple(example) and name == "_replace":
        return Method(Operation(name), owner)
    own = classified_fields(example)
    walker.reads.observed.append(Observation(example, name))
    return own[name] if name in own else _of_class(kind_of(example), owner, name, walker, text)


def classified_fields(example: Any) -> dict[str, Value]:
    names = example._fields if is_named_tuple(example) else tuple(field.name for field in fields(example))
    return {name: classify(getattr(example, name)) for name in names}


def _of_known(value: Any, owner: Known, name: str, walker: Walker, text: str) -> Value:
    if isinstance(value, (jax.Array, np.generic)):
        return _of_data(name, text)
    if type(value) in PLAIN_TYPES or isinstance(value, np.dtype):
        return _of_text(name, text)
    if type(value) in (*_CONTAINERS, set, frozenset):
        if name in known.CHANGING_METHODS:
            raise NotProven(f"`{text}` changes an object outside of the call", "return the new value instead")
        return Method(Operation(name), owner)
    if isinstance(value, ModuleType):
        return _of_module(value, name, walker, text)
    if is_named_tuple(value) and name in value._fields:
        return read_value(getattr(value, name), walker, text)  # a tuple never changes
    own = attributes(value)
    if name in own and not isinstance(value, type) and _is_plainly_read(value, name):
        walker.reads.add("attribute", value, name, own[name], text)
        return read_value(own[name], walker, text)
    if isinstance(value, type):
        held = member(value, name)
        if held is ...:
            raise NotProven(f"the value of `{text}` is unknown")
        walker.reads.add("attribute", value, name, held, text)
        return Known(held)
    return _of_class(kind_of(value), owner, name, walker, text)


def _is_plainly_read(value: Any, name: str) -> bool:
    """Return True if no property or other data descriptor of the class overrides the attribute."""
    for base in mro(value):
        held = vars(base).get(name)
        if hasattr(kind_of(held), "__set__") and type(held) is not MemberDescriptorType:
            return False
    return True


def _of_module(value: ModuleType, name: str, walker: Walker, text: str) -> Value:
    is_jax = value.__name__.partition(".")[0] == "jax"  # JAX loads some submodules on access
    held = getattr(value, name, ...) if is_jax else member(value, name)
    if held is ...:
        raise NotProven(f"the value of `{text}` is unknown")
    if not is_jax:
        walker.reads.add("global", vars(value), name, held, text)
    return Known(held)


def read_value(value: Any, walker: Walker, text: str) -> Value:
    if np.ndarray in mro(value):  # unlike isinstance, runs no code of the object
        note_buffer(value, walker.reads, text)
        return BUFFER
    return Known(value)


def _of_class(kind: type[Any], owner: Value, name: str, walker: Walker, text: str) -> Value:
    # An attribute of the object, or of a class before its owner's, would win: guards check that it stays absent.
    if isinstance(owner, Known):
        walker.reads.add("absent", owner.value, name, None, text)
    for base in kind.__mro__:
        held = vars(base).get(name, ...)
        if held is ...:
            walker.reads.add("absent", base, name, None, text)
            continue
        walker.reads.add("attribute", base, name, held, text)
        if isinstance(held, FunctionType):
            return Method(Known(held), owner)
        if isinstance(held, staticmethod):
            return Known(held.__func__)
        if isinstance(held, classmethod):
            return Method(Known(held.__func__), Known(kind))
        if isinstance(held, property) and isinstance(held.fget, FunctionType):
            return walker.call(Known(held.fget), Arguments((owner,)), text)
        if not any("__get__" in vars(one) for one in mro(held)):
            return read_value(held, walker, text)
        break
    raise NotProven(f"the value of `{text}` is unknown")


def item(owner: Value, key: Value, walker: Walker, text: str) -> Value:
    if isinstance(key, Known) and isinstance(key.value, jax.Array) and not _is_array(owner):
        raise NotProven(f"`{text}` reads the value of an array to find an item", "jnp.take takes arrays of positions")
    match owner:
        case Either(values):
            return _joined([item(one, key, walker, text) for one in values if not _is_none(one)])
        case Data() | Plain() | Buffer():
            return owner
        case Items(items):
            at = key.value if isinstance(key, Known) and type(key.value) is int else None
            if at is not None and -len(items) <= at < len(items):
                return items[at]
            return _joined(list(items))
        case Fresh():
            return DATA if owner.holds is None else owner.holds
        case Given(example) if type(example) in _CONTAINERS or isinstance(example, tuple):
            return _item_of(example, key)
        case Known(value) if isinstance(value, (jax.Array, np.generic)):
            return DATA
        case Known(value) if type(value) in PLAIN_TYPES:
            return PLAIN
        case Known(value) if type(value) in _CONTAINERS:
            return _item_of_known(value, key, walker, text)
        case _:
            raise NotProven(f"the value of `{text}` is unknown")


def _is_array(value: Value) -> bool:
    return isinstance(value, Data) or isinstance(getattr(value, "value", None), (jax.Array, np.generic))


def _item_of(example: Any, key: Value) -> Value:
    if isinstance(key, Known) and type(key.value) in (int, str, bool):
        try:
            return classify(example[key.value])
        except (LookupError, TypeError):
            return DATA  # eager and traced calls both raise
    values: list[Any] = list(cast(Any, example).values()) if isinstance(example, Mapping) else list(example)
    return join_all(map(classify, values)) or DATA


def _item_of_known(value: Any, key: Value, walker: Walker, text: str) -> Value:
    if isinstance(key, Known) and type(key.value) in (int, str):
        try:
            held = value[key.value]
        except (LookupError, TypeError):  # eager and traced calls both raise, as long as the item is missing
            read_contents(value, walker, text)
            return DATA
        walker.reads.add("item", value, key.value, held, text)
        return read_value(held, walker, text)
    return _joined([read_value(one, walker, text) for one in read_contents(value, walker, text)])


def read_contents(container: Any, walker: Walker, text: str) -> list[Any]:
    """Return the values in a container outside of the call, and note a read of all its contents, for the guards."""
    walker.reads.add("contents", container, None, contents(container), text)
    return list(cast(Any, container).values()) if isinstance(container, Mapping) else list(container)


def elements(value: Value, walker: Walker) -> Value | None:
    """Return the abstract value that covers every element that a loop over `value` yields; None if it is empty."""
    match value:
        case Either(values):
            return join_all(one for each in values if (one := elements(each, walker)) is not None)
        case Data() | Plain() | Buffer():
            return value
        case Items(items):
            return join_all(items)
        case Fresh(kind, holds):
            return PLAIN if kind is dict and holds is not None else holds
        case Given(example) if isinstance(example, Mapping):
            walker.reads.observed.append(Observation(example))
            return PLAIN if example else None
        case Given(example) if isinstance(example, (list, tuple)):
            return join_all(map(classify, cast(list[Any], example)))
        case Known(container) if isinstance(container, (jax.Array, np.generic)):
            return DATA
        case Known(container) if type(container) in (str, bytes, range):
            return PLAIN
        case Known(container) if type(container) in (*_CONTAINERS, set, frozenset):
            read_contents(container, walker, "a container")
            return join_all(read_value(one, walker, "an item") for one in container)
        case _:
            raise NotProven(f"the items of a loop over {_described(value)} are unknown")


def values_in(value: Value, walker: Walker) -> Value | None:
    """Return the abstract value that covers a mapping's values or a container's elements; None if it is empty."""
    match value:
        case Fresh(_, holds):
            return holds
        case Given(example) if isinstance(example, Mapping):
            walker.reads.observed.append(Observation(example))
            return join_all(map(classify, cast(Mapping[Any, Any], example).values()))
        case Known(held) if isinstance(held, Mapping):
            return join_all(read_value(one, walker, "an item") for one in read_contents(held, walker, "a dict"))
        case _:
            return elements(value, walker)


def _described(value: Value) -> str:
    held = getattr(value, "value", getattr(value, "example", None))
    if isinstance(value, Made):
        return f"an object of `{value.kind.__name__}`"
    return f"an object of `{type(held).__name__}`" if held is not None else "this value"


def _is_none(value: Value) -> bool:
    return isinstance(value, Known) and value.value is None


def _joined(values: list[Value]) -> Value:
    joined = join_all(values)
    if joined is None:
        raise NotProven("the value of this expression is unknown")
    return joined


def truth(value: Value, walker: Walker) -> bool | None:
    """Return a condition's value if guards decide it; None if either branch is possible. Arrays raise NotProven."""
    match value:
        case Known(held) if isinstance(held, (jax.Array, np.generic)):
            raise NotProven("it branches on the value of an array", "jnp.where chooses without reading")
        case Either(values):
            decided = {truth(one, walker) for one in values}
            return decided.pop() if len(decided) == 1 else None
        case Known(held) if held is None or type(held) in PLAIN_TYPES:
            return bool(held)
        case Known(held) if isinstance(held, (FunctionType, MethodType, type, ModuleType)):
            return True
        case Known(held) if type(held) in _SIZED:
            return bool(read_contents(held, walker, "a container"))
        case Items(held):
            return bool(held)
        case Given(held) if type(held) in _SIZED:
            return bool(held)
        case Known(held):
            # The user's `__bool__` or `__len__` may decide.
            refuse_protocols(kind_of(held), "a condition")
        case _:
            refuse_own_protocols(value, "a condition")
    return None


def has_attribute(owner: Value, name: str, walker: Walker, text: str) -> bool:
    match owner:
        case Known(ModuleType() as module):
            held = member(module, name)
            if held is not ...:
                walker.reads.add("global", vars(module), name, held, text)
                return True
        case Known(value) if not isinstance(value, (jax.Array, np.generic)):
            kind = kind_of(value)
            refuse_hooks(kind, "__getattr__", "__getattribute__")
            if name in attributes(value) or any(name in vars(base) for base in kind.__mro__):
                attribute(owner, name, walker, text)
                return True
            walker.reads.add("absent", value, name, None, text)
            for base in kind.__mro__:
                walker.reads.add("absent", base, name, None, text)
            return False
        case Known() | Data() if name in known.ARRAY_ATTRIBUTES | known.ARRAY_METHODS:
            return True
        case Given(example) if is_structured(example) and name in classified_fields(example):
            return True
        case _:
            pass
    raise NotProven(f"it is unknown whether `{text}` exists")
