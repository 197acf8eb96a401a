"""The arrays that go in and come out, at given sizes."""

from __future__ import annotations

from math import prod

from jax.sharding import Sharding

from explorer.aot.inputs import InputInfo
from explorer.aot.padding.buckets import Buckets, Sizes
from explorer.aot.padding.padded_program import PaddedProgram
from explorer.aot.symbols import Symbols
from explorer.padding.sizes import Sizes as SymbolicSizes

Shapes = list[tuple[int, ...]]

_KEPT = 4096  # sizes whose elements are counted already; past it all are counted anew


class Footprint:
    """Shapes of inputs and outputs, and what they come to.

    Args:
        symbols: Of the inputs.
        program: Whose outputs are meant.
        buckets: Whose order of symbols sizes have.
    """

    def __init__(self, symbols: Symbols, program: PaddedProgram, buckets: Buckets) -> None:
        self._symbols = symbols
        self._outputs = program.outputs
        self._buckets = buckets
        self._arrays = {name: info for name, info in symbols.inputs.items() if isinstance(info, InputInfo)}
        self._elements: dict[Sizes, float] = {}
        self.shardings = [info.sharding for info in self._arrays.values()]

    def inputs(self, sizes: Sizes) -> Shapes:
        """Of each input that is an array, its shape."""
        shapes = self._symbols.shapes(self._buckets.named(sizes))
        return [shapes[name] for name in self._arrays]

    def outputs(self, sizes: Sizes) -> Shapes:
        """Of each output its shape."""
        at = SymbolicSizes(self._buckets.named(sizes), {})
        return [at.shape(output.shape) for output in self._outputs]

    def elements(self, sizes: Sizes) -> float:
        """How many numbers go in and come out: what a program's work is taken to grow with."""
        if sizes not in self._elements:
            if len(self._elements) >= _KEPT:
                self._elements.clear()
            self._elements[sizes] = float(sum(map(prod, [*self.inputs(sizes), *self.outputs(sizes)])))
        return self._elements[sizes]

    def bytes(self, sizes: Sizes) -> int:
        """Of all of them."""
        dtypes = [*(info.dtype for info in self._arrays.values()), *(output.dtype for output in self._outputs)]
        shapes = [*self.inputs(sizes), *self.outputs(sizes)]
        return sum(prod(shape) * dtype.itemsize for shape, dtype in zip(shapes, dtypes, strict=True))

    def can_be_spread(self, sizes: Sizes) -> bool:
        """Whether each input of these sizes can be split over its devices."""
        try:
            for sharding, shape in zip(self.shardings, self.inputs(sizes), strict=True):
                if isinstance(sharding, Sharding):  # compile() has made one of each spec
                    sharding.shard_shape(shape)
        except ValueError:
            return False
        return True
