"""What the autoencoders' figure and table must show."""

import gzip

import numpy as np
import pytest
from softcvi_experiments.appendix import VaeSettings, load_images, reproduce_vae

pytestmark = pytest.mark.slow

SETTINGS = VaeSettings(
    steps=1_200, batch_size=16, rate=2e-3, hidden=(64, 32), bound_draws=50
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("vae")


@pytest.fixture(scope="module")
def result(folder):
    return reproduce_vae(
        folder, methods=["elbo", "softcvi-0.75"], settings=SETTINGS, progress=False
    )


def _picture(folder, method):
    with np.load(folder / f"vae_digits_batch16_{method}.npz") as stored:
        return dict(stored)


@pytest.mark.parametrize("method", ["elbo", "softcvi-0.75"])
def test_the_decoded_grid_is_not_constant(result, folder, method):
    grid = _picture(folder, method)["grid"].astype(float) / 255
    assert grid.shape == (13, 13, 64)
    # Images differ along both latents, and are neither blank nor grey.
    assert np.abs(np.diff(grid, axis=0)).mean() > 0.005
    assert np.abs(np.diff(grid, axis=1)).mean() > 0.005
    assert grid[0, 0].std() > 0.1
    assert np.abs(grid[0, 0] - grid[-1, -1]).max() > 0.3


@pytest.mark.parametrize("method", ["elbo", "softcvi-0.75"])
def test_embeddings_tell_digits_apart(result, folder, method):
    picture = _picture(folder, method)
    means, labels = picture["means"].astype(float), picture["labels"]
    assert means.shape == (360, 2)
    assert set(labels) == set(range(10))
    distance = np.linalg.norm(means[:, None] - means[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    same = labels[distance.argmin(axis=1)] == labels
    assert same.mean() > 0.3  # chance is a tenth


def test_bounds_are_in_order_and_training_helped(result):
    images = load_images("digits")
    share = np.clip(images.train.mean(axis=0), 1e-3, 1 - 1e-3)
    test = images.test
    blank = np.mean(
        np.sum(test * np.log(share) + (1 - test) * np.log1p(-share), axis=1)
    )
    for record in result.records:
        assert record["test_elbo"] < record["test_iwae"]
        assert record["test_iwae"] > blank + 2
        assert record["prior_scale"] != [1.0, 1.0]
    assert "IWAE" in result.table


def test_finished_fits_are_not_repeated(result, folder, monkeypatch):
    monkeypatch.setattr("softcvi_experiments.appendix._vae.fit_vae", None)
    again = reproduce_vae(folder, methods=["elbo"], settings=SETTINGS, progress=False)
    assert again.records == result.records[:1]


def test_mnist_is_read_from_a_folder(public_folder):
    images = load_images("mnist", public_folder)
    assert images.train.shape == (60_000, 784)
    assert images.test.shape == (10_000, 784)
    assert images.side == 28
    assert 0 <= images.train.min() < images.train.max() == 1
    assert np.bincount(images.test_labels).min() > 800


def test_a_damaged_file_is_named(tmp_path):
    name = "train-images-idx3-ubyte.gz"
    (tmp_path / name).write_bytes(gzip.compress(b"no image"))
    with pytest.raises(ValueError, match=f"{name} is damaged"):
        load_images("mnist", tmp_path)
