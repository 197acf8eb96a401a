"""What is compiled for a bucket: from a trace for every size, or from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import jax
from jax import export

from explorer._jax import without_held_frames
from explorer.aot.program import Traced
from explorer.errors import ArchiveError
from explorer.padding.interpreter import Notes
from explorer.padding.program import padded
from explorer.padding.sizes import Sizes
from explorer.padding.values import Fill


@dataclass(frozen=True)
class SavedBucket:
    """A bucket's program as it travels.

    Args:
        module: Gives what `jax.export.Exported.serialize` does, of a function `(constants, sizes, *arrays) → list`.
        constants: Gives its arrays.
    """

    module: Callable[[], bytes]
    constants: Callable[[], Sequence[Any]]


@dataclass(frozen=True, eq=False)
class PaddedProgram:
    """A program that is right for every size up to a bucket's.

    Args:
        outputs: Of each output shape and dtype, with symbolic dimensions.
        structure: The tree of the outputs.
        at: Of a bucket, by name, a function of true sizes by name and arrays in the bucket's shapes; it gives outputs
            in the bucket's shapes. What comes second gets what is padding, by variable; from a file nothing.
        save: Of a bucket and platforms (None is the present one) how it travels.
        fills: Of each array that goes in what its padding is to hold.
        buckets: Those that there are; None where there is one for any sizes.
    """

    outputs: Sequence[Any]
    structure: Any
    at: Callable[[Mapping[str, int], Notes], Callable[..., Sequence[Any]]]
    save: Callable[[Mapping[str, int], Sequence[str] | None], SavedBucket]
    fills: Sequence[Fill] = ()
    buckets: Sequence[Mapping[str, int]] | None = None

    @classmethod
    def of(cls, traced: Traced, fills: Sequence[Fill]) -> PaddedProgram:
        """Of a trace for every size."""
        closed = traced.closed

        def save(bucket: Mapping[str, int], platforms: Sequence[str] | None) -> SavedBucket:
            module = _exported(closed, bucket, platforms, fills)
            return SavedBucket(lambda: module, lambda: list(closed.consts))

        return cls(closed.out_avals, traced.outputs.structure, partial(padded, closed, fills=fills), save, fills)

    @classmethod
    def of_file(
        cls,
        outputs: Sequence[Any],
        structure: Any,
        saved: Sequence[tuple[Mapping[str, int], SavedBucket]],
        read: Callable[[bytes], export.Exported],
        fills: Sequence[Fill],
    ) -> PaddedProgram:
        """Of programs for some buckets."""

        def find(bucket: Mapping[str, int]) -> SavedBucket:
            return next(program for sizes, program in saved if sizes == bucket)

        def at(bucket: Mapping[str, int], _: Notes) -> Callable[..., Sequence[Any]]:
            program = find(bucket)

            def run(sizes: Mapping[str, Any], *arrays: Any) -> Sequence[Any]:
                with without_held_frames():
                    module = cast(Any, read(program.module()))
                    return module.call(list(program.constants()), dict(sizes), *arrays)

            return run

        return cls(outputs, structure, at, lambda bucket, _: find(bucket), fills, [sizes for sizes, _ in saved])


def _exported(closed: Any, bucket: Mapping[str, int], platforms: Sequence[str] | None, fills: Sequence[Fill]) -> bytes:
    jaxpr = getattr(closed, "jaxpr", closed)
    shapes = Sizes(bucket, {})

    def run(constants: Sequence[Any], sizes: Mapping[str, Any], *arrays: Any) -> Any:
        # The constants are arguments, for all buckets share them in the file.
        return padded(SimpleNamespace(jaxpr=jaxpr, consts=constants), bucket, fills=fills)(sizes, *arrays)

    constants = [jax.ShapeDtypeStruct(jax.numpy.shape(c), jax.typeof(c).dtype) for c in closed.consts]
    sizes = {symbol: jax.ShapeDtypeStruct((), "int32") for symbol in bucket}
    structs = [jax.ShapeDtypeStruct(shapes.shape(aval.shape), aval.dtype) for aval in closed.in_avals]
    try:
        with without_held_frames():
            return bytes(export.export(jax.jit(run), platforms=platforms)(constants, sizes, *structs).serialize())
    except Exception as error:  # JAX raises what it likes
        first = str(error).strip().partition("\n")[0]
        raise ArchiveError(f"the padded program for {dict(bucket)} can't be saved: {first}") from error
