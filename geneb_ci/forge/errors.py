"""What can go wrong between us and GitHub, and what to do about it.

GenebError
├── UsageProblem           exit 2
│   ├── NoToken            GH_TOKEN is not set
│   ├── TokenRefused       GitHub does not know the token
│   ├── MissingScope       the token may not do this; names what it lacks
│   └── NotFound           no such repository or pull request, or none that the token may see
├── ForgeProblem           exit 3: nothing was decided, and nothing is half-written; run it again
│   ├── RateLimited        until when
│   ├── Unavailable        no answer, or one of 5xx
│   ├── UnexpectedReply    an answer that is not what GitHub documents
│   └── Tampered           bytes that are not those of their name, a verdict that contradicts itself
└── HeadMoved              exit 4: the pull request has new commits; it is queued again
"""

import datetime as dt

from geneb_ci.errors import Exit, GenebError, UsageProblem


class NoToken(UsageProblem):
    """There is no token to ask GitHub with."""


class TokenRefused(UsageProblem):
    """GitHub does not know the token."""


class MissingScope(UsageProblem):
    """The token may not do what was asked."""


class NotFound(UsageProblem):
    """There is no such thing, or the token may not see it."""


class ForgeProblem(GenebError):
    """GitHub could not be asked, or not be believed."""

    exit_code = Exit.NOT_CHECKED


class RateLimited(ForgeProblem):
    """GitHub wants us to wait longer than we do; `wait` is in seconds."""

    def __init__(self, until: dt.datetime, wait: float) -> None:
        super().__init__(
            f"GitHub's rate limit is reached until {until:%Y-%m-%d %H:%M:%S} UTC",
            "run it again then; nothing is lost",
        )
        self.until = until
        self.wait = wait


class Unavailable(ForgeProblem):
    """GitHub did not answer, or with a fault of its own."""


class UnexpectedReply(ForgeProblem):
    """An answer that is not what GitHub documents."""


class Tampered(ForgeProblem):
    """What was received contradicts itself."""


class HeadMoved(GenebError):
    """The pull request has other commits than those that were checked."""

    exit_code = Exit.MOVED
