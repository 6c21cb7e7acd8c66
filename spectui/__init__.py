"""spectui: measure, compare and tune speculative decoding on llama-server.

One core, two faces. A *Session* (asyncio on a thread of its own) owns a server and a workload
and emits one frozen snapshot per tick; the dashboard and the headless commands are two faces of
that one Session and show the same figures.

- ``domain``     pure values and formulas: acceptance, throughput, comparison, the profile
- ``adapters``   one outside thing per file: the process, HTTP, NVML, the host, TOML
- ``session``    orchestration over Protocols: launch, sample, drive the workload, record
- ``bootstrap``  the composition root: a profile in, a wired Session out
- ``cli``        argument parsing and headless output
- ``tui``        the Textual dashboard
- ``embedded``   ``python -m spectui.embedded``: llama-server's flags on the xllamacpp engine

Who may import whom is a contract in ``pyproject.toml`` and is checked by the test suite.
"""

__version__ = "0.1.0"
