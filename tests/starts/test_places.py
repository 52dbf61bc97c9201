"""Which ends of paths belong to one place."""

import numpy as np

from softcvi.starts._modes import Ends, join_by_lines


def two_normals(points):
    squares = [np.sum((points - centre) ** 2, axis=1) for centre in ([-5, 0], [5, 0])]
    return np.logaddexp(*(-0.5 * square for square in squares))


def ends_at(*means):
    means = np.array(means, float)
    number = len(means)
    return Ends(
        means,
        np.stack([np.eye(2)] * number),
        two_normals(means),
        np.ones(number, int),
        np.arange(number),
    )


def test_an_end_on_the_saddle_does_not_join_the_modes_on_both_sides():
    joined = join_by_lines(ends_at([-5, 0], [5, 0], [0, 0]), two_normals)
    assert joined.num_places == 2
    assert joined.places[0] != joined.places[1]


def test_ends_of_one_mode_are_joined_along_a_chain():
    joined = join_by_lines(ends_at([-5, 0], [-4, 0], [-3.2, 1], [5, 0]), two_normals)
    np.testing.assert_array_equal(joined.places, [0, 0, 0, 1])
