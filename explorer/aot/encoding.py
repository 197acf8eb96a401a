"""Trees, arrays and constants of an executable's file.

Reading a file runs nothing in it and imports no name from it. The structure of a pytree in JSON:

    leaf          "*"
    None          null
    list, tuple   {"list": [child, …]}, {"tuple": [child, …]}
    dict          {"dict": [[key, child], …]}; the same for OrderedDict, and defaultdict with {"factory": "list"}
    named tuple   {"namedtuple": "training.Batch", "fields": [[name, child], …]}
    other class   {"class": "training.Batch", "data": aux data, "children": [child, …]}

Keys and aux data are plain values: JSON's own, and {"tuple": […]}, {"dict": [[key, value], …]}, {"float": "inf"}.
"""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NoReturn, cast

import jax
import jax.numpy as jnp
import numpy as np

from explorer._jax.arguments import registered_fields
from explorer.errors import ArchiveError

Json = dict[str, Any]

_LEAF = "*"
_FACTORIES: dict[str, Any] = {"dict": dict, "float": float, "int": int, "list": list, "None": None, "set": set}
_FLOATS = ("inf", "-inf", "nan")


def tree_to_json(tree: Any) -> Any:
    """Return the structure of a pytree (a `PyTreeDef`) as JSON, or raise ArchiveError for what is no plain value."""
    node = tree.node_data()
    if node is None:
        return _LEAF
    kind, data = cast(tuple[type, Any], node)
    children = [tree_to_json(child) for child in tree.children()]
    if kind is type(None):
        return None
    if kind in (list, tuple):
        return {kind.__name__: children}
    if kind in (dict, OrderedDict):
        return {kind.__name__: _entries(kind, data, children)}
    if kind is defaultdict:
        factory, keys = data
        made_by = [name for name, allowed in _FACTORIES.items() if allowed is factory]
        if not made_by:
            raise ArchiveError(
                f"a defaultdict makes its values by {factory!r}, which can't be in a file.\n"
                f"  allowed: {', '.join(_FACTORIES)}\n  Hint: pass a dict."
            )
        return {"defaultdict": _entries(kind, keys, children), "factory": made_by[0]}
    fields = _named_tuple_fields(kind)
    if fields is not None:
        return {"namedtuple": _name(kind), "fields": [list(pair) for pair in zip(fields, children, strict=True)]}
    return {"class": _name(kind), "data": _value_to_json(data, _name(kind)), "children": children}


def _entries(kind: type, keys: Sequence[Any], children: list[Any]) -> Any:
    encoded = [_value_to_json(key, f"a key of a {kind.__name__}") for key in keys]
    return [list(entry) for entry in zip(encoded, children, strict=True)]


def _value_to_json(value: Any, owner: str) -> Any:
    """Return a plain value in JSON; raise ArchiveError for subclasses, as enums, which would come back changed."""
    kind: Any = type(cast(object, value))
    if kind is float and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in (list, tuple):
        inner = [_value_to_json(item, owner) for item in value]
        return inner if kind is list else {"tuple": inner}
    if kind is dict:
        return {"dict": [[_value_to_json(k, owner), _value_to_json(v, owner)] for k, v in value.items()]}
    raise ArchiveError(
        f"{owner} holds {kind.__module__}.{kind.__qualname__}, which can't be in a file.\n"
        "  allowed: arrays, None, bool, int, float, str, and tuples, lists and dicts of them\n"
        "  Hint: make it an array, or give its name as text."
    )


def tree_from_json(encoded: Any, types: Sequence[type] = ()) -> Any:
    """Return the `PyTreeDef` that `tree_to_json` described; raise ArchiveError for other values.

    `types` are classes that the tree may contain, in addition to Python's own containers. A named tuple that is missing
    there becomes one with the same name and fields.
    """
    try:
        return _Reader(types).tree(encoded)
    except RecursionError:
        raise ArchiveError("a structure in the file is nested too deeply.") from None


