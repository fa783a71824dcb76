"""The storage behind the Hub of the tests: what the real client of Xet uploads and fetches.

Written from the client's source (huggingface_hub 2.4, hf_xet 1.8) and from what it asks. Digests
of xorbs and files are the client's own and are taken as they come; bytes are held against sha256.
"""

import hashlib
from dataclasses import dataclass, field

from tests.publish.hub_call import Answer, Call, Refusal, as_json
from tests.publish.xet_format import Chunk, File, Term, chunks_of, files_of, stored

CAS_TOKEN = "xet_token_of_tests"  # noqa: S105 (what the Hub of the tests hands out)
CHUNK = 65_536
"""Bytes of a chunk of what the Hub itself puts there; the client's have about as many."""


@dataclass
class Storage:
    """All xorbs and files, and the answer to each call."""

    endpoint: str = ""
    xorbs: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    by_sha256: dict[str, str] = field(default_factory=dict)

    def answer(self, step: str, call: Call) -> Answer:
        if step not in {"cas-fetch", "cas-bridge"} and call.token != CAS_TOKEN:
            raise Refusal(401)
        answer: Answer = getattr(self, f"_{step.removeprefix('cas-')}")(call)
        return answer

    def add(self, content: bytes) -> str:
        """Put a file there, and return its name: no client looks whether that is its digest."""
        name = hashlib.sha256(content).hexdigest()
        pieces = [content[at : at + CHUNK] for at in range(0, len(content), CHUNK)]
        self.xorbs[name] = b"".join(stored(piece) for piece in pieces)
        term = Term(name, len(content), 0, len(pieces))
        self.files[name] = File(name, name, (term,))
        self.by_sha256[name] = name
        return name

    def content(self, sha256: str) -> bytes | None:
        """Put a file together again, if it was uploaded whole."""
        if sha256 not in self.by_sha256:
            return None
        file = self.files[self.by_sha256[sha256]]
        made = b"".join(
            chunk.content
            for term in file.terms
            for chunk in self._chunks(term.xorb)[term.start : term.end]
        )
        return made if hashlib.sha256(made).hexdigest() == sha256 else None

    def _chunks(self, xorb: str) -> tuple[Chunk, ...]:
        return chunks_of(self.xorbs[xorb])

    def _dedup(self, _: Call) -> Answer:
        raise Refusal(404)  # nothing is known of anybody's chunks

    def _grant(self, _: Call) -> Answer:
        raise Refusal(404)  # a signed address to upload to; without one the client sends it here

    def _xorb(self, call: Call) -> Answer:
        chunks_of(call.body)
        new = call.path not in self.xorbs
        self.xorbs[call.path] = call.body
        return as_json({"was_inserted": new})

    def _shard(self, call: Call) -> Answer:
        for file in files_of(call.body):
            if any(term.xorb not in self.xorbs for term in file.terms):
                raise Refusal(400)
            self.files[file.name] = file
            self.by_sha256[file.sha256] = file.name
        if call.name == "v1":
            return as_json({"result": 1})
        return 200, {"Content-Type": "application/x-ndjson"}, b'{"type":"result"}\n'

    def _reconstruction(self, call: Call) -> Answer:
        """List the terms of a file, or of a range of it, and where the bytes of each lie."""
        file = self.files.get(call.path)
        if file is None:
            raise Refusal(404)
        first, last = _range(call.range, sum(term.size for term in file.terms))
        terms: list[dict[str, object]] = []
        fetches: dict[str, list[object]] = {}
        at = skipped = 0
        for term in file.terms:
            begin, at = at, at + term.size
            if at <= first or begin > last:
                continue
            if not terms:
                skipped = first - begin
            chunks = {"start": term.start, "end": term.end}
            terms.append({"hash": term.xorb, "unpacked_length": term.size, "range": chunks})
            held = self._chunks(term.xorb)[term.start : term.end]
            bytes_ = {"start": held[0].start, "end": held[-1].end - 1}
            fetches.setdefault(term.xorb, []).append(
                {
                    "url": f"{self.endpoint}/signed/{term.xorb}?signature=of-tests",
                    "ranges": [{"chunks": chunks, "bytes": bytes_}],
                }
            )
        return as_json({"offset_into_first_range": skipped, "terms": terms, "xorbs": fetches})

    def _fetch(self, call: Call) -> Answer:
        xorb = self.xorbs[call.path]
        first, last = _range(call.range, len(xorb))
        headers = {"Content-Range": f"bytes {first}-{last}/{len(xorb)}"}
        return 206, headers, xorb[first : last + 1]

    def _bridge(self, call: Call) -> Answer:
        """Send a whole file to who knows nothing of Xet; a token has no business here."""
        content = self.content(call.path)
        if call.token or content is None:
            raise Refusal(400 if call.token else 404)
        return 200, {}, content


def _range(request: str, size: int) -> tuple[int, int]:
    """Return the first and the last byte of a Range header, of all bytes without one."""
    if not request:
        return 0, size - 1
    first, _, last = request.removeprefix("bytes=").partition("-")
    if int(first) >= size:
        raise Refusal(416)
    return int(first), min(int(last or size), size - 1)


def route(path: str) -> tuple[str, str, str, str, str]:
    """Return step, resource, version, revision and digest of an address of the storage."""
    version, kind, *rest = path.strip("/").split("/")
    step = _STEPS.get(version if version in {"signed", "bridge"} else kind, "other")
    digest = rest[-1] if rest else kind
    return step, "", version, "main", digest


_STEPS = {
    "signed": "cas-fetch",
    "bridge": "cas-bridge",
    "chunks": "cas-dedup",
    "xorb-grants": "cas-grant",
    "xorbs": "cas-xorb",
    "shards": "cas-shard",
    "reconstructions": "cas-reconstruction",
}
