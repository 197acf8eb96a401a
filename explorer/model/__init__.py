"""What was seen, as plain values: no JAX, no IPython."""

from explorer.model.capture import Capture, Durations, Stage
from explorer.model.graph import Frame, Graph, Group, Node

__all__ = ["Capture", "Durations", "Frame", "Graph", "Group", "Node", "Stage"]
