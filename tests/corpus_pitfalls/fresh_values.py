"""Fresh pitfalls of numbers at the passed arguments: NaN, infinity, zero gradients, integers that wrap around.

Labeled before lint saw them. A line with a pitfall ends in `# HIT rule`.
"""

import jax
import jax.numpy as jnp
import numpy as np


def entropy_of_a_certain_outcome():
    def entropy(p):
        return -jnp.sum(p * jnp.log(p))  # HIT nan-value

    return entropy, (jnp.array([0.0, 1.0]),)


def binary_cross_entropy_of_large_logits():
    def loss(z, y):
        p = jax.nn.sigmoid(z)
        return -jnp.mean(y * jnp.log(p) + (1 - y) * jnp.log(1 - p))  # HIT nan-value

    return loss, (jnp.array([100.0, -100.0]), jnp.array([1.0, 0.0]))


def eigenvalues_that_are_equal():
    def energies(h):
        return jnp.linalg.eigh(h)[1].sum()  # HIT nan-gradient

    return energies, (jnp.eye(3),)


def norm_of_nothing():
    def penalty(w, b):
        return jnp.sum(w * 2) + jnp.sqrt(jnp.sum(b**2))  # HIT nan-gradient

    return penalty, (jnp.ones(4), jnp.zeros(4))


def softmax_by_hand():
    def softmax(z):
        e = jnp.exp(z)  # HIT nan-value
        return e / e.sum()

    return softmax, (jnp.array([1000.0, 0.0]),)


def distances_with_themselves():
    def mean_distance(x):
        d2 = jnp.sum((x[:, None] - x[None]) ** 2, -1)
        return jnp.sqrt(d2).mean()  # HIT nan-gradient

    return mean_distance, (jnp.arange(6.0).reshape(3, 2),)


def deviation_of_a_constant():
    def spread(x):
        return jnp.std(x)  # HIT nan-gradient

    return spread, (jnp.full(5, 2.0),)


def logarithm_of_a_softmax():
    def nll(z):
        return -jnp.log(jax.nn.softmax(z))[1]  # HIT nan-value

    return nll, (jnp.array([500.0, 0.0, 0.0]),)


def angle_of_parallel_vectors():
    def angle(a, b):
        cosine = a @ b / (jnp.linalg.norm(a) * jnp.linalg.norm(b))
        return jnp.arccos(cosine)  # HIT nan-gradient

    return angle, (jnp.array([1.0, 0.0]), jnp.array([2.0, 0.0]))


def inverse_of_a_singular_matrix():
    def solve(a, b):
        return jnp.linalg.inv(a) @ b  # HIT nan-value

    return solve, (jnp.ones((2, 2)), jnp.ones(2))


def cholesky_of_an_indefinite_matrix():
    def log_det(k):
        factor = jnp.linalg.cholesky(k)  # HIT nan-value
        return 2 * jnp.log(jnp.diag(factor)).sum()

    return log_det, (jnp.array([[1.0, 2.0], [2.0, 1.0]]),)


def mean_over_an_empty_mask():
    def masked_mean(x, mask):
        return (x * mask).sum() / mask.sum()  # HIT nan-value

    return masked_mean, (jnp.ones(4), jnp.zeros(4))


def recurrence_that_explodes():
    def run(x):
        def step(carry, _):
            carry = carry * carry + 1.0  # HIT nan-value
            return carry, None

        return jax.lax.scan(step, x, None, length=20)[0]

    return run, (jnp.array(3.0),)


def half_precision_square():
    def energy(x):
        return (x * x).sum()  # HIT nan-value

    return energy, (jnp.array([300.0, 1.0], jnp.float16),)


def fully_masked_row():
    def attend(scores, mask):
        scores = jnp.where(mask, scores, -jnp.inf)
        return jax.nn.softmax(scores, axis=-1)  # HIT nan-value

    return attend, (jnp.ones((2, 3)), jnp.array([[True, True, False], [False, False, False]]))


