"""Run the command line as `python -m geneb_ci`."""

import sys

from geneb_ci.cli.main import main

sys.exit(main())
