"""Samplers, solvers of differential equations, filters and optimisers, written as their libraries write them."""

import jax
import jax.numpy as jnp
import numpy as np
import optax


def hmc():
    """As numpyro's: a potential with its gradient, leapfrog steps, a Metropolis correction, in a scan."""

    def log_density(z, x, y):
        weights, scale = z["weights"], jnp.exp(z["log_scale"])
        logits = x @ weights
        prior = -0.5 * jnp.sum((weights / scale) ** 2) - weights.size * z["log_scale"] - 0.5 * z["log_scale"] ** 2
        return prior + jnp.sum(y * jax.nn.log_sigmoid(logits) + (1 - y) * jax.nn.log_sigmoid(-logits))

    def leapfrog(z, r, gradient, step_size, potential):
        r = jax.tree.map(lambda r, g: r - 0.5 * step_size * g, r, gradient)
        z = jax.tree.map(lambda z, r: z + step_size * r, z, r)
        energy, gradient = jax.value_and_grad(potential)(z)
        r = jax.tree.map(lambda r, g: r - 0.5 * step_size * g, r, gradient)
        return z, r, energy, gradient

    def kinetic(r):
        return 0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(r))

    def sample(key, z, x, y):
        def potential(z):
            return -log_density(z, x, y)

        def kernel(state, key):
            z, energy, gradient = state
            first, second = jax.random.split(key)
            r = {"weights": jax.random.normal(first, z["weights"].shape), "log_scale": jax.random.normal(first)}
            before = energy + kinetic(r)

            def step(_, carry):
                z, r, _, gradient = carry
                return leapfrog(z, r, gradient, 0.1, potential)

            new_z, new_r, new_energy, new_gradient = jax.lax.fori_loop(0, 5, step, (z, r, energy, gradient))
            accept = jnp.exp(jnp.minimum(0.0, before - new_energy - kinetic(new_r)))
            is_taken = jax.random.uniform(second) < accept
            old, new = (z, energy, gradient), (new_z, new_energy, new_gradient)
            state = jax.tree.map(lambda a, b: jnp.where(is_taken, b, a), old, new)
            return state, (state[0], accept)

        start = (z, *jax.value_and_grad(potential)(z))
        _, (samples, accepts) = jax.lax.scan(kernel, start, jax.random.split(key, 4))
        return jax.tree.map(lambda s: s.mean(0), samples), accepts.mean()

    z = {"weights": jnp.ones(3), "log_scale": jnp.array(0.1)}
    return sample, jax.random.key(0), z, jnp.ones((7, 3)), jnp.ones(7)


def runge_kutta():
    """A neural differential equation with fixed steps, and its gradient."""

    def field(params, t, y):
        hidden = jnp.tanh(params["in"] @ y + t * params["time"])
        return params["out"] @ hidden

    def step(params, t, y, dt):
        k1 = field(params, t, y)
        k2 = field(params, t + dt / 2, y + dt / 2 * k1)
        k3 = field(params, t + dt / 2, y + dt / 2 * k2)
        k4 = field(params, t + dt, y + dt * k3)
        return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def loss(params, y, target):
        ys, path = jax.lax.scan(lambda y, t: (step(params, t, y, 0.1),) * 2, y, jnp.arange(4) * 0.1)
        return jnp.mean((path - target) ** 2) + jnp.sum(ys)

    params = {"in": jnp.ones((6, 3)), "time": jnp.ones(6), "out": jnp.ones((3, 6))}
    return jax.value_and_grad(loss), params, jnp.ones(3), jnp.ones((4, 3))


_A = [[], [0.161], [-0.008480655, 0.335480655], [2.8971530, -6.3594484, 4.3622954]]
_A += [[5.3258648, -11.7488835, 7.4955393, -0.0924950], [5.8614554, -12.9209693, 8.1593678, -0.0715849, -0.0282690]]
_B = [0.0964607, 0.01, 0.4798896, 1.3790085, -3.2900695, 2.3247105]
_C = [0.0, 0.161, 0.327, 0.9, 0.9800255, 1.0]
_E = [-0.0017800, -0.0008164, 0.0078808, -0.1447110, 0.5823571, -0.4580821]


def tsit5():
    """As diffrax: Tsitouras' method with an adaptive step in a while loop."""

    def field(t, y, args):
        prey, predator = y
        a, b, c, d = args
        return jnp.stack([a * prey - b * prey * predator, -c * predator + d * prey * predator * jnp.cos(0.1 * t)])

    def solve(y, args):
        def keep_on(carry):
            return (carry[0] < 2.0) & (carry[3] < 50)

        def step(carry):
            t, dt, y, count = carry
            stages = []
            for a, c in zip(_A, _C, strict=True):
                increment = sum((w * k for w, k in zip(a, stages, strict=True)), jnp.zeros_like(y))
                stages.append(field(t + c * dt, y + dt * increment, args))
            new = y + dt * sum(w * k for w, k in zip(_B, stages, strict=True))
            error = dt * sum(w * k for w, k in zip(_E, stages, strict=True))
            scaled = jnp.sqrt(jnp.mean((error / (1e-6 + 1e-3 * jnp.maximum(jnp.abs(y), jnp.abs(new)))) ** 2))
            is_good = scaled < 1
            factor = jnp.clip(0.9 * scaled ** (-0.2), 0.2, 10.0)
            return jnp.where(is_good, t + dt, t), dt * factor, jnp.where(is_good, new, y), count + 1

        return jax.lax.while_loop(keep_on, step, (0.0, 0.1, y, 0))[2]

    return solve, jnp.array([10.0, 10.0]), (0.1, 0.02, 0.4, 0.02)