class _Reader:
    def __init__(self, types: Sequence[type]) -> None:
        self.types = types

    def tree(self, encoded: Any) -> Any:
        match encoded:
            case "*":
                return _LEAF_TREE
            case None:
                return _NONE_TREE
            case {"list": [*children], **rest} if not rest:
                return self.node(list, None, children)
            case {"tuple": [*children], **rest} if not rest:
                return self.node(tuple, None, children)
            case {"dict": [*entries], **rest} if not rest:
                keys, children = _keys(entries)
                _check_order(keys)
                return self.node(dict, keys, children)
            case {"OrderedDict": [*entries], **rest} if not rest:
                keys, children = _keys(entries)
                return self.node(OrderedDict, tuple(keys), children)
            case {"defaultdict": [*entries], "factory": str(name), **rest} if not rest and name in _FACTORIES:
                keys, children = _keys(entries)
                _check_order(keys)
                return self.node(defaultdict, (_FACTORIES[name], tuple(keys)), children)
            case {"namedtuple": str(name), "fields": [*fields], **rest} if not rest:
                names, children = _keys(fields)
                return self.node(self.named_tuple(name, tuple(names)), None, children)
            case {"class": str(name), "data": data, "children": [*children], **rest} if not rest:
                return self.instance(name, _value_from_json(data), children)
            case _:
                _refuse(encoded)

    def node(self, kind: type, data: Any, children: list[Any]) -> Any:
        trees = [self.tree(child) for child in children]
        try:
            tree = jax.tree_util.PyTreeDef.from_node_data_and_children(  # pyright: ignore[reportUnknownVariableType]
                jax.tree_util.default_registry, (kind, data), trees
            )
        except (TypeError, ValueError, RuntimeError) as error:
            raise ArchiveError(
                f"JAX has no tree of {kind.__name__}: {error}\n"
                "  Hint: register the class before loading, by jax.tree_util.register_dataclass for one."
            ) from None
        return cast(Any, tree)

    def instance(self, name: str, data: Any, children: list[Any]) -> Any:
        kind = self.class_of(name)
        if kind is None:
            short = name.rpartition(".")[2]
            raise ArchiveError(
                f"the file has arrays in a {name}, a class that it can't bring along.\n"
                f"  Hint: import it and pass it: load(path, types=({short},))."
            )
        fields = registered_fields(kind)
        # JAX's C++ reads past the end if the file has fewer fields than the class.
        if fields is not None:
            arrays, others = fields
            count = len(cast(tuple[Any, ...], data)) if type(data) is tuple else -1
            if (len(children), count) != (len(arrays), len(others)):
                raise ArchiveError(
                    f"{name} was saved with {len(children)} arrays or trees of them and {max(0, count)} other fields; "
                    f"now it has {len(arrays)} ({', '.join(arrays)}) and {len(others)} ({', '.join(others)}).\n"
                    "  Hint: load with the class as it was, or save again."
                )
        return self.node(kind, data, children)

    def class_of(self, name: str) -> type | None:
        """Return the class in `types` with this full name, else the only class with its qualified name, else None.

        The module may differ, because a class of `__main__` may have moved.
        """
        exact = [kind for kind in self.types if _name(kind) == name]
        loose = [kind for kind in self.types if name.endswith(f".{kind.__qualname__}")]
        return exact[0] if exact else loose[0] if len(loose) == 1 else None

    def named_tuple(self, name: str, fields: tuple[Any, ...]) -> type:
        kind = self.class_of(name)
        if kind is None:
            return _named_tuple(name, fields)
        if _named_tuple_fields(kind) != fields:
            raise ArchiveError(
                f"{name} was saved as a named tuple of ({', '.join(map(str, fields))}), but the one in types is not.\n"
                "  Hint: load with the class as it was, or save again."
            )
        return kind


@lru_cache(maxsize=256)  # one class per name and fields, so that trees of them are equal
def _named_tuple(name: str, fields: tuple[Any, ...]) -> type:
    module, _, short = name.rpartition(".")
    try:
        if not all(type(field) is str for field in fields):
            raise ValueError("a field's name is no text")
        made = cast(Callable[..., type], namedtuple)(short, fields, module=module)
    except ValueError as error:
        raise ArchiveError(f"{name[:100]!r} can't be a named tuple: {error}.") from None
    made.__qualname__ = short
    return made


def _keys(entries: list[Any]) -> tuple[list[Any], list[Any]]:
    keys: list[Any] = []
    children: list[Any] = []
    for entry in entries:
        match entry:
            case [key, child]:
                keys.append(_value_from_json(key))
                children.append(child)
            case _:
                _refuse(entry)
    try:
        if len(set(keys)) == len(keys):
            return keys, children
    except TypeError:  # a list, say
        pass
    raise ArchiveError(f"{keys!r:.200} can't be the keys of a dict.")


def _check_order(keys: list[Any]) -> None:
    """Raise ArchiveError for dict keys that aren't sorted, which JAX assumes of all its trees."""
    try:
        if sorted(keys) == keys:
            return
    except TypeError:  # None and text, say
        pass
    raise ArchiveError(f"{keys!r:.200} are not in order, as the keys of a dict in a tree are.")


def _value_from_json(encoded: Any) -> Any:
    match encoded:
        case None | bool() | int() | float() | str():
            return encoded
        case [*items]:
            return [_value_from_json(item) for item in items]
        case {"tuple": [*items], **rest} if not rest:
            return tuple(_value_from_json(item) for item in items)
        case {"dict": [*entries], **rest} if not rest:
            keys, values = _keys(entries)
            return dict(zip(keys, map(_value_from_json, values), strict=True))
        case {"float": str(name), **rest} if not rest and name in _FLOATS:
            return float(name)
        case _:
            _refuse(encoded)


def _named_tuple_fields(kind: type) -> tuple[str, ...] | None:
    return getattr(kind, "_fields", None) if tuple in kind.__mro__ else None


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _refuse(encoded: Any) -> NoReturn:
    raise ArchiveError(f"{encoded!r:.200} describes no structure.\n  Hint: tree_to_json returns valid descriptions.")


_LEAF_TREE = cast(Any, jax.tree.structure(0))
_NONE_TREE = cast(Any, jax.tree.structure(None))


