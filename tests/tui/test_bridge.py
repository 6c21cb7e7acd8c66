"""Snapshots reach the app one message at a time, from any thread, and never make it wait."""

import asyncio
import threading
import time
from concurrent.futures import Future

import scenes
from fake_controls import FakeControls

from spectui.domain.errors import ServerError
from spectui.domain.samples import Snapshot
from spectui.tui.bridge import Arrived, Bridge, Ended, follow


class Target:
    """Takes messages and does nothing with them."""

    def __init__(self):
        self.messages = []

    def post_message(self, message):
        self.messages.append(message)


class ClosedLoop:
    def post_message(self, message):
        raise RuntimeError("Event loop is closed")


def test_one_message_waits_however_many_snapshots_come():
    controls, target = FakeControls(), Target()
    bridge = Bridge(controls, target)
    bridge.open()
    for at in range(1, 50):
        controls.emit(Snapshot(at=float(at)))
    assert [type(message) for message in target.messages] == [Arrived]
    assert bridge.take().at == 49.0
    assert bridge.take() is None
    controls.emit(Snapshot(at=50.0))
    assert len(target.messages) == 2


def test_closing_ends_the_subscription_and_may_be_done_twice():
    controls, target = FakeControls(), Target()
    bridge = Bridge(controls, target)
    bridge.open()
    bridge.close()
    bridge.close()
    controls.emit(Snapshot(at=1.0))
    assert controls.subscribers == 0
    assert len(target.messages) == 1


def test_a_ui_that_is_gone_does_not_disturb_the_session():
    controls = FakeControls()
    Bridge(controls, ClosedLoop()).open()
    controls.emit(Snapshot(at=1.0))


def test_a_future_tells_its_result_its_error_and_nothing_when_cancelled():
    target, seen = Target(), []
    for end in ("result", "error", "cancel"):
        future: Future[str] = Future()
        follow(future, target, lambda result, error: seen.append((result, error)))
        if end == "result":
            future.set_result("done")
        elif end == "error":
            future.set_exception(ServerError("no room", "free some"))
        else:
            future.cancel()
    assert [(m.result, m.error) for m in target.messages if isinstance(m, Ended)] == [
        ("done", ""),
        (None, "no room: free some"),
        (None, ""),
    ]
    assert target.messages[2].then is None


async def test_snapshots_from_another_thread_end_with_the_newest(face):
    async with face() as f:

        def send():
            for at in range(200):
                f.controls.emit(Snapshot(at=1000.0 + at))

        thread = threading.Thread(target=send)
        thread.start()
        await asyncio.to_thread(thread.join)
        await f.settle()
        assert f.app.snapshot.at == 1199.0


async def test_a_ui_that_is_held_up_does_not_hold_up_the_session(face):
    async with face() as f:
        took = []

        def send():
            began = time.monotonic()
            for at in range(100):
                f.controls.emit(Snapshot(at=2000.0 + at))
            took.append(time.monotonic() - began)

        thread = threading.Thread(target=send)
        thread.start()
        thread.join(5)  # the UI's own thread waits here, and draws nothing meanwhile
        assert not thread.is_alive()
        assert took[0] < 1.0
        await f.settle()
        assert f.app.snapshot.at == 2099.0


async def test_the_snapshot_that_was_there_before_is_shown(face):
    async with face(scenes.done()) as f:
        assert f.app.snapshot.baseline == 1
