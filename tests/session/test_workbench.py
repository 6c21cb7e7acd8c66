import pytest
from session_tools import simple, until

from spectui.domain.errors import EngineError, UsageError
from spectui.domain.findings import Fix
from spectui.domain.phases import Phase
from spectui.domain.preflight import Preflight
from spectui.workbench import Workbench

SMALLER = Fix("a smaller context", (("server.context", 1024),))
FEWER = Fix("set n_max to 2", (("speculation.n_max", 2),))


@pytest.fixture
def workbench(bench):
    def build(profile, *, notices=0):
        from spectui.domain.profile import to_mapping

        return bench(profile=to_mapping(profile), notices=notices, begin=False)

    first = bench(begin=False)
    made = Workbench(first, build, lambda profile: Preflight((), ()))
    made.start()
    return made


def test_a_fix_of_the_setting_goes_on_in_the_same_session(workbench):
    workbench.measure(simple(4)).result(30)
    workbench.adopt(FEWER).result(30)
    found = workbench.snapshot
    assert found.running.speculation.draft_length == 2
    assert len(found.runs) == 2


def test_any_other_fix_begins_a_new_session_and_the_face_sees_it_go_on(workbench):
    seen = []
    undo = workbench.subscribe(seen.append)
    workbench.measure(simple(4)).result(30)
    workbench.warn("something")
    told = until(lambda: workbench.snapshot.notices)[-1].number
    pid = workbench.snapshot.pid
    workbench.adopt(SMALLER).result(30)
    found = workbench.snapshot
    assert workbench.profile.server.context == 1024
    assert found.phase is Phase.READY
    assert found.pid != pid
    assert "-c 1024" in found.engine.command
    assert found.runs == ()
    until(lambda: any("2 runs of before" in n.text for n in workbench.snapshot.notices))
    assert all(n.number > told for n in workbench.snapshot.notices)
    assert seen[-1].runs == ()
    undo()
    count = len(seen)
    workbench.launch(simple(4)).result(30)
    assert len(seen) == count


def test_a_listener_that_fails_is_told_and_the_others_go_on(workbench):
    seen = []
    workbench.subscribe(lambda snapshot: 1 / 0)
    workbench.subscribe(seen.append)
    workbench.launch(simple(4)).result(30)
    until(lambda: any("ZeroDivisionError" in n.text for n in workbench.snapshot.notices))
    until(lambda: seen and seen[-1].phase is Phase.READY)
    said = [n for n in workbench.snapshot.notices if "a listener failed" in n.text]
    assert len(said) == 1


def test_a_fix_that_makes_no_sense_leaves_everything_as_it_was(workbench):
    workbench.launch(simple(4)).result(30)
    pid = workbench.snapshot.pid
    for path, value in (("speculation.n_max", 0), ("server.context", "many"), ("no.such", 1)):
        with pytest.raises(UsageError):
            workbench.adopt(Fix("x", ((path, value),))).result(30)
    assert workbench.snapshot.pid == pid
    assert workbench.snapshot.phase is Phase.READY


def test_a_session_that_cannot_be_built_leaves_the_old_one_alone(bench):
    def build(profile, *, notices=0):
        raise EngineError("there is no such engine")

    first = bench(begin=False)
    workbench = Workbench(first, build)
    workbench.start()
    workbench.launch(simple(4)).result(30)
    with pytest.raises(EngineError):
        workbench.adopt(SMALLER).result(30)
    assert workbench.snapshot.phase is Phase.READY


def test_a_server_that_is_not_ours_is_not_changed(bench):
    workbench = Workbench(bench(begin=False))
    workbench.start()
    for future in (workbench.adopt(SMALLER), workbench.preflight(), workbench.survey()):
        with pytest.raises(UsageError, match="only watches"):
            future.result(5)


def test_closing_lets_no_session_follow(workbench, bench):
    workbench.launch(simple(4)).result(30)
    assert workbench.close(10)
    workbench.adopt(SMALLER).exception(30)
    assert all(not session._thread.is_alive() for session in bench.sessions)


def test_preflight_is_of_the_profile_that_is_at_work(bench):
    asked = []
    session = bench(begin=False)
    workbench = Workbench(session, None, lambda profile: asked.append(profile) or Preflight((), ()))
    workbench.start()
    assert workbench.preflight().result(5) == Preflight((), ())
    assert asked == [session.profile]
