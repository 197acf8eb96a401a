"""Programs of the libraries' own examples, retold after the links were written: what nobody had looked at."""

from functools import partial

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax


def score_mixer():
    """As equinox's score-based diffusion: a mixer of patches, with the weighted denoising loss and Adabelief."""

    class Block(eqx.Module):
        patches: eqx.nn.MLP
        channels: eqx.nn.MLP
        first: eqx.nn.LayerNorm
        second: eqx.nn.LayerNorm

        def __init__(self, patches, channels, key):
            one, two = jax.random.split(key)
            self.patches = eqx.nn.MLP(patches, patches, 10, 1, key=one)
            self.channels = eqx.nn.MLP(channels, channels, 14, 1, key=two)
            self.first, self.second = eqx.nn.LayerNorm((channels, patches)), eqx.nn.LayerNorm((patches, channels))

        def __call__(self, y):
            y = y + jax.vmap(self.patches)(self.first(y))
            y = y.T
            y = y + jax.vmap(self.channels)(self.second(y))
            return y.T

    class Mixer(eqx.Module):
        into: eqx.nn.Conv2d
        out: eqx.nn.ConvTranspose2d
        blocks: list

        def __init__(self, key):
            one, two, *rest = jax.random.split(key, 4)
            self.into = eqx.nn.Conv2d(2, 6, 4, stride=4, key=one)
            self.out = eqx.nn.ConvTranspose2d(6, 1, 4, stride=4, key=two)
            self.blocks = [Block(4, 6, each) for each in rest]

        def __call__(self, t, image):
            y = self.into(jnp.concatenate([image, jnp.broadcast_to(t / 10.0, (1, 8, 8))]))
            shape = y.shape
            y = y.reshape(shape[0], -1)
            for block in self.blocks:
                y = block(y)
            return self.out(y.reshape(shape))

    def loss(model, image, t, key):
        mean, std = image * jnp.exp(-0.5 * t), jnp.sqrt(jnp.maximum(1 - jnp.exp(-t), 1e-5))
        noise = jax.random.normal(key, image.shape)
        return (1 - jnp.exp(-t)) * jnp.mean((model(t, mean + std * noise) + noise / std) ** 2)

    model = Mixer(jax.random.key(0))
    params, static = eqx.partition(model, eqx.is_inexact_array)
    optimizer = optax.adabelief(3e-4)

    def step(params, state, images, key):
        def batch_loss(params):
            when, noise = jax.random.split(key)
            t = jax.random.uniform(when, (len(images),), maxval=10.0 / len(images))
            t = t + (10.0 / len(images)) * jnp.arange(len(images))
            keys = jax.random.split(noise, len(images))
            return jnp.mean(jax.vmap(lambda i, t, k: loss(eqx.combine(params, static), i, t, k))(images, t, keys))

        value, grads = jax.value_and_grad(batch_loss)(params)
        updates, state = optimizer.update(grads, state)
        return value, eqx.apply_updates(params, updates), state

    return step, params, optimizer.init(params), jnp.ones((3, 1, 8, 8)), jax.random.key(1)


def adversarial_training():
    """As optax's: projected gradient ascent on the images, then a step on what they became."""

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Conv(4, (5, 5), strides=(2, 2))(x))
            return nn.Dense(6)(nn.relu(nn.Dense(12)(x.reshape(len(x), -1))))

    net, optimizer = Net(), optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))

    def loss(params, images, labels, weight):
        logits = net.apply(params, images)
        decay = 0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))
        wanted = jax.nn.one_hot(labels, logits.shape[-1])
        return optax.softmax_cross_entropy(logits, wanted).mean() + weight * decay

    def attack(params, images, labels, epsilon=0.1, steps=5):
        low, high = images - epsilon, images + epsilon

        def ascend(_, adversary):
            gradient = jax.grad(loss, 1)(params, adversary, labels, 0.0)
            return jnp.clip(adversary + epsilon / steps * jnp.sign(gradient), low, high)

        return lax.fori_loop(0, steps, ascend, images)

    def step(params, state, images, labels):
        adversaries = lax.stop_gradient(attack(params, images, labels))
        grads = jax.grad(loss)(params, adversaries, labels, 1e-4)
        updates, state = optimizer.update(grads, state)
        params = optax.apply_updates(params, updates)
        correct = jnp.mean(net.apply(params, adversaries).argmax(1) == labels)
        return params, state, correct

    params = net.init(jax.random.key(0), jnp.ones((1, 10, 10, 1)))
    return step, params, optimizer.init(params), jnp.ones((5, 10, 10, 1)), jnp.arange(5)


