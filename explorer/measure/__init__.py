"""Measure: how long a function takes, where the time goes, and how far that is from the machine's limit."""
