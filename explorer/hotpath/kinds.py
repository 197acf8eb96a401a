"""Of which kind a call is (structure, types, and all that is no array), and the compiled copy for calls like it."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import jax

from explorer.hotpath.arguments import separated
from explorer.hotpath.unpacking import never
from explorer.hotpath.variant import Variant

_tree: Any = jax.tree  # whose structures have no type
_flatten: Callable[[Any], tuple[list[Any], Any]] = _tree.flatten
_LINE = "\n"
_ALL_ARRAYS = 2  # parts of a key: structure and types
Found = tuple[list[Any], Any, Variant | None]


class NoTree(Exception):
    """JAX takes the arguments for no tree, with its reason."""


class Variants(dict[Any, Variant]):
    """The copies by kind, and how often one was put or taken: who remembers one looks whether it is still there.

    Attributes:
        changes: One number: how many there were.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changes = [0]

    def __setitem__(self, key: Any, variant: Variant) -> None:
        super().__setitem__(key, variant)
        self.changes[0] += 1

    def pop(self, key: Any, default: Any = None) -> Any:
        taken = super().pop(key, default)
        self.changes[0] += 1
        return taken

    def clear(self) -> None:
        super().clear()
        self.changes[0] += 1


class Kinds:
    """The kinds of calls of one function.

    Attributes:
        variants: The copy for each kind that is compiled.
    """

    def __init__(self) -> None:
        self.variants = Variants()
        self._signature: list[Callable[[Any], Any]] = [attrgetter("aval")]

    def separate_devices(self) -> None:
        """From now on calls are of different kinds where their arrays lie in different places."""
        self._signature[0] = attrgetter("aval", "sharding")

    def finder(self) -> Callable[[tuple[Any, ...]], Found]:
        """What gives the arrays of a call, its kind as a key, and the copy for it.

        A closure: its names are looked up faster than attributes. It raises `NoTree`.
        """
        variants, signature, changes = self.variants, self._signature, self.variants.changes
        nothing: tuple[Any, ...] = never, None, None, None, -1
        latest = nothing  # most calls are of the kind of the one before

        def find(values: tuple[Any, ...]) -> Found:
            nonlocal latest
            unpack, types, key, variant, seen = latest  # at once: another thread may put another there
            now = changes[0]
            if seen != now and variant is not None:  # it may be gone, and nothing else may hold it
                latest = nothing
                unpack, types, key, variant, _ = nothing
            try:
                arrays = unpack(values)
                if arrays is not None and tuple(map(signature[0], arrays)) == types:
                    return arrays, key, variant
            except AttributeError:  # no array where one was
                pass
            try:
                arrays, structure = _flatten(values)
                types_now = tuple(map(signature[0], arrays))
            except Exception:  # not all of them are arrays
                arrays, types_now, key = self._mixed(values)
            else:
                if types_now == types and len(key) == _ALL_ARRAYS and structure == key[0]:
                    return arrays, key, variant
                key = structure, types_now
            variant = variants.get(key)
            if variant is not None:
                latest = variant.unpack, types_now, key, variant, now
            return arrays, key, variant

        return find

    def _mixed(self, values: tuple[Any, ...]) -> tuple[list[Any], Any, Any]:
        """The arrays of a call that are not all of its arguments, their types, and the call's kind."""
        try:
            leaves, structure = _flatten(values)
            arrays, others = separated(leaves)
            types = tuple(map(self._signature[0], arrays))
            key = structure, types, others
            hash(key)
        except Exception as error:  # keys that can't be sorted, settings that can't be hashed
            raise NoTree(str(error).partition(_LINE)[0]) from error
        return arrays, types, key