def divergence_from_a_zero():
    def kl(p, q):
        return jnp.sum(p * (jnp.log(p) - jnp.log(q)))  # HIT nan-value

    return kl, (jnp.array([0.5, 0.5]), jnp.array([1.0, 0.0]))


def similarity_to_nothing():
    def cosine(a, b):
        return a @ b / (jnp.linalg.norm(a) * jnp.linalg.norm(b))  # HIT nan-value

    return cosine, (jnp.zeros(3), jnp.ones(3))


def whitening_without_epsilon():
    def normalize(x):
        mean, var = x.mean(0), x.var(0)
        return (x - mean) / jnp.sqrt(var)  # HIT nan-value

    return normalize, (jnp.array([[1.0, 2.0], [1.0, 4.0]]),)


def newton_that_divides_by_zero():
    def root(x):
        def turn(_, x):
            return x - (x**2 + 1) / (2 * x)  # HIT nan-value

        return jax.lax.fori_loop(0, 5, turn, x)

    return root, (jnp.array(0.0),)


def geometric_mean_with_a_zero():
    def geometric(x):
        return jnp.exp(jnp.log(x).mean())  # HIT nan-gradient

    return geometric, (jnp.array([0.0, 2.0]),)


def sinc_by_hand():
    def sinc(x):
        return jnp.where(x == 0, 1.0, jnp.sin(x) / x).sum()  # HIT nan-gradient

    return sinc, (jnp.array([0.0, 1.0]),)


def square_root_schedule():
    def scale(step):
        return 1.0 / jnp.sqrt(step)  # HIT nan-value

    return scale, (jnp.array(0.0),)


def smooth_l1_by_powers():
    def loss(w):
        return jnp.sum((w**2) ** 0.5)  # HIT nan-gradient

    return loss, (jnp.array([0.0, 1.0]),)


def poisson_of_an_empty_bin():
    def nll(rate, counts):
        return jnp.sum(rate - counts * jnp.log(rate))  # HIT nan-value

    return nll, (jnp.array([0.0, 2.0]), jnp.array([0.0, 1.0]))


def perplexity_of_a_long_text():
    def perplexity(losses):
        return jnp.exp(losses.sum())  # HIT nan-value

    return perplexity, (jnp.full(100, 2.0),)


def quaternion_of_no_rotation():
    def rotation(v):
        angle = jnp.linalg.norm(v)
        return jnp.sin(angle) * v / angle  # HIT nan-value

    return rotation, (jnp.zeros(3),)


def rounded_weights():
    def loss(w, x):
        return jnp.sum((jnp.round(w * 8) / 8) * x)  # HIT zero-gradient

    return loss, (jnp.ones(3), jnp.arange(3.0))


def weights_as_integers():
    def loss(w, x):
        q = (w * 127).astype(jnp.int32)  # HIT zero-gradient
        return jnp.sum(q * x)

    return loss, (jnp.ones(3), jnp.arange(3.0))


def accuracy_as_a_loss():
    def loss(w, x, y):
        return -jnp.mean(jnp.argmax(x @ w, -1) == y)  # HIT zero-gradient

    return loss, (jnp.ones((3, 2)), jnp.ones((4, 3)), jnp.zeros(4, jnp.int32))


def hard_threshold():
    def loss(w, x):
        gate = (x @ w > 0).astype(jnp.float32)  # HIT zero-gradient
        return jnp.mean((gate - 1) ** 2)

    return loss, (jnp.ones(3), jnp.ones((4, 3)))


def binarized_network():
    def loss(w, x):
        return jnp.mean((x @ jnp.sign(w)) ** 2)  # HIT zero-gradient

    return loss, (jnp.ones((3, 2)), jnp.ones((4, 3)))


