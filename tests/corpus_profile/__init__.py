"""Models of the kind that people write, each with one line that takes most of its time, which ablation decides.

    python -m tests.corpus_profile

prints for each the line that the profile calls the hottest, and the one without which the model gains most.

Fifteen of the models were there while lines were taught to share a kernel. Nine were written after that: beam_search,
diffusion_block, image_warp, kalman_filter, least_squares, option_pricing, recommender, vocabulary_loss, wave_equation.
Of those profile and ablation agreed on seven at first. In `recommender` XLA had folded the next line's transpose
into a product, and it was in the wrong line (attribution.py). In `vocabulary_loss` the ablation was wrong: what
stood for the line was slower than the line. A tenth was left out: without one line its factorisation fails at once.

In `libraries` are 23 models made with others' libraries: flax (linen and nnx), equinox, optax, diffrax, numpyro, haiku,
blackjax, jraph, lineax, optimistix, jaxopt; what is not installed is not run. They were written after the profile. The
first time it named the hottest line of 19 of them or tied it with that, on a machine that eight people used; measured
again, of 22: twice the first ablation had been disturbed, and the model of optimistix was written anew, as most of its
time was the library's own, which no ablation takes away. In the one that is left, an update of optax, memory is moved
once for five lines.
"""
