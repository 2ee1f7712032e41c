"""`python -m windvane`: the command line."""

import sys

from windvane.cli import main

sys.exit(main())
