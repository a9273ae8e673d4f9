"""Run as ``python -m fuzz readers --minutes 10``."""

import sys

from fuzz.driver import main

if __name__ == "__main__":
    sys.exit(main())
