import pytest

from spectui.domain.phases import ALIVE, LEGAL, UP, IllegalTransitionError, Phase, transition


def test_every_phase_can_be_left_and_reached():
    assert set(LEGAL) == set(Phase)
    for phase in Phase:
        assert LEGAL[phase]
        assert any(phase in after for after in LEGAL.values())


def test_staying_is_always_legal():
    for phase in Phase:
        assert transition(phase, phase) is phase


@pytest.mark.parametrize(
    ("now", "then"),
    [
        (Phase.STOPPED, Phase.READY),  # nothing becomes ready without having been started
        (Phase.READY, Phase.STOPPED),  # a process that lives has to be stopped first
        (Phase.LOADING, Phase.GONE),  # what was never there cannot go away: it failed
        (Phase.GONE, Phase.READY),
        (Phase.STOPPING, Phase.READY),
    ],
)
def test_what_cannot_happen_is_refused(now, then):
    with pytest.raises(IllegalTransitionError):
        transition(now, then)


def test_a_server_that_is_up_is_alive():
    assert UP < ALIVE
    assert Phase.FAILED not in ALIVE
