"""What the figure of signal and noise must show."""

import numpy as np
import pytest
from softcvi_experiments.appendix import reproduce_snr

pytestmark = pytest.mark.slow

NUM_GRADIENTS = 500
TRUTH = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("snr")


@pytest.fixture(scope="module")
def curves(folder):
    result = reproduce_snr(folder, num_values=5, num_gradients=NUM_GRADIENTS)
    assert {path.suffix for path in result.files} == {".jsonl", ".png", ".svg", ".pdf"}
    assert all(path.stat().st_size > 1000 for path in result.files)
    return {(r["dim"], r["parameter"], r["method"]): r for r in result.records}


@pytest.mark.parametrize("dim", [1, 50])
@pytest.mark.parametrize("parameter", ["mean", "log_sd"])
def test_snis_fkl_and_alpha_one_have_equal_signal(curves, dim, parameter):
    ours = curves[dim, parameter, "softcvi-1"]
    theirs = curves[dim, parameter, "snis-fkl"]
    noise = np.array(ours["noise"]) + np.array(theirs["noise"])
    error = noise / np.sqrt(NUM_GRADIENTS)
    gap = np.abs(np.array(ours["signal"]) - np.array(theirs["signal"]))
    # An absolute value is biased upwards by up to a standard error where it is zero.
    assert np.all(gap < 4 * error)


@pytest.mark.parametrize("dim", [1, 50])
@pytest.mark.parametrize("parameter", ["mean", "log_sd"])
def test_noise_vanishes_at_the_truth_for_softcvi_alone(curves, dim, parameter):
    for method in ("softcvi-0", "softcvi-0.75", "softcvi-1"):
        noise = curves[dim, parameter, method]["noise"]
        assert noise[TRUTH] < 1e-4 < noise[TRUTH - 1]
    # There SNIS-fKL is the mean score of 8 draws, with sd of z or of z^2 - 1.
    expected = np.sqrt((1.0 if parameter == "mean" else 2.0) / 8)
    scale = np.sqrt(5 / 4) if parameter == "mean" else 1.0
    noise = curves[dim, parameter, "snis-fkl"]["noise"][TRUTH]
    np.testing.assert_allclose(noise, expected * scale, rtol=0.15)


def test_small_alpha_loses_the_signal_of_a_large_sd_in_many_dimensions(curves):
    signal = {
        method: curves[50, "log_sd", method]["signal"][-1]
        for method in ("softcvi-0", "softcvi-0.75", "softcvi-1")
    }
    assert 3 * signal["softcvi-0"] < signal["softcvi-0.75"] < signal["softcvi-1"]
    ratio = {
        method: curves[50, "log_sd", method]["ratio"][-1]
        for method in ("softcvi-0", "softcvi-1")
    }
    assert 2 * ratio["softcvi-0"] < ratio["softcvi-1"]


def test_one_dimension_keeps_the_signal(curves):
    for method in ("softcvi-0", "softcvi-0.75", "softcvi-1"):
        assert curves[1, "log_sd", method]["signal"][-1] > 0.2


def test_curves_on_record_are_not_computed_again(curves, folder, monkeypatch):
    monkeypatch.setattr("softcvi_experiments.appendix._snr.snr_curve", None)
    again = reproduce_snr(folder, num_values=5, num_gradients=NUM_GRADIENTS)
    assert again.records == list(curves.values())
