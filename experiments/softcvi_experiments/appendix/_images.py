"""Images of digits: scikit-learn's 8 x 8 ones, or MNIST."""

import gzip
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
# MD5 of the archives at the mirror, and SHA256 of what they hold: archives made
# elsewhere differ in their bytes, their contents must not.
_MNIST = {
    "train-images-idx3-ubyte.gz": (
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    "train-labels-idx1-ubyte.gz": (
        "d53e105ee54ea40749a09fcbcd1e9432",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    "t10k-images-idx3-ubyte.gz": (
        "9fb629c4189551a2d022fa330f9573f3",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    "t10k-labels-idx1-ubyte.gz": (
        "ec29112dd5afa0611ce80d1b7f02629c",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
}
_DIGITS_FOR_TEST = 360
IMAGE_SETS = ("digits", "mnist")


@dataclass(frozen=True)
class Images:
    """Square images as rows of intensities in [0, 1].

    Args:
        train: Images to fit.
        test: Images to score and to show.
        test_labels: Which digit each of them is.

    Example:
        >>> Images(np.zeros((1, 64)), np.zeros((1, 64)), np.zeros(1, int)).side
        8
    """

    train: Float[np.ndarray, "n pixels"]
    test: Float[np.ndarray, "m pixels"]
    test_labels: Int[np.ndarray, " m"]

    @property
    def side(self) -> int:
        """Pixels along an edge."""
        return round(self.train.shape[1] ** 0.5)


def load_images(name: str, data_dir: str | Path | None = None) -> Images:
    """Load a set of images.

    Args:
        name: ``"digits"``, which comes with scikit-learn, or ``"mnist"``.
        data_dir: Folder with MNIST's four ``.gz`` files, or with a sub-folder
            ``mnist`` that has them; downloaded if not given.

    Example:
        >>> load_images("digits").train.shape
        (1437, 64)
        >>> load_images("mnist", "nowhere")
        Traceback (most recent call last):
        ...
        FileNotFoundError: nowhere/train-images-idx3-ubyte.gz is missing; ...
    """
    if name == "digits":
        return _digits()
    if name == "mnist":
        parts = [_read_idx(file, data_dir) for file in _MNIST]
        train, _, test, labels = parts
        return Images(_flat(train, 255), _flat(test, 255), labels.astype(int))
    raise ValueError(f"unknown images {name!r}; known: {', '.join(IMAGE_SETS)}")


def _digits() -> Images:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    images, labels = _flat(bunch.images[order], 16), bunch.target[order].astype(int)
    test, train = slice(None, _DIGITS_FOR_TEST), slice(_DIGITS_FOR_TEST, None)
    return Images(images[train], images[test], labels[test])


def _flat(images: np.ndarray, highest: int) -> np.ndarray:
    return (images.reshape(len(images), -1) / highest).astype(np.float32)


def _read_idx(file: str, data_dir: str | Path | None) -> np.ndarray:
    if data_dir is None:
        path = _download(file)
    else:
        inside = Path(data_dir) / "mnist"
        path = (inside if inside.is_dir() else Path(data_dir)) / file
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing; download {_MIRROR}{file} into that folder, or leave "
            "out --data-dir while online"
        )
    raw = gzip.decompress(path.read_bytes())
    expected = _MNIST[file][1]
    if hashlib.sha256(raw).hexdigest() != expected:
        raise ValueError(
            f"{path} is damaged: its contents should have SHA256 {expected}; download "
            f"{_MIRROR}{file} again"
        )
    # The fourth byte says how many sizes, of four bytes each, follow.
    shape = np.frombuffer(raw, ">i4", count=raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def _download(file: str) -> Path:
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            "MNIST is downloaded with pooch: pip install 'softcvi[experiments]', or "
            "name a folder that has the files with --data-dir"
        ) from error
    cache = os.environ.get("SOFTCVI_CACHE_DIR") or pooch.os_cache("softcvi")
    path = pooch.retrieve(
        _MIRROR + file,
        known_hash=f"md5:{_MNIST[file][0]}",
        fname=file,
        path=Path(cache) / "mnist",
    )
    return Path(path)
