"""One outside thing per file; each returns domain values."""
