"""Programs whose memory XLA plans itself: is ours what its own buffers take up?

    python -m tests.corpus_memory [PROGRAM…]

prints for each the peak that Explorer reads from the text, beside what the dump of the compile says: `live`, the bytes
of XLA's allocations that values lie in at the fullest moment, by its live ranges and its buffer assignment; and
`allocated`, all that it reserves, which is more by the gaps that its packing leaves, alignment and tuples' pointers.
A peak must never be above either, and within 2 % of `live`.

The last fourteen programs were written after the rules, and changed none. `random_numbers` is below: XLA doesn't share
the place of an output that is written later, as the rules suppose that it may, since other values lie there by then.
"""