def adjoint():
    """A differential equation whose gradient is another one, by a custom rule."""

    @jax.custom_vjp
    def solve(y, params):
        return jax.lax.fori_loop(0, 5, lambda i, y: y + 0.1 * jnp.tanh(params @ y), y)

    def forward(y, params):
        end = solve(y, params)
        return end, (end, params)

    def backward(saved, ct):
        y, params = saved

        def step(i, carry):
            y, adjoint, gradient = carry
            value, pull = jax.vjp(lambda y, p: jnp.tanh(p @ y), y, params)
            dy, dp = pull(adjoint)
            return y - 0.1 * value, adjoint + 0.1 * dy, gradient + 0.1 * dp

        _, adjoint, gradient = jax.lax.fori_loop(0, 5, step, (y, ct, jnp.zeros_like(params)))
        return adjoint, gradient

    solve.defvjp(forward, backward)
    return jax.grad(lambda p, y: jnp.sum(solve(y, p) ** 2)), jnp.ones((4, 4)), jnp.ones(4)


def kalman():
    def step(carry, z):
        mean, covariance, transition, noise = carry
        mean, covariance = transition @ mean, transition @ covariance @ transition.T + noise
        s = covariance[:2, :2] + jnp.eye(2)
        gain = jnp.linalg.solve(s, covariance[:2]).T
        residual = z - mean[:2]
        log = -0.5 * (residual @ jnp.linalg.solve(s, residual) + jnp.linalg.slogdet(s)[1])
        mean, covariance = mean + gain @ residual, covariance - gain @ covariance[:2]
        return (mean, covariance, transition, noise), log

    def log_likelihood(noise, transition, observations):
        start = (jnp.zeros(4), jnp.eye(4), transition, noise)
        return jax.lax.scan(step, start, observations)[1].sum()

    return jax.value_and_grad(log_likelihood), jnp.eye(4), jnp.eye(4) * 1.1, jnp.ones((5, 2))


def particle_filter():
    def run(key, observations):
        def step(carry, z):
            particles, key = carry
            key, first, second = jax.random.split(key, 3)
            particles = 0.9 * particles + jax.random.normal(first, particles.shape)
            weights = jax.nn.softmax(-0.5 * (z - particles) ** 2)
            chosen = jnp.searchsorted(jnp.cumsum(weights), jax.random.uniform(second, particles.shape))
            return (particles[chosen], key), (weights * particles).sum()

        return jax.lax.scan(step, (jnp.zeros(16), key), observations)[1]

    return run, jax.random.key(0), jnp.ones(5)


def newton():
    """Root finding by Jacobians, and the gradient of a root by the implicit function theorem."""

    def equation(x, a):
        return jnp.stack([x[0] ** 2 + a * x[1] - 3.0, jnp.sin(x[0]) + x[1] ** 3 - a])

    def root(a):
        def step(x, _):
            return x - jnp.linalg.solve(jax.jacfwd(equation)(x, a), equation(x, a)), None

        x, _ = jax.lax.scan(step, jnp.ones(2), None, 4)
        x = jax.lax.stop_gradient(x)
        return x - jnp.linalg.solve(jax.jacrev(equation)(x, a), equation(x, a))

    return jax.jacfwd(root), 1.3


def lbfgs():
    optimizer = optax.lbfgs(memory_size=3)

    def rosenbrock(x):
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def run(x):
        evaluate = optax.value_and_grad_from_state(rosenbrock)

        def step(carry, _):
            x, state = carry
            value, gradient = evaluate(x, state=state)
            updates, state = optimizer.update(gradient, state, x, value=value, grad=gradient, value_fn=rosenbrock)
            return (optax.apply_updates(x, updates), state), value

        return jax.lax.scan(step, (x, optimizer.init(x)), None, 3)[1]

    return run, jnp.ones(5) * 0.3


def sinkhorn():
    def distance(x, y):
        cost = jnp.sum((x[:, None] - y) ** 2, -1)

        def step(carry, _):
            f, g = carry
            f = -0.1 * jax.nn.logsumexp((g - cost) / 0.1, 1)
            g = -0.1 * jax.nn.logsumexp((f[:, None] - cost) / 0.1, 0)
            return (f, g), None

        (f, g), _ = jax.lax.scan(step, (jnp.zeros(len(x)), jnp.zeros(len(y))), None, 5)
        return jnp.sum(f) + jnp.sum(g)

    return jax.value_and_grad(distance), jnp.ones((6, 2)), jnp.ones((7, 2))


def vae():
    def loss(params, key, x):
        hidden = jnp.tanh(x @ params["encode"])
        mean, log_variance = jnp.split(hidden @ params["latent"], 2, -1)
        z = mean + jnp.exp(0.5 * log_variance) * jax.random.normal(key, mean.shape)
        logits = jax.nn.softplus(z @ params["decode"]) @ params["out"]
        likelihood = -optax.sigmoid_binary_cross_entropy(logits, x).sum(-1)
        divergence = -0.5 * jnp.sum(1 + log_variance - mean**2 - jnp.exp(log_variance), -1)
        return jnp.mean(divergence - likelihood)

    def step(params, state, key, x):
        value, grads = jax.value_and_grad(loss)(params, key, x)
        updates, state = optax.adamw(1e-3).update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    sizes = {"encode": (8, 12), "latent": (12, 6), "decode": (3, 12), "out": (12, 8)}
    params = {name: jnp.asarray(np.full(size, 0.1, np.float32)) for name, size in sizes.items()}
    return step, params, optax.adamw(1e-3).init(params), jax.random.key(0), jnp.ones((5, 8))
