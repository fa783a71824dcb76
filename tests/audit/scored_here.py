"""Lets the harness run in the process of the command, whose extractor runs in a real sandbox."""

import runpy
from pathlib import Path

install = runpy.run_path(str(Path(__file__).with_name("unboxed.py")))["install_harness"]
