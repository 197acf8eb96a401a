"""Sharded programs for eight devices: some with something replicated that nobody meant, some as they should be."""
