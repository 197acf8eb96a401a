"""Amounts as a person reads them: three digits and a unit."""

from __future__ import annotations

import math

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def bytes_text(size: float) -> str:
    """Return a number of bytes as text with a decimal unit (B, kB, MB, …).

    Example:
        >>> bytes_text(1_300_000), bytes_text(4096), bytes_text(12), bytes_text(2.4113e15)
        ('1.3 MB', '4.1 kB', '12 B', '2.4 PB')
    """
    amount, prefix = _scaled(size, 100)
    return f"{amount:,.0f} {prefix}B" if amount >= 100 or not prefix else f"{amount:.1f} {prefix}B"


def amount_text(amount: float) -> str:
    """Return a number of operations as text, followed by a space and a decimal prefix (k, M, G, …).

    Example:
        >>> amount_text(2.4113e15), amount_text(16_384), amount_text(12), amount_text(999_990)
        ('2.4 P', '16.4 k', '12 ', '1.0 M')
    """
    scaled, prefix = _scaled(amount, 1000)
    return f"{scaled:,.1f} {prefix}" if prefix else f"{scaled:.0f} "


def _scaled(amount: float, whole: float) -> tuple[float, str]:
    """Return the amount in its largest unit, and the unit's prefix, such as `(1.3, "M")`.

    The unit is chosen for the amount as printed: with one decimal, without decimals from `whole` on.
    """
    scaled, prefix = float(amount), 0
    while prefix < len(_PREFIXES) - 1 and round(scaled, 0 if scaled >= whole or not prefix else 1) >= 1000:
        scaled, prefix = scaled / 1000, prefix + 1
    return scaled, _PREFIXES[prefix]


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun as text; the noun gets a plural `s` unless the number is 1.

    Example:
        >>> count_text(1, "event"), count_text(1200, "event")
        ('1 event', '1,200 events')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration_text(seconds: float) -> str:
    """Return seconds as text with three digits, in s, ms, µs or ns.

    Example:
        >>> duration_text(0.00123), duration_text(4.2e-8), duration_text(75), duration_text(0)
        ('1.23 ms', '42 ns', '75 s', '0 s')
    """
    if not seconds or not math.isfinite(seconds):
        return f"{seconds:g} s"
    unit, size = _unit_of(seconds)
    return f"{_three(seconds / size)} {unit}"


def least_duration_text(seconds: float) -> str:
    """Return a lower bound in seconds as text with three digits, rounded down so that the bound still holds.

    The step is at least 0.01 ns.

    Example:
        >>> least_duration_text(0.0019999), least_duration_text(1.5364e-8), least_duration_text(1.56e-11)
        ('1.99 ms', '15.3 ns', '0.01 ns')
    """
    if not seconds > 0 or not math.isfinite(seconds):
        return duration_text(seconds)
    step = max(10.0 ** (math.floor(math.log10(seconds)) - 2), 1e-11)
    return duration_text(math.floor(seconds / step + 1e-6) * step)  # 1.28 / 0.01 is a little less than 128


def range_text(low: float, high: float) -> str:
    """Return a range of two durations in seconds as text, both in the unit of the longer duration.

    Example:
        >>> range_text(0.0409, 0.0416), range_text(0.9e-3, 1.2e-3)
        ('40.9 … 41.6 ms', '0.9 … 1.2 ms')
    """
    if not (math.isfinite(low) and math.isfinite(high) and high > 0):
        return f"{low:g} … {high:g} s"
    unit, size = _unit_of(high)
    return f"{_three(low / size)} … {_three(high / size)} {unit}"


def factor_text(factor: float) -> str:
    """Return a factor as text with a multiplication sign; larger factors have fewer decimals.

    Example:
        >>> factor_text(3.44), factor_text(1.021), factor_text(15230)
        ('3.4×', '1.02×', '15,230×')
    """
    return f"{factor:.2f}×" if factor < 1.995 else f"{factor:.1f}×" if factor < 99.95 else f"{factor:,.0f}×"


def factors_text(low: float, high: float) -> str:
    """Return a range of two factors as text: `2.9 … 3.1×`.

    Example:
        >>> factors_text(2.93, 3.07), factors_text(0.98, 1.03), factors_text(212, 240)
        ('2.9 … 3.1×', '0.98 … 1.03×', '212 … 240×')
    """
    places = 2 if high < 1.995 else 1 if high < 99.95 else 0
    return f"{low:,.{places}f} … {high:,.{places}f}×"


def _unit_of(seconds: float) -> tuple[str, float]:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if float(f"{seconds / size:.3g}") >= 1:  # 999.9 µs are 1 ms
            return unit, size
    return "ns", 1e-9


def _three(amount: float) -> str:
    amount = float(f"{amount:.3g}")
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:.3g}"


def rate_text(rate: float, what: str = "FLOP") -> str:
    """Return a rate per second as text with three digits and a decimal prefix; `what` is its unit.

    Example:
        >>> rate_text(147.4e9), rate_text(27.1e9, "B")
        ('147 GFLOP/s', '27.1 GB/s')
    """
    # A value that rounds to a thousand is one of the next unit: 999.9 M are 1 G.
    amount, prefix = float(rate), 0
    while float(f"{amount:.3g}") >= 1000 and prefix < len(_PREFIXES) - 1:
        amount, prefix = amount / 1000, prefix + 1
    return f"{amount:.3g} {_PREFIXES[prefix]}{what}/s"


def share_text(share: float) -> str:
    """Return a share of the whole, 0 to 1, as a whole percentage; `under 1%` for small shares above 0.

    Example:
        >>> share_text(0.25), share_text(0.004), share_text(0.0)
        ('25%', 'under 1%', '0%')
    """
    return "under 1%" if 0 < share < 0.005 else f"{share:.0%}"


def fine_share_text(share: float) -> str:
    """Return a share of the whole, 0 to 1, as a percentage with one decimal below 10%.

    Positive shares below 0.1% become `<0.1%`, never 0%.

    Example:
        >>> fine_share_text(0.62), fine_share_text(0.062), fine_share_text(0.0004), fine_share_text(0.0)
        ('62%', '6.2%', '<0.1%', '0%')
    """
    if share <= 0:
        return "0%"
    if share < 0.001:
        return "<0.1%"
    return f"{share:.0%}" if share >= 0.0995 else f"{share:.1%}"
