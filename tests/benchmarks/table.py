"""One line for each figure: what it is, what was measured, the most it may be."""

__all__ = ["row"]

UNITS = {
    "s": (1, "s", 2),
    "ms": (1e3, "ms", 0),
    "µs": (1e6, "µs", 1),
    "MB": (1e-6, "MB", 2),
    "×": (1, "×", 3),
    "": (1, "", 2),
}


def row(name, value, limit, unit):
    """Print a figure against its limit in the unit to show; True if it holds."""
    factor, symbol, digits = UNITS[unit]
    shown = f"{value * factor:.{digits}f} {symbol}"
    verdict = "ok" if value <= limit else "MISSED"
    print(f"{name:<58}{shown:>12}   ≤ {limit * factor:g} {symbol:<4}{verdict}", flush=True)
    return value <= limit
