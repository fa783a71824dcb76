"""The command line, one module per group of commands; no other package imports it.

Internal: programs use `geneb_ci` itself.
"""

import gc

OBJECTS_BEFORE_COLLECTION = 100_000
"""Number of new objects after which the garbage collector searches for cycles (Python: 700).

Most objects of a short command live to its end, and searching took a tenth of its time.
"""
gc.set_threshold(OBJECTS_BEFORE_COLLECTION)
