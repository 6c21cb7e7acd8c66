"""The one error family: every message says what is wrong and what to do next.

::

    SpectuiError                    exit status 1: it was asked for rightly, and failed
    ├── UsageError                  exit status 2: it was asked for wrongly
    │   └── ProfileError            a profile's file, key and allowed values
    ├── EngineError                 the server's program or package is missing or unusable
    ├── ServerError                 the server did not start, or went away
    │   ├── PortError               its port is taken or cannot be bound
    │   └── LoadTimeoutError        it neither answered nor moved any more
    ├── ModelFileError              a model file is missing, broken or not to be read
    ├── RequestError                the server answered a request with an error, or not at all
    └── WorkloadError               the prompts cannot be read or used
"""


class SpectuiError(Exception):
    """Something that a person has to know about.

    ``what`` is one sentence without a full stop; ``fix`` says what to do next and may be empty.
    ``str()`` joins both into the one line that every face shows.
    """

    exit_code = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what, fix)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        line = f"{self.what}: {self.fix}" if self.fix else self.what
        return " ".join(line.split())


class UsageError(SpectuiError):
    """What was asked for makes no sense; nothing was started."""

    exit_code = 2


class ProfileError(UsageError):
    """A profile that cannot be used. ``where`` is ``file``, or ``file: table.key``."""

    def __init__(self, where: str, what: str, fix: str = "") -> None:
        super().__init__(f"{where}: {what}" if where else what, fix)
        self.where = where


class EngineError(SpectuiError):
    """The engine (a llama-server binary, or the embedded one) cannot be run."""


class ServerError(SpectuiError):
    """The server did not come up, or went away."""


class PortError(ServerError):
    """The port is taken, or the address cannot be bound."""


class LoadTimeoutError(ServerError):
    """The server is alive but has neither answered nor made progress for too long."""


class ModelFileError(SpectuiError):
    """A model file cannot be used.

    ``code`` is model-missing, model-invalid, model-truncated or permission-denied.
    """

    def __init__(self, code: str, what: str, fix: str = "") -> None:
        super().__init__(what, fix)
        self.code = code


class RequestError(SpectuiError):
    """A request failed. ``status`` is the HTTP status, None where no answer came."""

    def __init__(self, what: str, fix: str = "", *, status: int | None = None) -> None:
        super().__init__(what, fix)
        self.status = status


class WorkloadError(UsageError):
    """The prompts cannot be read, or none is left to send."""


class SourceAbsentError(Exception):
    """A source of readings does not exist on this machine; the message says so in a few words.

    Not one of the family above: a machine without an NVIDIA GPU is nothing to repair.
    """
