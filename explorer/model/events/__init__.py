"""What compiled and when: events, the keys that JAX's caches compare, the ledger of them."""
