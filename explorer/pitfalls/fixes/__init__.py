"""Rewrites of the user's function that remove a rule's finding."""
