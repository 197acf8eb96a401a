"""How much memory a compiled program needs of a device: one figure, wherever it is shown or compared."""

from __future__ import annotations

import math
from collections.abc import Mapping

# What a compiler says of a program, and what a person calls it, in the order in which it is drawn.
USES = (("argument", "arguments"), ("output", "outputs"), ("temp", "temporaries"), ("generated code", "code"))


def needed_bytes(uses: Mapping[str, int]) -> float:
    """Bytes of a device's memory that a program needs, by what its compiler says of each use; NaN where it doesn't.

    Outputs that lie where a donated argument was take nothing. The code counts: a TPU keeps it in the same memory, and
    its compiler refuses a program by the sum. Of an elementwise program on a v5e, arguments and outputs of 15.746 GiB
    and a code of 2.02 MiB were refused as 43 KiB too many for the 15.748 GiB that there are. The compilers of GPUs and
    CPUs say 0.

    Example:
        >>> needed_bytes({"argument": 100, "output": 60, "temp": 20, "alias": 60, "generated code": 5})
        125
        >>> needed_bytes({})
        nan
    """
    if not uses:
        return math.nan
    return sum(uses.get(use, 0) for use, _ in USES) - uses.get("alias", 0)
