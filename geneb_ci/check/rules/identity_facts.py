"""Rules on what identifies a model besides its names: links, size, submitter, scores."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from geneb_ci.check.rule import Context, Rule, reading_rule
from geneb_ci.common.finding import Fault, Need, Severity
from geneb_ci.common.hosts import PUBLIC_ADDRESS
from reference_harness.formats.submission_terms import UNNAMED
from reference_harness.formats.text import quoted

_HOST_NAME = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")
"""A host name. Numbers are refused: 10.0.0.1, 0x7f.1 and [::1] may be machines in the reader's own
network."""


def bad_url(context: Context) -> Iterator[Fault]:
    """Report a URL that is not safe to link to, or to fetch from; an empty link is allowed."""
    url = context.text("meta", "url")
    objection = url and _url_objection(url)
    if objection:
        yield Fault(
            BAD_URL.id,
            ("meta", "url"),
            f"url {quoted(url)} {objection}",
            quoted(url),
            "https://host/path",
        )
    for path, key in _ADDRESS_KEYS:
        origin = context.table(*path)
        address = origin.get(key)
        if (
            origin.get("kind") == "url"
            and isinstance(address, str)
            and not PUBLIC_ADDRESS.fullmatch(f"{address.rstrip('/')}/")
        ):
            yield Fault(
                BAD_URL.id,
                (*path, key),
                f"{key} {quoted(address)} is not https, has no host name, or has a query",
                quoted(address),
                "https://host/path",
            )


_ADDRESS_KEYS = ((("receipt", "location"), "address"), (("run", "model"), "location"))
"""Members that say where files are: the path of each, and the key of the address in that member."""


def _url_objection(url: str) -> str:
    """Return why a URL is refused, or ""."""
    if not url.isascii() or not url.isprintable() or any(c in url for c in ' \\<>"`{}|^'):
        return "has characters that are not allowed in a URL"
    try:
        parsed = urlsplit(url)
        port = parsed.port
    except ValueError as error:
        return f"cannot be parsed: {error}"
    host = parsed.hostname or ""
    objections = {
        "does not begin with https://": parsed.scheme != "https",
        "has a user name before the host, which can be mistaken for the host": "@" in parsed.netloc,
        "names a port": port is not None,
        "has a host in punycode, which can look like another": any(
            label.startswith("xn--") for label in host.split(".")
        ),
        "has no host name": _HOST_NAME.fullmatch(host) is None,
    }
    return next((reason for reason, is_true in objections.items() if is_true), "")


BAD_URL = Rule(
    id="bad-url",
    severity=Severity.ERROR,
    what="The link is not a plain https URL.",
    why=(
        "The board links to it: a script, a look-alike host or a user name before an @ would send "
        "readers to another site. Files are fetched from it: a number, in any spelling, would lead "
        "into a private network."
    ),
    fix=(
        "Link to the weights or the paper, such as https://huggingface.co/org/model, or leave "
        '"url" empty. Publish files on a server with a name.'
    ),
    check=bad_url,
)


def parameter_count_disagrees(context: Context) -> Iterator[Fault]:
    """Report a count that differs from both counts in the model registry, actual and published."""
    params = context.member("meta", "params")
    registry_facts = context.registry_facts
    counts = [registry_facts[key] for key in ("params", "params_in_paper") if key in registry_facts]
    if counts and type(params) is int and params not in counts:
        yield Fault(
            PARAMETER_COUNT_DISAGREES.id,
            ("meta", "params"),
            f"params is {params:,}; the model registry has {' or '.join(f'{n:,}' for n in counts)}",
            str(params),
            " or ".join(map(str, counts)),
        )


PARAMETER_COUNT_DISAGREES = Rule(
    id="parameter-count-disagrees",
    severity=Severity.WARNING,
    what="The parameter count differs from that in the model registry.",
    why="The board plots score against parameter count.",
    fix="Count the parameters of the encoder; if the model registry is wrong, open an issue.",
    check=parameter_count_disagrees,
)


def missing_submitter(context: Context) -> Iterator[Fault]:
    """Report a `submitted_by` that is empty or the harness's placeholder."""
    name = context.member("meta", "submitted_by")
    if not isinstance(name, str):
        return
    if not name.strip():
        yield Fault(
            MISSING_SUBMITTER.id,
            ("meta", "submitted_by"),
            "submitted_by is empty",
            quoted(name),
            "a name",
        )
    elif name.strip().casefold() == UNNAMED:
        message = f"submitted_by is {quoted(name)}, the placeholder of a run without --submitted-by"
        yield Fault(MISSING_SUBMITTER.id, ("meta", "submitted_by"), message, quoted(name), "a name")


MISSING_SUBMITTER = Rule(
    id="missing-submitter",
    severity=Severity.WARNING,
    what="The submission does not say who ran the evaluation.",
    why="Readers need somebody whom they can ask about a number.",
    fix=(
        'Write your name, your group or your GitHub handle in "meta.submitted_by", or pass it to '
        "the harness: `geneb-harness run --submitted-by NAME`."
    ),
    check=missing_submitter,
)


def identical_results(context: Context) -> Iterator[Fault]:
    """Report each other file with the same scores in every cell."""
    digest = context.scores_digest
    if digest is None:
        return
    for path in context.peers.paths_by_digest.get(digest, ()):
        if path != context.document.path:
            yield Fault(
                IDENTICAL_RESULTS.id,
                ("results",),
                f"every score equals that of {quoted(path.name)}",
                "the same scores",
                "scores of this model",
                on_key=True,
            )


IDENTICAL_RESULTS = Rule(
    id="identical-results",
    severity=Severity.WARNING,
    what="Another file has exactly the same scores in every cell.",
    why=(
        "Two models never agree on every prediction: either the file was copied, or the wrong "
        "weights were loaded."
    ),
    fix="Check which weights the extractor loads. To correct your own row, edit its file.",
    check=identical_results,
    needs=(Need.OTHER_ROWS,),
)


REPORTED = (
    reading_rule(
        "identity",
        "bad-parameter-count",
        what="The parameter count is negative or larger than 10^14.",
        why="The board plots score against parameter count.",
        fix="Write the number of parameters of the encoder as an integer, such as 117000000; 0 for "
        "a method without parameters.",
    ),
)
"""Rules that the reader of the file reports; only their texts are here."""
