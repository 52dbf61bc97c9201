"""Figures and tables agree on what a failed run is."""

import numpy as np
from softcvi_experiments._figures import metrics_figure
from softcvi_experiments.figures import draw_boxes, new_figure, quartiles, scores


def _record(method, run, value):
    return {
        "task": "slcp", "method": method, "run": run, "log_prob_reference": value,
        "posterior_mean_accuracy": value, "coverage_nominal": [0.0, 1.0],
        "coverage_actual": [0.0, 1.0],
    }  # fmt: skip


def _box_of(axis):
    [patch] = axis.patches
    return patch.get_path().get_extents()


def test_failed_runs_are_part_of_the_box():
    values = [-1.0, -2.0, None, None, None, -3.0, -1.5, -2.5]
    records = [_record("elbo", i, value) for i, value in enumerate(values)]
    axis = metrics_figure(records).axes[1]
    # Three of eight failed: the lower quartile is a failure, cut off at the axis.
    assert _box_of(axis).y0 < -3.0
    np.testing.assert_allclose(_box_of(axis).y0, axis.get_ylim()[0])
    assert quartiles(scores(records, "log_prob_reference"))[0] == -np.inf


def test_a_median_that_failed_is_marked():
    _, axes = new_figure(1, 1, 2.0, 2.0)
    axis = axes[0, 0]
    good, failed = np.arange(5.0), np.array([-np.inf] * 3 + [1.0, 2.0])
    draw_boxes(axis, [good, failed], np.arange(2), 0.6, ["red", "blue"])
    marks = [line for line in axis.lines if line.get_marker() == "v"]
    assert [mark.get_xdata()[0] for mark in marks] == [1]


def test_finite_boxes_are_those_of_matplotlib():
    _, axes = new_figure(1, 2, 2.0, 2.0)
    values = np.random.default_rng(0).normal(size=50)
    draw_boxes(axes[0, 0], [values], np.zeros(1), 0.6, ["red"])
    axes[0, 1].boxplot([values], positions=[0], patch_artist=True, widths=0.54)
    ours, theirs = (_box_of(axis) for axis in axes[0])
    np.testing.assert_allclose([ours.y0, ours.y1], [theirs.y0, theirs.y1])
