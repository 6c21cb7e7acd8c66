"""What holds for every test, however it is run."""

import signal

from hypothesis import HealthCheck, settings

# a loaded machine is no reason to fail
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")

# whoever starts this in the background, or under nohup, has these ignored, and a child inherits it
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)
