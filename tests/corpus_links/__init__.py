"""How many links are right? Real models and generated programs, of whose instructions it is known what they come from.

    python -m tests.corpus_links

prints a row for each model: its instructions, the grades of their links, and how many are wrong. A model is explored
without numbers, so that names and places link it, and with them.

The truth about a real model comes from a second program, in which each equation is evaluated in a named scope of its
own (`tagging.py`); both programs must be equal by position (`truth.py`). Where XLA keeps one instruction for several
equal ones, or folds one into another, a link to any of those is right (`equation_values.py`). Generated programs
(`generated.py`) are judged a second time by what their operations say themselves: each has a constant, a slice or a
size that no other has (`fingerprints.py`).
"""
