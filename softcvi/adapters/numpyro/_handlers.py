"""Effect handlers of our own, in the manner of NumPyro's."""

from collections.abc import Callable

import jax.numpy as jnp

from softcvi.adapters._extras import require
from softcvi.adapters.numpyro._call import draw_improper


def as_it_is(model: Callable) -> Callable:
    """The handler that does nothing."""
    return model


def drawn_if_improper(model: Callable) -> Callable:
    """Sites with improper priors take uniform values in the unconstrained space."""
    numpyro = require("numpyro", "numpyro")
    return numpyro.handlers.substitute(model, substitute_fn=draw_improper)


def whole_plates(model: Callable) -> Callable:
    """No plate subsamples."""
    numpyro = require("numpyro", "numpyro")

    class WholePlates(numpyro.primitives.Messenger):
        def process_message(self, msg):
            if msg["type"] == "plate":
                size = msg["args"][0]
                msg["args"] = (size, size)
                msg["value"] = jnp.arange(size)

    return WholePlates(model)


def with_plates_of(model: Callable, whole: int, count: int) -> Callable:
    """Plates over all rows hold some of them alone, each counted once.

    Args:
        model: The model.
        whole: How many rows there are.
        count: How many there are to be.
    """
    numpyro = require("numpyro", "numpyro")

    class Plates(numpyro.primitives.Messenger):
        def process_message(self, msg):
            if msg["type"] == "plate" and msg["args"][0] == whole != count:
                msg["args"] = (whole, count)
                msg["value"] = jnp.arange(count)
                self.shrunk.add(msg["name"])
            elif msg["type"] == "sample":
                frames = {frame.name for frame in msg["cond_indep_stack"]}
                if frames & self.shrunk and msg["scale"] is not None:
                    # Which NumPyro has scaled as a mini-batch.
                    msg["scale"] = msg["scale"] * (count / whole)

    def run(*args, **kwargs):
        plates = Plates(model)
        plates.shrunk = set()
        return plates(*args, **kwargs)

    return run


def forward_scans(model: Callable) -> Callable:
    """Refuses ``scan`` from last to first, whose steps NumPyro counts the other way."""
    numpyro = require("numpyro", "numpyro")

    class ForwardScans(numpyro.primitives.Messenger):
        def process_message(self, msg):
            # f, init, xs, length, reverse
            if msg["type"] == "control_flow" and msg["args"][4:5] == (True,):
                raise NotImplementedError("it lies inside a scan from last to first")

    return ForwardScans(model)


def redrawn(model: Callable) -> Callable:
    """Observed sites are drawn, in the shape of their data."""
    numpyro = require("numpyro", "numpyro")

    class Redraw(numpyro.primitives.Messenger):
        def process_message(self, msg):
            if msg["type"] != "sample" or not msg["is_observed"]:
                return
            fn = msg["fn"]
            if isinstance(fn, numpyro.distributions.Unit):
                return
            shape = jnp.shape(msg["value"])
            shape = shape[: len(shape) - len(fn.event_shape)]
            msg["fn"] = fn.expand(jnp.broadcast_shapes(fn.batch_shape, shape))
            msg["value"], msg["is_observed"] = None, False

    return Redraw(model)
