"""The Space that shows the board: what it holds, and which generation that is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from geneb_ci.publish import manifest
from geneb_ci.publish.remote import Content, Facts, Remote
from geneb_ci.publish.session import TIMEOUT_S
from geneb_ci.publish.shape import Manifest


@dataclass(frozen=True)
class State:
    """The Space at one commit."""

    head: str
    files: Mapping[str, Facts] = field(default_factory=dict)
    manifest: Manifest | None = None

    def holds(self, files: Mapping[str, Content]) -> bool:
        """Whether it has all these files, with just these bytes."""
        return all(
            name in self.files and self.files[name].are_of(content)
            for name, content in files.items()
        )


class Space(Remote):
    """One Space."""

    def __init__(
        self,
        name: str,
        *,
        token: str | None,
        endpoint: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        super().__init__("space", name, token=token, endpoint=endpoint, timeout_s=timeout_s)

    def state(self, revision: str | None = None) -> State:
        """Read the head, or a commit: its files and its manifest."""
        head, files = self.listing(revision)
        found = None
        if manifest.NAME in files:
            raw = self.read(manifest.NAME, head, manifest.BYTES_MAX)
            found = manifest.parse_manifest(raw, f"{self.resource} at {head}")
        return State(head, files, found)
