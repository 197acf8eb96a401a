"""Seconds and ratios as people read them."""

__all__ = ["seconds", "times"]


def seconds(value: float) -> str:
    """Three digits with the unit that fits: `4.41 µs`, `72.5 ms`, `18.1 s`."""
    unit, factor = next((unit, factor) for unit, factor in _UNITS if value * factor >= 0.9995 or unit == "ns")
    digits = value * factor
    return f"{digits:.{0 if digits >= 99.95 else 1 if digits >= 9.995 else 2}f} {unit}"


def times(ratio: float) -> str:
    """`3.4×`, `12×`, `0.82×`."""
    return f"{ratio:.{0 if ratio >= 9.95 else 1 if ratio >= 1.95 else 2}f}×"


_UNITS = (("s", 1), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))
