"""Rules, each a pure function of a frozen context, and the runner that returns their findings.

Internal: programs use `geneb_ci` itself.
"""

from geneb_ci import make_callable

make_callable(__name__)  # geneb_ci.check(...) is the function of geneb_ci.api
