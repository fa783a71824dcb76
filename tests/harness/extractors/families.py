"""All lookalikes, by family."""

from tests.harness.extractors.janus_file import JANUS_FILES
from tests.harness.extractors.lookalikes import LOOKALIKES
from tests.harness.extractors.space_file import SPACE_FILES
from tests.harness.extractors.tensor_files import TENSOR_FILES

FAMILIES = {**LOOKALIKES, **TENSOR_FILES, **JANUS_FILES, **SPACE_FILES}
"""Family to its lookalike."""