def private_gradients():
    """As optax's differentially private SGD: a gradient for each example, clipped, summed and blurred."""

    def predict(params, x):
        for w, b in params[:-1]:
            x = jax.nn.elu(x @ w + b)
        return x @ params[-1][0] + params[-1][1]

    def loss(params, x, label):
        return -jax.nn.log_softmax(predict(params, x))[label]

    optimizer = optax.contrib.differentially_private_aggregate(1.0, 1.1, 0)

    def step(params, state, images, labels):
        grads = jax.vmap(jax.grad(loss), (None, 0, 0))(params, images, labels)
        updates, state = optimizer.update(grads, state, params)
        return jax.tree.map(lambda p, u: p - 0.15 * u, params, updates), state

    sizes = [(12, 9), (9, 7), (7, 4)]
    params = [(jnp.ones(size) * 0.1, jnp.zeros(size[1])) for size in sizes]
    return step, params, optimizer.init(params), jnp.ones((6, 12)), jnp.arange(6) % 4


def variational_inference():
    """As JAX's autobatching notebook: ADVI for a logistic regression, all samples at once, in a loop of steps."""
    inputs = jnp.asarray(np.random.default_rng(0).normal(size=(11, 4)), jnp.float32)
    labels = jnp.arange(11) % 2 == 0

    def log_joint(beta):
        prior = jnp.sum(jax.scipy.stats.norm.logpdf(beta, loc=0.0, scale=1.0))
        return prior + jnp.sum(-jnp.log(1 + jnp.exp(-(2 * labels - 1) * (inputs @ beta))))

    def elbo(location, log_scale, key):
        beta = location + jnp.exp(log_scale) * jax.random.normal(key, location.shape)
        return log_joint(beta) + jnp.sum(log_scale - 0.5 * np.log(2 * np.pi))

    def fit(location, log_scale, key):
        def batched(location, log_scale, keys):
            return jnp.mean(jax.vmap(elbo, (None, None, 0))(location, log_scale, keys))

        def step(state, key):
            value, (g, h) = jax.value_and_grad(batched, (0, 1))(*state, jax.random.split(key, 5))
            return (state[0] + 0.01 * g, state[1] + 0.01 * h), value

        return lax.scan(step, (location, log_scale), jax.random.split(key, 7))

    return fit, jnp.zeros(4), jnp.full(4, -1.0), jax.random.key(2)


def implicit_fixed_point():
    """As in JAX's documentation of custom derivatives: a fixed point, differentiated through the equation it solves."""

    def iterate(f, a, guess):
        def proceeds(carry):
            previous, x = carry
            return jnp.max(jnp.abs(previous - x)) > 1e-6

        return lax.while_loop(proceeds, lambda carry: (carry[1], f(a, carry[1])), (guess, f(a, guess)))[1]

    @partial(jax.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, guess):
        return iterate(f, a, guess)

    def forward(f, a, guess):
        x = fixed_point(f, a, guess)
        return x, (a, x)

    def backward(f, kept, bar):
        a, x = kept
        of_a, of_x = jax.vjp(lambda a: f(a, x), a)[1], jax.vjp(lambda x: f(a, x), x)[1]
        (grad,) = of_a(iterate(lambda bar, u: bar + of_x(u)[0], bar, bar))
        return grad, jnp.zeros_like(x)

    fixed_point.defvjp(forward, backward)

    def equilibrium(w, x):
        z = fixed_point(lambda given, z: jnp.tanh(given[0] @ z + given[1]), (w, x), jnp.zeros_like(x))
        return jnp.sum(z**2) + jnp.sum(fixed_point(lambda a, x: 0.5 * (x + a / x), jnp.abs(x) + 1, jnp.abs(x) + 1))

    return jax.value_and_grad(equilibrium, (0, 1)), jnp.eye(5) * 0.3, jnp.linspace(-1, 1, 5)


def graph_network():
    """As flax's for molecules: messages along edges, summed at nodes, with dropout, layer norm and a masked loss."""

    class Network(nn.Module):
        @nn.compact
        def __call__(self, nodes, edges, senders, receivers, graph):
            nodes, edges = nn.Dense(8)(nodes), nn.Dense(8)(edges)
            for _ in range(2):
                given = jnp.concatenate([edges, nodes[senders], nodes[receivers]], axis=1)
                edges = edges + nn.relu(nn.LayerNorm()(nn.Dense(8)(given)))
                sent = jax.ops.segment_sum(edges, senders, len(nodes))
                received = jax.ops.segment_sum(edges, receivers, len(nodes))
                nodes = nodes + nn.relu(nn.LayerNorm()(nn.Dense(8)(jnp.concatenate([nodes, sent, received], axis=1))))
            counts = jax.ops.segment_sum(jnp.ones(len(nodes)), graph, 3)
            return nn.Dense(4)(jax.ops.segment_sum(nodes, graph, 3) / jnp.maximum(counts, 1)[:, None])

    net = Network()

    def loss(params, nodes, edges, senders, receivers, graph, labels):
        logits = net.apply(params, nodes, edges, senders, receivers, graph)
        mask = ~jnp.isnan(labels)
        safe = jnp.where(mask, labels, -1.0)
        losses = jnp.maximum(logits, 0) - logits * safe + jnp.log1p(jnp.exp(-jnp.abs(logits)))
        return jnp.sum(jnp.where(mask, losses, 0)) / jnp.sum(mask)

    rng = np.random.default_rng(1)
    args = (
        jnp.ones((9, 5)),
        jnp.ones((14, 3)),
        jnp.asarray(rng.integers(0, 9, 14)),
        jnp.asarray(rng.integers(0, 9, 14)),
        jnp.sort(jnp.asarray(rng.integers(0, 3, 9))),
    )
    return jax.value_and_grad(loss), net.init(jax.random.key(0), *args), *args, jnp.ones((3, 4)).at[0, 1].set(jnp.nan)


