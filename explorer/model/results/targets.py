"""The hardware that a program can be compiled for, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explorer.errors import UnknownNameError
from explorer.model.attached import Displayable
from explorer.model.target import Hardware


@dataclass(frozen=True)
class TargetRow:
    """One kind of device.

    Args:
        device: Its published figures.
        is_installed: Whether its compiler is here.
        hint: The command that installs it, or what it needs besides; empty where nothing is needed.

    Example:
        >>> import explorer
        >>> row = explorer.targets()["h100"]
        >>> row.device.name, row.device.platform
        ('NVIDIA H100 80GB HBM3', 'cuda')
    """

    device: Hardware
    is_installed: bool
    hint: str = ""


@dataclass(frozen=True)
class Targets(Displayable, Sequence[TargetRow]):  # pyright: ignore[reportUnsafeMultipleInheritance]
    """All kinds of devices that `target=` names; by position, or by name.

    Args:
        rows: One for each.

    Example:
        >>> import explorer
        >>> rows = explorer.targets()
        >>> rows["v5e"].device.platform, "a100" in [row.device.key for row in rows]
        ('tpu', True)
    """

    rows: tuple[TargetRow, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[TargetRow]:
        return iter(self.rows)

    def __getitem__(self, at: int | str) -> TargetRow:  # pyright: ignore[reportIncompatibleMethodOverride]
        """By position, or by the name that `target=` takes; UnknownNameError lists the names."""
        if not isinstance(at, str):
            return self.rows[at]
        for row in self.rows:
            if row.device.key == at:
                return row
        raise UnknownNameError(f"no hardware is named {at!r}; there are: {', '.join(r.device.key for r in self.rows)}")

    def __repr__(self) -> str:
        return f"Targets({', '.join(row.device.key for row in self.rows)})"
