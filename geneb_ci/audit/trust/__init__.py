"""Trust levels: from verified records to what a row of the board may say.

Internal: programs use `geneb_ci` itself.
"""
