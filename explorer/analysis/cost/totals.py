"""What a whole module costs, as its page shows it: the sum over the kernels that run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from explorer.analysis.cost.kernels import running_nodes
from explorer.model.attached import cached_property
from explorer.model.graph import Graph

_NAMES = {"flops": "flops", "bytes": "bytes accessed"}  # by measure, XLA's name of its sum


class TotalCost(Mapping[str, float]):
    """`flops` and `bytes accessed` of an HLO module, counted when somebody asks.

    A sum of which a part isn't known is left out.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @cached_property
    def _sums(self) -> dict[str, float]:
        kernels = running_nodes(self._graph)
        sums = {name: float(self._graph.measures[measure][kernels].sum())
                for measure, name in _NAMES.items() if measure in self._graph.measures}  # fmt: skip
        return {name: value for name, value in sums.items() if not np.isnan(value)}

    def __getitem__(self, name: str) -> float:
        return self._sums[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sums)

    def __len__(self) -> int:
        return len(self._sums)

    def __repr__(self) -> str:
        return repr(self._sums)
