"""Reasons of recompiles, their fixes, and views of the ledger."""
