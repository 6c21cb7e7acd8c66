"""``spectui`` and ``python -m spectui``."""

import sys

from spectui.cli.main import run


def main() -> None:
    """Run the command line and exit with its status."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
