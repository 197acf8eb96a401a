"""Models of the kind that people write, each with one line that takes most of its time, which ablation decides.

    python -m tests.corpus_profile

prints for each the line that the profile calls the hottest, and the one without which the model gains most.
"""
