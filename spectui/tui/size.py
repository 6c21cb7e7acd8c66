"""The smallest terminal that the dashboard can be read in. Imports nothing: it is asked early."""

from typing import Final

MIN_WIDTH: Final = 60
"""Columns."""

MIN_HEIGHT: Final = 18
"""Rows."""
