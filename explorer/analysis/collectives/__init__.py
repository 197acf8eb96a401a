"""What the devices of a sharded program send each other, and what they need not."""
