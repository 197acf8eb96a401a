"""Rewrites of the user's function with which a rule has nothing to find in it any more."""
