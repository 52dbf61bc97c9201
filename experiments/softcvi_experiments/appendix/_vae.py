"""Variational autoencoders by the ELBO and by SoftCVI with the model term."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from softcvi.fitting import AbstractReporter, FitResult, fit
from softcvi.objectives import WithModelTerm
from softcvi.sweeps import RecordStore
from softcvi.targets import AmortisedTarget
from softcvi_experiments._figures import save_figure
from softcvi_experiments._methods import get_objective
from softcvi_experiments._reproduce import Reproduction
from softcvi_experiments.appendix._images import Images, load_images
from softcvi_experiments.appendix._vae_figure import vae_figure
from softcvi_experiments.appendix._vae_model import (
    Decoder,
    Encoder,
    bounds,
    decoded_grid,
)
from softcvi_experiments.figures import METHOD_LABELS
from softcvi_experiments.tables import markdown_table

VAE_METHODS = ("elbo", "softcvi-0", "softcvi-0.75", "softcvi-1")
Record = dict[str, Any]
_LATENTS = 2


@dataclass(frozen=True)
class VaeSettings:
    """What an autoencoder is trained with; the paper's settings by default.

    Args:
        images: ``"digits"`` or ``"mnist"``.
        batch_size: Images per step; labels are normalised per image.
        steps: Optimisation steps.
        num_particles: K, latents of each image per step.
        rate: Adam's rate.
        hidden: Sizes of the encoder's hidden layers; the decoder mirrors them.
        bound_draws: Draws of each test image for the bounds.
        seed: Seed of start values and fit.

    Example:
        >>> VaeSettings(batch_size=32).label
        'digits_batch32'
    """

    images: str = "digits"
    batch_size: int = 1
    steps: int = 100_000
    num_particles: int = 8
    rate: float = 2e-4
    hidden: tuple[int, ...] = (500, 250)
    bound_draws: int = 500
    seed: int = 0

    @property
    def label(self) -> str:
        """Part of the names of files."""
        return f"{self.images}_batch{self.batch_size}"


def fit_vae(
    method: str,
    images: Images,
    settings: VaeSettings,
    progress: bool | AbstractReporter = True,
) -> FitResult:
    """Train encoder, decoder and prior together.

    Args:
        method: The method's name.
        images: The images.
        settings: What to train with.
        progress: Show a bar.

    Example:
        >>> settings = VaeSettings(steps=2, hidden=(8,))
        >>> fit_vae("softcvi-1", load_images("digits"), settings, False).status
        'finished'
    """
    encoder_key, decoder_key, fit_key = jr.split(jr.key(settings.seed), 3)
    sizes = [images.train.shape[1], *settings.hidden, _LATENTS]
    target = AmortisedTarget(
        Decoder(decoder_key, sizes[::-1]),
        like=jnp.zeros(_LATENTS),
        data=jnp.asarray(images.train),
        batch_size=settings.batch_size,
    )
    return fit(
        fit_key,
        target,
        Encoder(encoder_key, sizes),
        objective=WithModelTerm(get_objective(method, settings.num_particles)),
        steps=settings.steps,
        optimizer=optax.adam(settings.rate),
        start=None,
        progress=progress,
    )


def reproduce_vae(
    out: str | Path,
    *,
    methods: Sequence[str] = VAE_METHODS,
    settings: VaeSettings | None = None,
    data_dir: str | Path | None = None,
    progress: bool | AbstractReporter = True,
    say: Callable[[str], None] = lambda line: None,
) -> Reproduction:
    """Train an autoencoder with each method; draw manifolds and embeddings.

    Writes ``records.jsonl``, and for each set of images and batch size a table of
    bounds, a figure and what it shows as ``.npz``. Finished fits are not repeated.

    Args:
        out: Output folder.
        methods: Method names.
        settings: What to train with.
        data_dir: Folder with MNIST's files; downloaded if not given.
        progress: Show bars.
        say: Told a line on each finished fit.

    Example:
        >>> import tempfile
        >>> settings = VaeSettings(steps=2, hidden=(8,), bound_draws=2)
        >>> result = reproduce_vae(
        ...     tempfile.mkdtemp(), methods=["elbo"], settings=settings, progress=False
        ... )
        >>> result.files[1].name
        'vae_digits_batch1.md'
    """
    settings = VaeSettings() if settings is None else settings
    images = load_images(settings.images, data_dir)
    records = RecordStore(out)
    rows, pictures = [], {}
    for method in methods:
        identity = {
            "experiment": "vae",
            "method": method,
            **asdict(settings),
            "hidden": list(settings.hidden),
            "run": settings.seed,
        }
        store = records.folder / f"vae_{settings.label}_{method}.npz"
        if not records.find(identity) or not store.is_file():
            record, picture = _train(method, images, settings, progress)
            np.savez_compressed(store, allow_pickle=False, **picture)
            if not records.find(identity):
                records.add([{**identity, **record}])
        rows += records.find(identity)
        with np.load(store) as stored:
            pictures[method] = dict(stored)
        say(f"{settings.label}, {method}: IWAE bound {rows[-1]['test_iwae']:.2f}")
    table = vae_table(rows)
    path = records.folder / f"vae_{settings.label}.md"
    path.write_text(table + "\n")
    figure = save_figure(vae_figure(pictures), out, f"vae_{settings.label}")
    return Reproduction(rows, table, [records.path, path, *figure])


def _train(
    method: str,
    images: Images,
    settings: VaeSettings,
    progress: bool | AbstractReporter,
) -> tuple[Record, dict[str, np.ndarray]]:
    result = fit_vae(method, images, settings, progress)
    if result.status == "interrupted":
        raise KeyboardInterrupt
    encoder = result.posterior.guide
    decoder = result.posterior.target.log_prob  # type: ignore[union-attr]
    test = jnp.asarray(images.test)
    elbo, iwae = bounds(
        jr.key(settings.seed + 1), encoder, decoder, test, settings.bound_draws
    )
    device = jax.devices()[0]
    record = {
        "test_elbo": round(float(elbo), 4),
        "test_iwae": round(float(iwae), 4),
        "prior_loc": [round(float(v), 4) for v in decoder.prior_loc],
        "prior_scale": [round(float(v), 4) for v in decoder.prior_scale],
        "label_ess": round(result.history.last()["label_ess"], 4),
        "seconds_compile": round(result.seconds_compile, 3),
        "seconds_run": round(result.seconds_run, 3),
        "device": f"{device.platform} {device.device_kind}",
        "status": result.status,
    }
    grid = np.asarray(decoded_grid(decoder))
    means = np.asarray(jax.vmap(lambda image: encoder.moments(image)[0])(test))
    picture = {
        "grid": np.round(255 * grid).astype(np.uint8),
        "means": means.astype(np.float16),
        "labels": images.test_labels.astype(np.uint8),
    }
    return record, picture


def vae_table(records: Sequence[Record]) -> str:
    """Bounds on the test images, by method.

    Args:
        records: Records of fits.

    Example:
        >>> vae_table([]).splitlines()[0][:8]
        '| method'
    """
    header = ["method", "images", "batch", "steps", "test ELBO", "test IWAE", "gap"]
    lines = [
        [
            METHOD_LABELS[record["method"]],
            record["images"],
            str(record["batch_size"]),
            str(record["steps"]),
            f"{record['test_elbo']:.2f}",
            f"{record['test_iwae']:.2f}",
            f"{record['test_iwae'] - record['test_elbo']:.2f}",
        ]
        for record in records
    ]
    return markdown_table(header, lines)
