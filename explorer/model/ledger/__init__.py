"""What compiled, when and why, as plain data: events, the keys that caches compare, reasons, and the ledger of them."""
