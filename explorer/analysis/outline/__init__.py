"""Outline of a graph: nested groups by computation, call stack, scope and repetition."""
