"""Keeping what was gained: what a compiler makes of a function is recorded, and held against what it makes later."""
