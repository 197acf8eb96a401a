"""Check that everything a proof read is unchanged: one generated function for each proof.

Arrays may be replaced, such as the weights of a training loop: they are passed to the program at each call. All else
must be the same object. The checks are compiled Python source and take 30 ns each, a third of an interpreting loop.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import jax

from explorer.hotpath.arguments import ARRAYS, may_be_replaced
from explorer.hotpath.proof.values import Read, buffer, contents
from explorer.hotpath.swap import code_of
from explorer.runtime.generated import compiled

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Guards:
    check: Callable[[], tuple[jax.Array, ...] | None]  # returns the present arrays; None if anything else has changed
    arrays: tuple[jax.Array, ...]  # at the time of the proof, in the same order
    reads: tuple[Read, ...]

    def changed(self) -> Read | None:
        return next((read for read in self.reads if not is_unchanged(read)), None)

    @property
    def array_names(self) -> list[str]:
        named = [pair for read in self.reads for pair in _named_values(read)]
        return [next((name for name, held in named if held is value), "an array that is read") for value in self.arrays]

    def retyped(self) -> str | None:
        """Return the name of the first array that now has another shape, dtype or sharding; None if all are the same or
        a guard fails.
        """
        pairs = zip(self.array_names, self.arrays, self.check() or self.arrays, strict=True)
        return next((name for name, before, now in pairs if _kind(before) != _kind(now)), None)


def _kind(array: jax.Array) -> tuple[Any, Any]:
    return jax.typeof(array), array.sharding


def _named_values(read: Read) -> Iterator[tuple[str, Any]]:
    if read.where != "contents":
        yield read.name, read.value
        return
    keys = [repr(key) if type(key) in (str, int) else "…" for key in read.holder]
    names = [*keys, *keys] if isinstance(read.holder, Mapping) else [f"{at}" for at in range(len(read.value))]
    yield from ((f"{read.name}[{name}]", value) for name, value in zip(names, read.value, strict=False))


def guards_of(reads: Sequence[Read], used: Container[int]) -> Guards:
    """Return the guards of reads.

    An array whose id is in `used` is an input of the program and may be replaced; all else must stay the same object.
    """
    writer = _Writer(used)
    for read in reads:
        writer.add(read)
    return Guards(writer.compiled(), tuple(writer.arrays), tuple(reads))


def is_unchanged(read: Read) -> bool:
    guards = _Writer(())
    guards.add(read)
    return guards.compiled()() is not None


class _Writer:
    """Source of a function that checks reads, and returns the arrays that may have been replaced."""

    def __init__(self, used: Container[int]) -> None:
        self._used = used
        self._values: dict[str, Any] = {"ARRAYS": ARRAYS, "absent": _ABSENT, "contents": contents, "buffer": buffer}
        self._values["code_of"] = code_of
        self._conditions: list[str] = []
        self._name_of: dict[int, str] = {}  # by id of an array that is fetched
        self.arrays: list[jax.Array] = []

    def _bind(self, value: Any) -> str:
        name = f"c{len(self._values)}"
        self._values[name] = value
        return name

    def add(self, read: Read) -> None:
        match read.where:
            case "global":
                self._check(f"{self._bind(read.holder)}.get({self._bind(read.key)})", read.value)
            case "cell":
                self._check(f"{self._bind(read.holder)}.cell_contents", read.value)
            case "attribute":
                self._check(self._attribute(read), read.value)
            case "absent":
                self._conditions.append(f"absent is {self._attribute(read)}")
            case "item":
                self._check(f"{self._bind(read.holder)}[{self._bind(read.key)}]", read.value)
            case "code":
                self._code(read.holder, *read.value)
            case "contents":
                inside = f"i{len(self._conditions)}"
                self._conditions.append(f"len({inside} := contents({self._bind(read.holder)})) == {len(read.value)}")
                for at, value in enumerate(read.value):
                    self._check(f"{inside}[{at}]", value)
            case "buffer":
                self._conditions.append(f"buffer({self._bind(read.holder)}) == {self._bind(read.value)}")

    def _attribute(self, read: Read) -> str:
        own, key = getattr(read.holder, "__dict__", None), self._bind(read.key)
        if own is None or (read.where == "attribute" and read.key not in own):  # a slot, or an attribute of the class
            return f"getattr({self._bind(read.holder)}, {key}, absent)"
        if not isinstance(read.holder, type):
            # From the dict itself: no property and no `__getattr__` runs.
            return f"{self._bind(own)}.get({key}, absent)"
        return f"{self._bind(read.holder)}.__dict__.get({key}, absent)"

    def _check(self, current: str, value: Any) -> None:
        if type(value) not in ARRAYS or id(value) not in self._used or not may_be_replaced(value):
            self._conditions.append(f"{current} is {self._bind(value)}")
            return
        # Fetch the array, which may have been replaced; two names of one array must still be the same.
        name = f"a{len(self._conditions)}"
        self._conditions.append(f"type({name} := {current}) in ARRAYS")
        before = self._name_of.setdefault(id(value), name)
        if before != name:
            self._conditions.append(f"{name} is {before}")
        else:
            self.arrays.append(value)

    def _code(self, function: FunctionType, code: Any, defaults: Any, by_name: dict[str, Any] | None) -> None:
        name = self._bind(function)
        self._conditions.append(f"code_of({name}) is {self._bind(code)}")
        if defaults is not None:
            self._conditions.append(f"{name}.__defaults__ is {self._bind(defaults)}")
        if function.__kwdefaults__:
            # By content: the dict itself can be changed in place.
            named = self._bind(tuple((by_name or {}).items()))
            self._conditions.append(f"tuple({name}.__kwdefaults__.items()) == {named}")

    def compiled(self) -> Callable[[], tuple[jax.Array, ...] | None]:
        fetched = "(" + "".join(f"{name}, " for name in self._name_of.values()) + ")"
        condition = "\n    and ".join(self._conditions) or "True"
        # A deleted item raises LookupError, an emptied cell ValueError: the read has changed.
        text = (
            f"def check():\n  try:\n   if ({condition}):\n    return {fetched}\n"
            "  except (LookupError, AttributeError, ValueError):\n   pass\n  return None\n"
        )
        return compiled("check", text, self._values)
