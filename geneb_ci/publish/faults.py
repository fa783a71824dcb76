"""What can go wrong between us and the Hub.

PublishFault (exit 1)
├── NoToken            nobody said who publishes
├── TokenRefused       the Hub does not know the token
├── NoWriteRight       the token may read only
├── RepoMissing        there is no such Space or data set
├── Overtaken          the Space holds a commit that ours does not follow
├── BadManifest        manifest.json on the Space is not ours
├── NewerManifest      manifest.json on the Space was written by a later version
├── Refused            the Hub refuses what we sent
├── Local              this machine fails: a full disk, no permission
├── Unverified         what the Space serves after a publish is not what was sent
└── GaveUp             six tries, none of them settled it

Setback, never shown: a try failed and another may succeed
├── Moved      412: another commit came first
├── Locked     409: a commit is under way
├── Limited    429: too many requests; says how long to wait
├── Unstored   the Hub's storage fails, so that no commit was tried
└── Unknown    5xx, time-out, broken connection: the commit may have been made
"""

from geneb_ci.errors import GenebError


class PublishFault(GenebError):
    """Base of what a maintainer is told."""


class NoToken(PublishFault):
    """There is no token, or the identity of the CI job could not be turned into one."""


class TokenRefused(PublishFault):
    """The Hub answers 401."""


class NoWriteRight(PublishFault):
    """The Hub answers 403."""


class RepoMissing(PublishFault):
    """The Hub answers 404."""


class Overtaken(PublishFault):
    """A newer commit has been published, or a rollback covers ours."""


class BadManifest(PublishFault):
    """manifest.json on the Space cannot be read as ours."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(
            f"{where}: manifest.json was not written by geneb-ci: {reason}",
            "look at the Space's history; restore the file there, or delete it to publish anew",
        )


class NewerManifest(PublishFault):
    """manifest.json on the Space has a format that this version does not know."""


class Refused(PublishFault):
    """The Hub does not take what was sent, and would not take it again."""


class Local(PublishFault):
    """This machine does not do what the Hub's client asks of it; the Hub has no part in it."""


class Unverified(PublishFault):
    """The Space serves something else than was published."""


class GaveUp(PublishFault):
    """The last of the tries failed, too."""


class Setback(Exception):
    """One try failed."""


class Moved(Setback):
    """The head of the repository is not the one we built on."""


class Locked(Setback):
    """Somebody else's commit is being written."""


class Limited(Setback):
    """Too many requests; `wait_s` seconds must pass, or None where the Hub does not say."""

    def __init__(self, message: str, wait_s: float | None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class Unstored(Setback):
    """The Hub's storage fails; it gets the large files before the commit, so that none was made."""


class Unknown(Setback):
    """The answer got lost, and with it whether the commit was made."""
