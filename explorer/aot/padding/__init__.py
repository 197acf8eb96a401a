"""How an executable serves sizes that vary: what is padded and why, which binary answers, and the report of it."""
