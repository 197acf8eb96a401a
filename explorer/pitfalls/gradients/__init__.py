"""Gradients that aren't numbers where the value is one, seen by running pieces of the traced program."""
