"""Other people's MLIR, read by our reader and by MLIR's own parser."""
