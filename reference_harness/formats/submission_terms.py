"""Terms and limits of submissions and receipts, without pydantic, which is slow to import."""

from pathlib import Path
from typing import Literal, get_args

FormatVersion = Literal["1.0", "1.1", "1.2"]
"""A version of the submission format."""
VERSIONS: tuple[FormatVersion, ...] = get_args(FormatVersion)
"""Versions of the format, the values of `schema_version`."""
BY_ENTRY = "1.1 by entry"
"""Key in `submission.MODELS` of format 1.1 with an entry of the model registry instead of a run."""
ENTRY_MEMBER = "registry_entry"
"""The member that only such a file has."""

Dtype = Literal["float64", "float32", "float16", "bfloat16"]
"""A type of numbers in which a model can compute."""
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
"""Types in which a model can compute."""
SourceKind = Literal["huggingface", "url", "local", "none"]
"""A kind of source of weights."""
SOURCE_KINDS: tuple[SourceKind, ...] = get_args(SourceKind)
"""Kinds of sources of weights; `none` for a method without weights."""
Truncation = Literal["none", "right", "left", "windows"]
"""How a sequence that is longer than the model's limit is shortened."""
TRUNCATIONS: tuple[Truncation, ...] = get_args(Truncation)
"""Ways to shorten a sequence that is longer than the model's limit."""
Scale = Literal["none", "unit"]
"""Scale of embeddings: unchanged, or each divided by the root mean square of its values."""
UNNAMED = "unnamed"
"""Value of `submitted_by` that the harness writes if none was given."""

SUBMISSION_BYTES_MAX = 1_000_000
"""Largest file of a submission, in bytes. 300 cells of two classes, with five seeds, digests,
matrices and canonical scores, have 340,000 bytes in format 1.2."""
TIME_PATTERN = r"^[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}(\.[0-9]{1,6})?Z$"
"""A time in UTC (RFC 3339), to the second or finer."""
MODEL_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""Pattern of the id of a model, which names its submission file."""
MODEL_ID_MAX = 128
"""Maximum number of characters of the id of a model. File systems limit names to 255 bytes;
".json" or ".md" is appended to the id, and audits add a folder."""
DISPLAY_MAX = 80
"""Maximum number of characters of a model's name on the board: longer ones break its first
column."""
LINE_MAX = 300
"""Maximum number of characters of a value that is shown on one line."""
TEXT_MAX = 4000
"""Maximum number of characters of a paragraph; the model card has more."""
PARAMS_MAX = 10**14
"""Maximum number of parameters, 100 times a model with a trillion; more is a typing error."""

EMBEDDINGS_SUFFIX = ".f16"
"""Ending of the file of one task in a receipt."""
FLOAT16_BYTES = 2
"""Number of bytes of a float16."""
UNSCALED_MIN, FLOAT16_MAX = 2.0**-6, 65504.0
"""A task whose largest magnitude is between these has the scale 2^0, so that equal sequences have
equal bytes in different tasks. float16 has full precision down to 2^-14, a factor of 2^8 below the
smaller bound."""
SCALED_MAGNITUDE_LOG2 = 14
"""A task outside this range is scaled so that its largest magnitude is in [2^14, 2^15)."""
SCALE_MIN, SCALE_MAX = -148, 112
"""Smallest and largest exponent of the scale of a task: the largest magnitude of its embeddings is
from 2^-134 to 2^127. Up to 112, every float16 value times 2^scale is a finite float32."""
UNREAD_SHARE_MAX = 0.01
"""Share of the letters that may be unread without a finding: the remainder of k-mers at the end of
a sequence of 300 letters, or a few N."""


def receipt_file(folder: Path, task: str) -> Path:
    """Return the file of a task in the folder of a receipt."""
    return folder / f"{task}{EMBEDDINGS_SUFFIX}"
