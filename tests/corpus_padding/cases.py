"""A case: a function, its arguments in a line of text, and arrays for them at any sizes, valid and poisoned.

>>> case = Case("scores", lambda q, k: q @ k.T, "f[b,4] f[s,4]")
>>> [argument.shape_at({"b": 2, "s": 3}) for argument in case.arguments]
[(2, 4), (3, 4)]
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Sizes = Mapping[str, int]

# Of every symbol the largest size, which is the bucket's; the smallest is 1 unless a case says otherwise.
LARGEST = {"b": 3, "s": 5, "t": 4, "n": 6}
# Of each kind of argument its dtype, and how its values are drawn.
DTYPES: dict[str, Any] = {
    **dict.fromkeys(("f", "positive", "unit", "wild", "ties", "sorted"), np.float64),
    **{"f32": np.float32, "f16": np.float16, "bf16": jnp.bfloat16, "c": np.complex128, "m": np.bool_},
    **{"i": np.int64, "below": np.int64, "signed": np.int64, "i8": np.int8, "u8": np.uint8, "i32": np.int32},
    **{"u32": np.uint32, "long": np.int64, "u64": np.uint64, "key": None, "rbg": None, "cwild": np.complex128},
    **{
        "f8": jnp.float8_e4m3fn,
        "f8wide": jnp.float8_e5m2,
        "f8uz": jnp.float8_e4m3fnuz,
        "i4": jnp.int4,
        "u4": jnp.uint4,
    },
}
_MOST = 1024  # sizes of a case: the plain function's program of all of them is one
_WILD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5)
# What stands in the padded region, in turns: of floats, of integers (their smallest, largest, or the number), of bools.
POISONS = (
    ("nan", "smallest", True),
    ("inf", "largest", True),
    ("-inf", -1, False),
    ("valid", "valid", "valid"),
    ("huge", 0, "mixed"),
)


@dataclass(frozen=True)
class Argument:
    """One array: `f[b,s,8]`.

    Args:
        kind: Of `DTYPES`; `below` draws indices below the size of the symbol `of`.
        shape: Of sizes and symbols.
        of: Of indices, the symbol they are below, or the number.
    """

    kind: str
    shape: tuple[int | str, ...]
    of: str = ""

    @classmethod
    def parse(cls, text: str) -> Argument:
        kind, of, inside = re.fullmatch(r"(\w+?)(?:<(\w+))?\[(.*)\]", text).groups()
        shape = tuple(int(size) if size.isdigit() else size for size in inside.split(",") if size)
        return cls("below" if of else kind, shape, of or "")

    @property
    def dtype(self) -> Any:
        return self._key(0).dtype if self.is_key else np.dtype(DTYPES[self.kind])

    @property
    def is_key(self) -> bool:
        return self.kind in ("key", "rbg")

    def _key(self, seed: int) -> Any:
        return jax.random.key(seed, impl="rbg" if self.kind == "rbg" else "threefry2x32")

    @property
    def is_differentiable(self) -> bool:
        return not self.is_key and jnp.issubdtype(self.dtype, jnp.floating)

    def shape_at(self, sizes: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(size if isinstance(size, int) else sizes[size] for size in self.shape)

    def draw(self, sizes: Sizes, generator: np.random.Generator) -> Any:
        shape = self.shape_at(sizes)
        if self.is_key:
            return jax.random.split(self._key(7), (int(np.prod(shape)),)).reshape(shape)
        if self.kind == "cwild":
            return generator.choice(_WILD, shape) + 1j * generator.choice(_WILD, shape)
        if self.kind == "wild":
            return generator.choice(_WILD, shape)
        if self.kind == "ties":
            return generator.integers(-1, 3, shape).astype(np.float64)
        if self.kind == "sorted":
            return np.sort(generator.normal(size=shape), axis=-1)
        if self.kind == "m":
            return generator.random(shape) < 0.6
        if self.kind == "below":
            return generator.integers(0, int(self.of) if self.of.isdigit() else sizes[self.of], shape)
        if self.kind in ("i", "signed"):
            return generator.integers(-4 if self.kind == "signed" else 0, 5, shape)
        if jnp.issubdtype(self.dtype, jnp.integer):
            return generator.integers(0 if self.kind[0] == "u" else -9, 100, shape).astype(self.dtype)
        values = generator.normal(size=shape)
        if self.kind == "c":
            return values + 1j * generator.normal(size=shape)
        values = {"positive": np.abs(values) + 0.3, "unit": np.tanh(values) * 0.9}.get(self.kind, values)
        return values.astype(self.dtype)

    def poisoned(self, valid: Any, bucket: Sizes, poison: int, generator: np.random.Generator) -> Any:
        """The array at the bucket's sizes: its first region is `valid`, the rest is poison."""
        shape = self.shape_at(bucket)
        if valid.shape == shape:
            return valid
        corner = tuple(slice(0, size) for size in valid.shape)
        if self.is_key:
            others = jax.random.split(self._key(poison), int(np.prod(shape))).reshape(shape)
            return others.at[corner].set(valid)
        array = np.array(self._poison(shape, bucket, poison, generator))
        array[corner] = valid
        return array

    def _poison(self, shape: tuple[int, ...], bucket: Sizes, poison: int, generator: np.random.Generator) -> Any:
        of_floats, of_integers, of_bools = POISONS[poison]
        dtype = self.dtype
        if of_floats == "valid":
            return self.draw(bucket, generator)
        if dtype == np.bool_:
            return generator.random(shape) < 0.5 if of_bools == "mixed" else np.full(shape, of_bools)
        if jnp.issubdtype(dtype, jnp.integer):
            info = jnp.iinfo(dtype)
            number = {"smallest": info.min, "largest": info.max, -1: info.max if info.min == 0 else -1, 0: 0}
            return np.full(shape, number[of_integers], dtype)
        if of_floats == "huge":
            largest = float(jnp.finfo(dtype).max)
            return np.where(generator.random(shape) < 0.5, largest, -largest).astype(dtype)
        filled = np.full(shape, float(of_floats), np.float64).astype(dtype)
        return filled + 1j * filled.real if self.kind[0] == "c" else filled


