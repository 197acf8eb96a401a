"""Tracing, lowering and compiling of functions, and the readers of each stage's text."""
