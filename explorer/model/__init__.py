"""What was seen, as plain values: no JAX, no IPython."""

from explorer.model.capture import Capture
from explorer.model.graph import Frame, Graph, Group, Node
from explorer.model.stage import Constant, Durations, Source, Stage

__all__ = ["Capture", "Constant", "Durations", "Frame", "Graph", "Group", "Node", "Source", "Stage"]