@dataclass(frozen=True)
class Case:
    """A function, with its arguments and the sizes it is to be judged at.

    Args:
        name: Within its family.
        function: Of arrays.
        text: Its arguments, as `Argument.parse` reads them.
        smallest: Of a symbol the smallest size that the function takes, where that isn't 1.
        family: Where it is listed.
        largest: Of a symbol the largest size, where that isn't `LARGEST`.
    """

    name: str
    function: Callable[..., Any]
    text: str
    smallest: Mapping[str, int] = field(default_factory=dict)
    family: str = ""
    largest: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        return tuple(map(Argument.parse, self.text.split()))

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s for a in self.arguments for s in a.shape if isinstance(s, str)))

    @property
    def bucket(self) -> dict[str, int]:
        return {symbol: self.largest.get(symbol, LARGEST[symbol]) for symbol in self.symbols}

    def sizes(self, few: bool = False) -> Iterator[dict[str, int]]:
        """All sizes of the bucket, of more than a thousand a spread; or two, of several symbols three, all padded."""
        ranges = {s: range(self.smallest.get(s, 1), largest + 1) for s, largest in self.bucket.items()}
        if few:
            middle = {s: r[len(r) // 2] for s, r in ranges.items()}
            smallest = {s: r[0] for s, r in ranges.items()}
            unlike = {s: (r[0] if i % 2 else r[-2:][0]) for i, (s, r) in enumerate(ranges.items())}
            seen = [smallest, middle, unlike] if len(ranges) > 1 else [smallest, middle]
            yield from (sizes for i, sizes in enumerate(seen) if sizes not in seen[:i])
            return
        everything = list(product(*ranges.values()))
        for sizes in everything[:: -(-len(everything) // _MOST)]:
            yield dict(zip(ranges, sizes, strict=True))

    def generator(self, sizes: Sizes) -> np.random.Generator:
        return np.random.default_rng(zlib.crc32(f"{self.name} {sorted(sizes.items())}".encode()))

    def valid(self, sizes: Sizes) -> list[Any]:
        """The arguments at these sizes, always the same."""
        generator = self.generator(sizes)
        return [argument.draw(sizes, generator) for argument in self.arguments]

    def gradient(self) -> Case | None:
        """This case's derivatives backwards, by every float argument; None if it has none."""
        positions = tuple(i for i, argument in enumerate(self.arguments) if argument.is_differentiable)
        if not positions or any(argument.kind[0] == "c" for argument in self.arguments):
            return None
        return replace(self, name=f"grad {self.name}", function=backwards(self.function, positions))


def backwards(function: Callable[..., Any], positions: tuple[int, ...]) -> Callable[..., Any]:
    """The vector-Jacobian product by the arguments at `positions`, of cotangents that depend on what it gives."""

    def differentiated(*arrays: Any) -> Any:
        def of_floats(*floats: Any) -> Any:
            given = list(arrays)
            for position, value in zip(positions, floats, strict=True):
                given[position] = value
            leaves = jax.tree.leaves(function(*given))
            return [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]

        results, pull = jax.vjp(of_floats, *(arrays[position] for position in positions))
        if not results:
            raise TypeError("nothing that it returns has a derivative")
        return pull([jnp.cos(result) for result in results])

    return differentiated
