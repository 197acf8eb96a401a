"""Explorer's compiled functions beside jax.jit, torch and mlx: one run, one machine, a process for each library.

python -m tests.benchmarks.peers [--quick] (make bench-peers) writes docs/peers.json and the table of docs/peers.md.
"""
