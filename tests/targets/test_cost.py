"""What log densities cost, counted and not timed."""

from softcvi.adapters.stan import StanTarget
from softcvi.targets._cost import CALLBACK, affordable, call_in_batches
from tests.adapters.stan.programs import Gamma


def _priced(operations: int | None) -> StanTarget:
    program = Gamma()
    program.operations = operations
    return StanTarget(program)


def test_a_cheap_program_gets_more_calls_and_no_program_fewer() -> None:
    flat, cheap, dear = map(_priced, (None, CALLBACK // 100, 100 * CALLBACK))
    calls = [
        affordable(each, 1e9, fewest=1, most=10**6, call=call_in_batches(each))
        for each in (flat, cheap, dear)
    ]
    assert calls[0] == calls[2]
    assert 50 * calls[0] < calls[1] < 100 * calls[0]
    # Where points are not in batches, all calls cost the same.
    assert affordable(cheap, 1e9, fewest=1, most=10**6) == affordable(
        dear, 1e9, fewest=1, most=10**6
    )
