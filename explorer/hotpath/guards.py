"""Check that everything a proof read is unchanged: one generated function for each proof.

Arrays may be replaced, such as the weights of a training loop: they are passed to the program at each call. All else
must be the same object. The checks are compiled Python source and take 30 ns each, a third of an interpreting loop.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, cast

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
        """Return the name of the first array with another shape, dtype or placement."""
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
    """Return the guards of reads. Arrays whose id isn't in `used`, those of the program, must stay the same objects."""
    writer = _Writer(used)
    for number, read in enumerate(reads):
        writer.add(number, read)
    return Guards(writer.compiled(), tuple(writer.arrays), tuple(reads))


def is_unchanged(read: Read) -> bool:
    guards = _Writer(())
    guards.add(0, read)
    return guards.compiled()() is not None


class _Writer:
    def __init__(self, used: Container[int]) -> None:
        self._used = used
        self.values: dict[str, Any] = {"ARRAYS": ARRAYS, "absent": _ABSENT, "contents": contents, "buffer": buffer}
        self.conditions: list[str] = []
        self.fetched: list[str] = []
        self.arrays: list[jax.Array] = []
        self._names_of: dict[int, str] = {}

    def is_input(self, value: Any) -> bool:
        return type(value) in ARRAYS and id(value) in self._used and may_be_replaced(value)

    def add(self, number: int, read: Read) -> None:
        holder, key, value = (f"{letter}{number}" for letter in "hkv")
        self.values |= {holder: read.holder, key: read.key, value: read.value}
        match read.where:
            case "global":
                current = f"{holder}.get({key})"
            case "cell":
                current = f"{holder}.cell_contents"
            case "attribute":
                current = self._attribute(holder, key, read)
            case "absent":
                self.conditions.append(f"absent is {self._attribute(holder, key, read)}")
                return
            case "item":
                current = f"{holder}[{key}]"
            case "code":
                self._code(number, read)
                return
            case "contents":
                self._contents(number, read)
                return
            case "buffer":
                self.conditions.append(f"buffer({holder}) == {value}")
                return
        if self.is_input(read.value):
            self._array(f"a{number}", current, read.value)
        else:
            self.conditions.append(f"{current} is {value}")

    def _attribute(self, holder: str, key: str, read: Read) -> str:
        own = getattr(read.holder, "__dict__", None)
        if own is None or (read.where == "attribute" and read.key not in own):  # a slot, or an attribute of the class
            return f"getattr({holder}, {key}, absent)"
        if not isinstance(read.holder, type):
            self.values[holder] = own
            return f"{holder}.get({key}, absent)"
        return f"{holder}.__dict__.get({key}, absent)"

    def _array(self, name: str, current: str, value: jax.Array) -> None:
        """Fetch an array that may have been replaced; two names of one array must still be the same."""
        self.conditions.append(f"type({name} := {current}) in ARRAYS")
        before = self._names_of.setdefault(id(value), name)
        if before != name:
            self.conditions.append(f"{name} is {before}")
        else:
            self.fetched.append(name)
            self.arrays.append(value)

    def _code(self, number: int, read: Read) -> None:
        function: FunctionType = read.holder
        code, defaults, by_name = read.value
        self.values |= {
            f"code{number}": code,
            f"defaults{number}": defaults,
            f"names{number}": tuple(cast(dict[str, Any], by_name or {}).items()),
            "code_of": code_of,
        }
        self.conditions.append(f"code_of(h{number}) is code{number}")
        if defaults is not None:
            self.conditions.append(f"h{number}.__defaults__ is defaults{number}")
        if function.__kwdefaults__:
            self.conditions.append(f"tuple(h{number}.__kwdefaults__.items()) == names{number}")

    def _contents(self, number: int, read: Read) -> None:
        inside = f"c{number}"
        self.conditions.append(f"len({inside} := contents(h{number})) == {len(read.value)}")
        for at, value in enumerate(read.value):
            if self.is_input(value):
                self._array(f"a{number}_{at}", f"{inside}[{at}]", value)
            else:
                self.values[f"v{number}_{at}"] = value
                self.conditions.append(f"{inside}[{at}] is v{number}_{at}")

    def compiled(self) -> Callable[[], tuple[jax.Array, ...] | None]:
        fetched = "(" + "".join(f"{name}, " for name in self.fetched) + ")"
        condition = "\n    and ".join(self.conditions) or "True"
        text = (
            f"def check():\n  try:\n   if ({condition}):\n    return {fetched}\n"
            "  except (LookupError, AttributeError, ValueError):\n   pass\n  return None\n"
        )
        return compiled("check", text, self.values)
