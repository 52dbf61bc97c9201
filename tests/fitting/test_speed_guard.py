"""Guards of what makes a step fast: ratios, and equality with the plain version."""

from time import perf_counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi._compile import fused
from softcvi.fitting import paper_optimizer
from softcvi.guides import SplineFlow, mean_field

DRAWS = {
    "bits": lambda key: jax.random.bits(key, (3, 5)),
    "bytes": lambda key: jax.random.bits(key, (7,), "uint8"),
    "uniform": lambda key: jax.random.uniform(key, (2, 3, 4)),
    "normal": lambda key: jax.random.normal(key, (33,)),
    "split": lambda key: jax.vmap(jax.random.normal)(jax.random.split(key, 6)),
    "fold in": lambda key: jax.random.normal(jax.random.fold_in(key, 77), (3,)),
}


@pytest.mark.parametrize("double", [False, True])
def test_fused_random_numbers_are_those_of_jax_bit_for_bit(double):
    with jax.enable_x64(double):
        key = jax.random.fold_in(jax.random.key(3), 2**31)
        ours = jax.jit(lambda: {n: draw(fused(key)) for n, draw in DRAWS.items()})()
        theirs = jax.jit(lambda: {n: draw(key) for n, draw in DRAWS.items()})()
    for name in DRAWS:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def plain_spline(raw, low, high):
    """Knots and derivatives of a monotone rational quadratic spline, by the book."""
    bins = (raw.size - 1) // 3

    def edges(logits):
        shares = 1e-3 + (1 - 1e-3 * bins) * jax.nn.softmax(logits)
        inner = low + (high - low) * jnp.cumsum(shares)
        return jnp.concatenate([jnp.array([low]), inner])

    offset = np.log(np.expm1(1 - 1e-3))
    slopes = 1e-3 + jax.nn.softplus(raw[2 * bins :] + offset)
    return edges(raw[:bins]), edges(raw[bins : 2 * bins]), slopes


def plain_forward(raw, x, low, high):
    xs, ys, slopes = plain_spline(raw, low, high)
    k = jnp.clip(jnp.searchsorted(xs, x, side="right") - 1, 0, xs.size - 2)
    width, height = xs[k + 1] - xs[k], ys[k + 1] - ys[k]
    s, t = height / width, (x - xs[k]) / width
    den = s + (slopes[k + 1] + slopes[k] - 2 * s) * t * (1 - t)
    y = ys[k] + height * (s * t**2 + slopes[k] * t * (1 - t)) / den
    top = slopes[k + 1] * t**2 + 2 * s * t * (1 - t) + slopes[k] * (1 - t) ** 2
    return y, jnp.log(s**2 * top / den**2)


def plain_inverse(raw, y, low, high):
    """Bisection finds the place, one Newton step gives it its derivatives."""
    fixed, goal = jax.lax.stop_gradient((raw, y))

    def halve(_, ends):
        middle = ends.mean()
        above = plain_forward(fixed, middle, low, high)[0] > goal
        return jnp.where(above, ends.at[1].set(middle), ends.at[0].set(middle))

    start = jax.lax.fori_loop(0, 60, halve, jnp.array([low, high])).mean()
    value, log_slope = plain_forward(raw, start, low, high)
    x = start + (y - value) / jnp.exp(jax.lax.stop_gradient(log_slope))
    return x, plain_forward(raw, x, low, high)[1]


def plain_raw(flow, layer, x, i):
    """Spline parameters of dimension i: the whole masked network, for it alone."""
    (dim,), order = flow.shape, flow.orders[layer]
    rank = {d: order.index(d) for d in range(dim)}
    units = np.arange(flow.b_in[layer].size) % max(dim - 1, 1)
    see = np.array([[unit >= rank[d] for d in range(dim)] for unit in units])
    hidden = jax.nn.relu((flow.w_in[layer] * see) @ jnp.arcsinh(x) + flow.b_in[layer])
    used = jnp.where(rank[i] > units, hidden, 0.0)
    return flow.w_out[layer][i] @ used + flow.b_out[layer][i]


