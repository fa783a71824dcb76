"""Audits: an unforeseeable sample, rerun and signed; and the trust levels that follow.

Internal: programs use `geneb_ci` itself.
"""

from geneb_ci import make_callable

make_callable(__name__)  # geneb_ci.audit(...) is the function of geneb_ci.api
