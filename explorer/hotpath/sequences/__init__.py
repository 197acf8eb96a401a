"""Sequences of single operations and statements: recorder, and loops of cells and scripts."""
