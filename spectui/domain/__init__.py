"""Pure values and formulas: standard library only, no I/O, no clock, no threads."""
