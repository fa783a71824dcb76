"""Which scores can exist: confusion matrices, their metrics and the bounds between them.

Plain functions of numbers, without any other part of the package: rules, the command line and the
board's uncertainty are all built on them.
"""
