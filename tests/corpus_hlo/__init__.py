"""Other people's HLO, read by our reader and by XLA's own parser."""
