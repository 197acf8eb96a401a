"""What repeats in a stream of operations."""
