"""What pip calls Explorer: `explorer` alone is another project's."""

from __future__ import annotations

NAME = "jax-compilation-explorer"


def install_hint(package: str, extra: str) -> str:
    """How to install a package that something needs: alone, or with what goes with it.

    Example:
        >>> install_hint("pandas", "lab")
        "pip install pandas, or 'jax-compilation-explorer[lab]'"
    """
    return f"pip install {package}, or '{NAME}[{extra}]'"
