"""The command line, one module per group of commands; no other package imports it.

Internal: programs use `geneb_ci` itself.
"""

import gc

COLLECTED_FROM = 100_000
"""Objects made, and not freed, from which cycles among them are sought (Python: 700).

Nearly all that a short command makes lasts to its end; a tenth of its time went into looking.
"""
gc.set_threshold(COLLECTED_FROM)
