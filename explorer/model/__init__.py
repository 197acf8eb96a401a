"""What was seen, as plain values: no JAX, no IPython."""

from explorer.model.graph import Frame, Graph, Group, Node

__all__ = ["Frame", "Graph", "Group", "Node"]
