"""What was seen, as plain values: no JAX, no IPython."""

from explorer.model.capture import Capture, Constant, Durations, Stage
from explorer.model.graph import Frame, Graph, Group, Node
from explorer.model.source import Source

__all__ = ["Capture", "Constant", "Durations", "Frame", "Graph", "Group", "Node", "Source", "Stage"]