def plain_log_prob(flow, x):
    total = 0.0
    for layer in range(len(flow.orders)):
        raws = jnp.stack([plain_raw(flow, layer, x, i) for i in range(x.size)])
        spline = jax.vmap(lambda raw, value: plain_forward(raw, value, *flow.interval))
        shift, log_scale = raws[:, -2], 6 * jnp.tanh(raws[:, -1] / 6)
        x, log_slopes = spline(raws[:, :-2], (x - shift) / jnp.exp(log_scale))
        total = total + jnp.sum(log_slopes - log_scale)
    return total + jnp.sum(jax.scipy.stats.norm.logpdf(x))


def plain_draw(flow, z):
    for layer in reversed(range(len(flow.orders))):
        x = jnp.zeros_like(z)
        for i in flow.orders[layer]:
            raw = plain_raw(flow, layer, x, i)
            inner = plain_inverse(raw[:-2], z[i], *flow.interval)[0]
            x = x.at[i].set(raw[-2] + jnp.exp(6 * jnp.tanh(raw[-1] / 6)) * inner)
        z = x
    return z


@pytest.fixture(scope="module")
def flow():
    with jax.enable_x64(True):
        yield SplineFlow(
            3, key=jax.random.key(0), layers=2, width=6, knots=3, init_scale=2
        )


@pytest.mark.slow
def test_gradients_of_the_fast_flow_are_those_of_the_plain_one(flow):
    """In float64: of a density, of a draw, and of the density of that draw."""
    x, weights = np.array([0.4, -1.3, 2.1]), np.array([1.0, -2.0, 0.5])
    key = jax.random.key(1)

    def ours(flow):
        draw, log_prob = flow._sample_and_log_prob(key)
        return jnp.sum(weights * draw) + 3 * log_prob + 7 * flow._log_prob(x)

    def plain(flow):
        draw = plain_draw(flow, jax.random.normal(key, (3,)))
        log_prob = plain_log_prob(flow, draw)
        return jnp.sum(weights * draw) + 3 * log_prob + 7 * plain_log_prob(flow, x)

    with jax.enable_x64(True):
        found, expected = (
            eqx.filter_jit(eqx.filter_value_and_grad(function))(flow)
            for function in (ours, plain)
        )
    for a, b in zip(*map(jax.tree_util.tree_leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_a_step_costs_a_small_multiple_of_its_draws():
    """A loop on the host would be a hundred times an empty scan, not twenty."""
    dim, num_particles, steps = 50, 8, 4_000
    x = jax.random.normal(jax.random.key(0), (200, dim))
    target = softcvi.DensityTarget(
        lambda beta: -0.5 * jnp.sum(beta**2) - 0.5 * jnp.sum((x @ beta) ** 2),
        jnp.zeros(dim),
    )
    guide = mean_field(target)

    def fit():
        return softcvi.fit(
            jax.random.key(0),
            target,
            guide,
            objective=softcvi.SoftCVI(num_particles),
            steps=steps,
            optimizer=paper_optimizer(1e-3),
            start=None,
            progress=False,
        ).seconds_run

    @jax.jit
    def draws_only(key):
        def body(total, key):
            return total + jax.random.normal(key, (num_particles, dim)), None

        start = jnp.zeros((num_particles, dim))
        return jax.lax.scan(body, start, jax.random.split(key, steps))[0]

    def empty():
        began = perf_counter()
        draws_only(jax.random.key(0)).block_until_ready()
        return perf_counter() - began

    empty()
    # The best of several: other work on the machine only ever adds.
    pairs = [(fit(), empty()) for _ in range(5)]
    ours, least = (min(times) for times in zip(*pairs, strict=True))
    assert ours < 20 * least
