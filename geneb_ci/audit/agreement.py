"""What counts as agreement, fixed at the commitment: what every tolerance rests on."""

from geneb_ci.audit.canonical import digest

# Refits on jittered embeddings, at least: fewer say too little of the spread.
COPIES = 16
# Probability that an honest audit as a whole is disputed, at most. A text, since canonical JSON
# here has no floats.
FALSE_ALARM = "0.001"


def agreement_digest() -> str:
    """Give the digest that a commitment names as its tolerance."""
    return digest({"copies": COPIES, "false_alarm": FALSE_ALARM})