def policy_optimization():
    """As flax's PPO: advantages by a scan from behind, the clipped loss of actor and critic, minibatches in a scan."""

    class ActorCritic(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Dense(16, name="hidden")(nn.relu(nn.Conv(4, (3, 3), strides=(2, 2))(x)).reshape(len(x), -1)))
            return nn.log_softmax(nn.Dense(3, name="logits")(x)), nn.Dense(1, name="value")(x)

    net, optimizer = ActorCritic(), optax.adam(2.5e-4)

    def advantages(rewards, alive, values):
        def back(advantage, given):
            reward, alive, value, after = given
            delta = reward + 0.99 * after * alive - value
            advantage = delta + 0.99 * 0.95 * alive * advantage
            return advantage, advantage

        _, result = lax.scan(back, jnp.zeros_like(values[-1]), (rewards, alive, values[:-1], values[1:]), reverse=True)
        return result

    def loss(params, states, actions, old, returns, gained):
        log_probs, values = net.apply(params, states)
        probs = jnp.exp(log_probs)
        value_loss = jnp.mean(jnp.square(returns - values[:, 0]))
        entropy = jnp.sum(-probs * log_probs, axis=1).mean()
        taken = jax.vmap(lambda row, action: row[action])(log_probs, actions)
        ratios = jnp.exp(taken - old)
        gained = (gained - gained.mean()) / (gained.std() + 1e-8)
        policy_loss = -jnp.mean(jnp.minimum(ratios * gained, gained * lax.clamp(0.9, ratios, 1.1)))
        return policy_loss + 0.5 * value_loss - 0.01 * entropy

    def update(params, state, images, actions, old, rewards, alive, values):
        gained = advantages(rewards, alive, values)
        flat = [images.reshape(-1, *images.shape[2:])]
        flat += [each.reshape(-1) for each in (actions, old, gained + values[:-1], gained)]

        def minibatch(carry, batch):
            params, state = carry
            value, grads = jax.value_and_grad(loss)(params, *batch)
            updates, state = optimizer.update(grads, state)
            return (optax.apply_updates(params, updates), state), value

        batches = [each.reshape(3, -1, *each.shape[1:]) for each in flat]
        return lax.scan(minibatch, (params, state), tuple(batches))

    params = net.init(jax.random.key(0), jnp.ones((1, 6, 6, 2)))
    steps = (4, 3)
    return (
        *(update, params, optimizer.init(params), jnp.ones((*steps, 6, 6, 2)), jnp.ones(steps, jnp.int32)),
        *(jnp.full(steps, -1.1), jnp.ones(steps), jnp.ones(steps), jnp.ones((5, 3))),
    )


def sequence_to_sequence():
    """As flax's: an LSTM reads, another writes with what it said last, until the end token; a masked loss."""

    class Writer(nn.Module):
        @nn.compact
        def __call__(self, carry, x):
            state, last = carry
            state, y = nn.OptimizedLSTMCell(12)(state, jnp.where(x[:, :1] < 0, last, x))
            logits = nn.Dense(7)(y)
            said = jax.nn.one_hot(jax.random.categorical(self.make_rng("lstm"), logits), 7)
            return (state, said), (logits, said)

    class Both(nn.Module):
        @nn.compact
        def __call__(self, read, given, lengths):
            state, _ = nn.RNN(nn.OptimizedLSTMCell(12), return_carry=True)(read, seq_lengths=lengths)
            writer = nn.scan(
                Writer, variable_broadcast="params", in_axes=1, out_axes=1, split_rngs={"params": False, "lstm": True}
            )
            _, (logits, said) = writer()((state, given[:, 0]), given)
            return logits, said

    net = Both()

    def loss(params, read, wanted, lengths, key):
        logits, _ = net.apply(params, read, wanted[:, :-1], lengths, rngs={"lstm": key})
        entropy = -jnp.sum(nn.log_softmax(logits) * wanted[:, 1:], axis=-1)
        mask = jnp.arange(entropy.shape[1]) < lengths[:, None]
        return jnp.mean(jnp.where(mask, entropy, 0))

    def step(params, read, wanted, lengths, key):
        value, grads = jax.value_and_grad(loss)(params, read, wanted, lengths, key)
        return value, jax.tree.map(lambda p, g: p - 0.003 * g, params, grads)

    read, wanted, lengths, key = jnp.ones((2, 5, 7)), jnp.ones((2, 6, 7)), jnp.asarray([3, 5]), jax.random.key(3)
    params = net.init({"params": key, "lstm": key}, read, wanted[:, :-1], lengths)
    return step, params, read, wanted, lengths, key