_DTYPES: dict[str, Any] = {
    kind.dtype.name: kind.dtype for kind in vars(jnp).values() if isinstance(getattr(kind, "dtype", None), np.dtype)
}


def array_to_bytes(array: Any) -> tuple[dict[str, Any], bytes]:
    """Return an array's description in JSON, and its bytes: little-endian, C order; ArchiveError for other dtypes."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        description, content = array_to_bytes(jax.random.key_data(array))
        return {**description, "key": str(jax.random.key_impl(array))}, content
    host = np.asarray(array)
    if host.dtype.name not in _DTYPES:
        raise ArchiveError(f"an array of dtype {host.dtype} can't be in a file; those of JAX's dtypes can.")
    # A NumPy array may be big-endian; JAX runs on little-endian machines only.
    plain = host.astype(_DTYPES[host.dtype.name], copy=False)
    return {"dtype": plain.dtype.name, "shape": list(plain.shape)}, plain.tobytes()


def array_from_bytes(description: Mapping[str, Any], content: bytes) -> Any:
    """Return the array that `array_to_bytes` described; raise ArchiveError if description and bytes don't fit.

    Return a read-only NumPy view of `content`, or a JAX array of PRNG keys.
    """
    match description:
        case {"dtype": str(name), "shape": [*shape]} if name in _DTYPES and all(
            type(size) is int and size >= 0 for size in shape
        ):
            dtype = _DTYPES[name]
        case _:
            raise ArchiveError(f"{description!r:.200} describes no array.")
    if math.prod(shape) * dtype.itemsize != len(content):
        raise ArchiveError(f"{len(content):,} bytes are no {name} array of shape {shape!s:.200}.")
    if name == "bool" and content.strip(b"\0\1"):
        raise ArchiveError("a bool array has bytes other than 0 and 1.")
    try:
        array: Any = np.ndarray(shape, dtype, buffer=content)
        return cast(Any, jax.random.wrap_key_data(array, impl=description["key"]) if "key" in description else array)
    except (TypeError, ValueError) as error:
        raise ArchiveError(f"{description!r:.200} describes no array: {error}.") from None


# Smallest constant, in bytes, that is cut out of native code. Small ones occur all over the code, and their places
# would take more space than they save.
_MIN_CUT = 64 * 1024


class ConstantMembers:
    """Constants as members of a file that is being written. Each is stored once."""

    def __init__(self, members: dict[str, bytes]) -> None:
        self.members = members
        self._encoded: dict[int, tuple[Any, Json]] = {}  # by identity, which holds while the constant is here
        self._names: dict[bytes, str] = {}  # by content

    def to_json(self, constant: Any) -> Json:
        if id(constant) not in self._encoded:
            description, content = array_to_bytes(constant)
            digest = blake2b(content, digest_size=32).digest()
            name = self._names.setdefault(digest, f"constant-{len(self._names)}.bin")
            self.members.setdefault(name, content)
            self._encoded[id(constant)] = constant, {"member": name, **description}
        return self._encoded[id(constant)][1]

    def split(self, code: bytes) -> tuple[bytes, list[list[Any]]]:
        """Return native code without the constants, and the cuts: a list of `[offset in the returned code, member
        name]`.
        """
        places: list[tuple[int, int, str]] = []  # where in the code, how long, the member
        for name in self._names.values():
            content = self.members[name]
            at = code.find(content) if len(content) >= _MIN_CUT else -1
            while at >= 0:
                places.append((at, len(content), name))
                at = code.find(content, at + len(content))
        left: list[bytes] = []
        cuts: list[list[Any]] = []
        end = size = 0
        for at, length, name in sorted(places):
            if at < end:  # it overlaps the previous constant
                continue
            left.append(code[end:at])
            size += at - end
            cuts.append([size, name])
            end = at + length
        return b"".join([*left, code[end:]]), cuts


def join(left: bytes, cuts: Iterable[Sequence[Any]], members: Mapping[str, bytes], size: int) -> bytes:
    """Return the native code that `ConstantMembers.split` took apart; ValueError unless it has `size` bytes."""
    parts: list[bytes] = []
    at = total = 0
    for place, name in cuts:
        if type(place) is not int or not at <= place <= len(left):
            raise ValueError("native code and its constants don't fit")
        content = members[name]
        parts += [left[at:place], content]
        total += place - at + len(content)
        at = place
        # A damaged file may name a large constant again and again.
        if total > size:
            break
    parts.append(left[at:])
    if total + len(left) - at != size:
        raise ValueError("native code and its constants don't fit")
    return b"".join(parts)


def shared_reader(members: Mapping[str, bytes]) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function that reads constants of a file, each once: later reads return the same array."""
    arrays: dict[str, Any] = {}

    def read(encoded: Mapping[str, Any]) -> Any:
        key = repr(sorted(encoded.items()))
        if key not in arrays:
            # If two threads read it at once, the first result is used.
            arrays.setdefault(key, array_from_bytes(encoded, members[encoded["member"]]))
        return arrays[key]

    return read
