"""The board as a pure function of the submissions.

Internal: programs use `geneb_ci` itself.
"""

from geneb_ci import make_callable

make_callable(__name__)  # geneb_ci.board(...) is the function of geneb_ci.api
