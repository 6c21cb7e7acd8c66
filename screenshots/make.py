"""Makes the pictures of the README from a real run on the embedded engine: make screenshots.

One Session measures the baseline and three draft lengths of the demo; the dashboard is drawn of it
at two sizes, and once in a light theme. Figures in the pictures are what this machine measured.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from spectui.bootstrap import build_session, demo_profile
from spectui.session.session import Session
from spectui.tui.app import SpectuiApp

FOLDER = Path(__file__).parent
PICTURES = {
    "dashboard-120x36": ((120, 36), None),
    "dashboard-80x24": ((80, 24), None),
    "dashboard-light": ((120, 36), "spectui-light"),
}
FONTS = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def main() -> int:
    """Measure, draw, write; return the exit status."""
    profile = demo_profile()
    session = build_session(profile)
    session.start()
    try:
        for length in (16, 4, 8):
            setting = profile.speculation.with_value("ngram_simple.size_m", length)
            print(f"measuring {setting.name}", flush=True)
            session.measure(setting).result(600)
        for name, (size, theme) in PICTURES.items():
            path = FOLDER / f"{name}.svg"
            path.write_text(asyncio.run(picture(session, size, theme)), encoding="utf-8")
            print(f"wrote {path}", flush=True)
    finally:
        session.close(20)
    return 0


async def picture(session: Session, size: tuple[int, int], theme: str | None) -> str:
    """Return the dashboard of ``session`` as SVG, without anything from elsewhere in it."""
    app = SpectuiApp(session, theme=theme, glyphs="braille")
    async with app.run_test(size=size, notifications=False) as pilot:
        await pilot.pause(1.5)  # the next snapshot comes within a second
        svg = app.export_screenshot(title="spectui demo")
    svg = re.sub(r"@font-face\s*{[^}]*}", "", svg)
    return re.sub(r"font-family:\s*[^;]+;", f"font-family: {FONTS};", svg)


if __name__ == "__main__":
    sys.exit(main())
