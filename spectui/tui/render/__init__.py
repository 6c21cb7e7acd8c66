"""Charts as text: braille lines for what moves, plotext for what rests."""
