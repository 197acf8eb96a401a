"""What a figure says of where something was measured."""

from __future__ import annotations

from collections.abc import Mapping


def machine_text(environment: Mapping[str, str], has_cores: bool = False) -> str:
    """`cpu · 2 cores · jax 0.10.2`, as far as it is known."""
    cores = f"{environment['cores']} cores" if has_cores and "cores" in environment else ""
    jax = f"jax {environment['jax']}" if "jax" in environment else ""
    return " · ".join(filter(None, (environment.get("device", ""), cores, jax)))
