"""The command line: argument parsing, headless output, exit status."""
