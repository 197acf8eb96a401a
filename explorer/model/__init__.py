"""Plain values of captures, graphs and stages, without JAX or IPython."""

from explorer.model.capture import Capture
from explorer.model.graph import Frame, Graph, Group, Node
from explorer.model.stage import Constant, Durations, Source, Stage

__all__ = ["Capture", "Constant", "Durations", "Frame", "Graph", "Group", "Node", "Source", "Stage"]
