"""What one audit is to rerun, and why these tasks: all of it can be recomputed by anyone."""

from typing import Annotated, Literal

from pydantic import Field

from geneb_ci.audit.commitment import Commitment, Hex64, Moment, Name, Part, Positive

Reason = Literal["drawn", "earlier", "targeted"]
"""Why a task is rerun. Only drawn ones carry the guarantee; earlier ones were drawn for an earlier
version of the submission; targeted ones are named by the plausibility scores."""


class DrandBeacon(Part):
    """A round of the public drand beacon, as its signature proves it."""

    kind: Literal["drand"]
    chain: Hex64
    round: Positive
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{96}$")]
    """BLS12-381 signature on G1, compressed, over SHA-256 of the round as 8 bytes, big-endian."""


class FallbackBeacon(Part):
    """A recorded substitute for an hour without beacon: HMAC under a key committed beforehand."""

    kind: Literal["hmac"]
    key_sha256: Hex64
    """Published at the start of the key's epoch."""
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None
    """Revealed at the end of the epoch; null before."""
    value: Hex64
    """HMAC-SHA256 of the commitment."""
    why: Annotated[str, Field(min_length=1)]


Beacon = Annotated[DrandBeacon | FallbackBeacon, Field(discriminator="kind")]


class Ticket(Part):
    """A task's place in the draw."""

    task: Name
    ticket: Hex64


class EarlierDraw(Part):
    """A draw for an earlier version of the same submission: its sample is audited again."""

    commitment: Hex64
    drawn: Annotated[list[Name], Field(min_length=1)]


class Chosen(Part):
    """A task to rerun."""

    task: Name
    reason: Reason


class Plan(Part):
    """One audit, before it runs."""

    schema_version: Literal["1.0"]
    commitment: Commitment
    commitment_sha256: Hex64
    committed_at: Moment
    """t0: when the commitment became public, by the clock of the server that shows it."""
    beacon: Beacon
    seed: Hex64
    """SHA-256 of protocol, commitment and beacon value."""
    tickets: Annotated[list[Ticket], Field(min_length=1)]
    """Every task, smallest ticket first."""
    earlier: list[EarlierDraw]
    chosen: Annotated[list[Chosen], Field(min_length=1)]
    """Tasks to rerun: drawn in order of ticket, then earlier ones, then targeted ones."""

    @property
    def drawn(self) -> list[str]:
        """Ids of the guaranteed sample."""
        return [one.task for one in self.chosen if one.reason == "drawn"]
