"""The battery of every stopping rule."""

import numpy as np
import pytest

from softcvi import fitting

CASES = {
    fitting.Never: fitting.Never(),
    fitting.Plateau: fitting.Plateau(window=0.2),
    fitting.TimeLimit: fitting.TimeLimit(5.0),
    fitting.EvaluationLimit: fitting.EvaluationLimit(4000),
}


def progress(step, excess=None, seconds=1.0):
    rows = np.arange(1, step // 10 + 1) * 10.0
    excess = np.exp(-rows / 100) if excess is None else excess(rows)
    history = fitting.History(rows, excess, np.full(rows.shape, 4.0), -excess)
    return fitting.Progress(step, 1000, seconds, 8 * step, history)


def test_the_battery_knows_every_exported_rule(exported):
    assert exported(fitting, fitting.AbstractStoppingRule) == set(CASES)


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_a_rule_says_why_or_nothing(cls):
    rule = CASES[cls]
    assert rule.reason(progress(10)) is None
    assert 1 <= rule.limit_steps(1000, 8) <= 1000
    settled = progress(990, excess=lambda rows: 0.5 + 0.01 * np.sin(rows), seconds=9.0)
    reason = rule.reason(settled)
    assert reason is None if cls is fitting.Never else isinstance(reason, str)
