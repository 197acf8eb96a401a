"""What is compiled for a bucket."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.aot.padding.program import padded
from explorer.aot.program import Traced


@dataclass(frozen=True, eq=False)
class PaddedProgram:
    """A program that is right for every size up to a bucket's.

    Args:
        outputs: Of each output shape and dtype, with symbolic dimensions.
        structure: The tree of the outputs.
        at: Of a bucket, by name, a function of true sizes by name and arrays in the bucket's shapes; it gives outputs
            in the bucket's shapes.
    """

    outputs: Sequence[Any]
    structure: Any
    at: Callable[[Mapping[str, int]], Callable[..., Sequence[Any]]]

    @classmethod
    def of(cls, traced: Traced) -> PaddedProgram:
        """Of a trace for every size."""
        return cls(traced.closed.out_avals, traced.outputs.structure, lambda bucket: padded(traced.closed, bucket))
