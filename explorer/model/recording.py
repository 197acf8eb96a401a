"""What one more compilation of a program shows that the user's own doesn't."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from explorer.model.equation_sets import EquationSets
from explorer.model.passes import Passes


@dataclass(frozen=True)
class Recording:
    """A program's passes, and from which equations its instructions come.

    Args:
        passes: What each pass did.
        exact_sets: By stage, the equations of its nodes, as far as the compiler kept them; empty where they are not
            known.
        note: Why they are not known; empty where they are.
    """

    passes: Passes
    exact_sets: Mapping[str, EquationSets]
    note: str = ""
