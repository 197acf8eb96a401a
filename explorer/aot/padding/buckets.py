"""Which sizes a padded binary may have, and which of them a call needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, cast

from explorer.aot.dimensions import Bounds
from explorer.capture.sources import called_at
from explorer.errors import OptionError

Sizes = tuple[int, ...]  # of each symbol, in the order of `Symbols.bounds`

# Combinations of several dimensions' buckets that are weighed against each other at each call, a microsecond for
# eight; those that are compiled are far fewer.
_COMBINATIONS = 64


class Buckets:
    """The sizes that inputs may be padded to.

    Args:
        bounds: Of each symbol.
        ladder: Of each symbol the sizes of its buckets, ascending; the last is its largest size.
        is_chosen: Whether a user named them.

    Example:
        >>> buckets = Buckets({"batch": Bounds(1, 8, 48)}, {"batch": (16, 48)})
        >>> buckets.combinations
        [(16,), (48,)]
    """

    def __init__(
        self, bounds: Mapping[str, Bounds], ladder: Mapping[str, Sequence[int]], is_chosen: bool = False
    ) -> None:
        self.bounds = dict(bounds)
        self.is_chosen = is_chosen
        self.symbols = tuple(bounds)
        self.ladder = {symbol: tuple(ladder[symbol]) for symbol in bounds}
        self.largest: Sizes = tuple(rungs[-1] for rungs in self.ladder.values())

    @property
    def combinations(self) -> list[Sizes]:
        """Every bucket that there may be, the smallest first."""
        return sorted(product(*self.ladder.values()), key=prod)

    def named(self, sizes: Sizes) -> dict[str, int]:
        """The sizes by symbol."""
        return dict(zip(self.symbols, sizes, strict=True))


def default_buckets(bounds: Mapping[str, Bounds]) -> Buckets:
    """Powers of two below each largest size; of several dimensions fewer, so that not too many combine.

    The smallest buckets go first: what they save is a small part of what a call of usual sizes takes.

    Example:
        >>> default_buckets({"batch": Bounds(1, 8, 48)}).ladder
        {'batch': (1, 2, 4, 8, 16, 32, 48)}
    """
    ladder = {symbol: _powers(its) for symbol, its in bounds.items()}
    while prod(map(len, ladder.values())) > _COMBINATIONS:
        longest = max(ladder, key=lambda symbol: len(ladder[symbol]))
        if len(ladder[longest]) == 1:  # more than sixty-four dimensions
            break
        ladder[longest] = ladder[longest][1:]
    return Buckets(bounds, ladder)


def _powers(bounds: Bounds) -> tuple[int, ...]:
    """The powers of two from the first that serves the smallest size, and the largest size itself."""
    smallest = max(1, bounds.min)
    if smallest == bounds.max:
        return (bounds.max,)
    powers = (1 << i for i in range((smallest - 1).bit_length(), bounds.max.bit_length()))
    return (*(power for power in powers if power < bounds.max), bounds.max)


def chosen_buckets(bounds: Mapping[str, Bounds], given: Any) -> Buckets:
    """The buckets that a user names, by dimension; the largest size is always one, and other dimensions have theirs.

    Raises:
        OptionError: A dimension or a size is none.
    """
    __tracebackhide__ = True
    varying = [symbol for symbol, its in bounds.items() if its.min < its.max]
    if not isinstance(given, Mapping):
        raise OptionError(
            f"buckets is {given!r}; allowed is a dict of sizes by dimension.\n{called_at()}"
            f"  Hint: buckets={{{varying[0]!r}: ({bounds[varying[0]].max},)}}."
            if varying
            else f"buckets is {given!r}, and no dimension varies.\n{called_at()}"
        )
    by_name = cast("Mapping[Any, Any]", given)
    ladder = dict(default_buckets(bounds).ladder)
    for name, sizes in by_name.items():
        if name not in varying:
            raise OptionError(
                f"buckets has {name!r}; the dimensions that vary are {', '.join(varying) or 'none'}.\n{called_at()}"
                "  Hint: a dimension without a name has its place for one: x_0."
            )
        ladder[name] = _chosen(name, bounds[name], sizes)
    count = prod(map(len, ladder.values()))
    if count > _COMBINATIONS:
        ladder = {name: rungs if name in by_name else rungs[-1:] for name, rungs in ladder.items()}
        count = prod(map(len, ladder.values()))
    if count > _COMBINATIONS:
        raise OptionError(
            f"buckets has {count} combinations; at most {_COMBINATIONS} are weighed.\n{called_at()}"
            "  Hint: fewer sizes for some dimension."
        )
    return Buckets(bounds, ladder, is_chosen=True)


def _chosen(name: str, bounds: Bounds, sizes: Any) -> tuple[int, ...]:
    __tracebackhide__ = True
    listed = cast("Sequence[Any]", sizes if isinstance(sizes, (tuple, list, range)) else (sizes,))
    wrong = [size for size in listed if type(size) is not int or not max(1, bounds.min) <= size <= bounds.max]
    if wrong or not listed:
        raise OptionError(
            f"buckets has {wrong[0]!r} for `{name}`; allowed are ints with {max(1, bounds.min)} ≤ {name} ≤ "
            f"{bounds.max}.\n{called_at()}"
            if wrong
            else f"buckets has no size for `{name}`.\n{called_at()}"
        )
    return tuple(sorted({*listed, bounds.max}))


def serves(bucket: Sizes, sizes: Sizes) -> bool:
    """Whether no size is larger than the bucket's."""
    return all(size <= most for size, most in zip(sizes, bucket, strict=True))
