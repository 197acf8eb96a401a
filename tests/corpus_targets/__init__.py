"""Programs of many kinds, compiled for hardware that isn't here: `python -m tests.corpus_targets` prints the table."""