def stopped_everywhere():
    def loss(w, x):
        target = jax.lax.stop_gradient(x @ w)  # HIT zero-gradient
        return jnp.mean(target**2)

    return loss, (jnp.ones(3), jnp.ones((4, 3)))


def floor_of_a_position():
    def sample(offset, image):
        at = jnp.floor(offset).astype(jnp.int32)  # HIT zero-gradient
        return image[at].sum()

    return sample, (jnp.array([0.5, 1.5]), jnp.arange(4.0))


def difference_of_images():
    def motion(a, b):
        return jnp.abs(a - b).mean()  # HIT integer-wrap

    return motion, (jnp.array([10, 20], jnp.uint8), jnp.array([20, 10], jnp.uint8))


def brighter_image():
    def brighten(image):
        return image + jnp.uint8(100)  # HIT integer-wrap

    return brighten, (jnp.array([200, 10], jnp.uint8),)


def index_before_the_first():
    def previous(i):
        return i - 1  # HIT integer-wrap

    return previous, (jnp.uint32(0),)


def product_of_sizes():
    def cells(shape):
        return shape[0] * shape[1]  # HIT integer-wrap

    return cells, (jnp.array([100_000, 100_000]),)


def sum_of_bytes_sent():
    def total(sizes):
        return jnp.sum(sizes)  # HIT integer-wrap

    return total, (jnp.full(3, 1_500_000_000),)


def factorials():
    def factorial(n):
        return jnp.cumprod(n)[-1]  # HIT integer-wrap

    return factorial, (jnp.arange(1, 16),)


def squares_of_indices():
    def squares(n):
        return n**2  # HIT integer-wrap

    return squares, (jnp.array([3, 70_000]),)


def smallest_byte():
    def magnitude(x):
        return -x  # HIT integer-wrap

    return magnitude, (jnp.array([-128, 5], jnp.int8),)


def negated_count():
    def signed(n):
        return -n  # HIT integer-wrap

    return signed, (jnp.array([3], jnp.uint32),)


def dot_of_bytes():
    def score(a, b):
        return jnp.dot(a, b)  # HIT integer-wrap

    return score, (jnp.full(8, 100, jnp.int8), jnp.full(8, 100, jnp.int8))


def milliseconds_of_a_day():
    def stamp(days):
        return days * 86_400_000  # HIT integer-wrap

    return stamp, (jnp.array([1, 40]),)


def counts_in_a_scan():
    def fibonacci(n):
        def step(carry, _):
            a, b = carry
            return (b, a + b), a  # HIT integer-wrap

        return jax.lax.scan(step, (n, n), None, length=60)[1]

    return fibonacci, (jnp.array(1),)


def class_beyond_the_last():
    def loss(logits, labels):
        targets = jax.nn.one_hot(labels, 3)  # HIT out-of-bounds
        return -(targets * jax.nn.log_softmax(logits)).sum()

    return loss, (jnp.ones((2, 3)), jnp.array([1, 3]))


def token_beyond_the_vocabulary():
    def embed(table, tokens):
        return table[tokens]  # HIT out-of-bounds

    return embed, (jnp.ones((10, 4)), np.array([1, 10]))


def segment_beyond_the_last():
    def pool(x, segments):
        return jax.ops.segment_sum(x, segments, num_segments=2)  # HIT out-of-bounds

    return pool, (jnp.ones(3), jnp.array([0, 1, 2]))


def scatter_beyond_the_end():
    def count(bins):
        return jnp.zeros(4).at[bins].add(1.0)  # HIT out-of-bounds

    return count, (jnp.array([0, 4]),)


def window_beyond_the_end():
    def window(x, start):
        return jax.lax.dynamic_slice(x, (start,), (3,))  # HIT out-of-bounds

    return window, (jnp.arange(5.0), 4)


def label_beyond_the_logits():
    def nll(logits, labels):
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()  # HIT out-of-bounds

    return nll, (jnp.ones((2, 3)), jnp.array([0, 5]))
