"""The last work of a server of tests.forked, which none of its forks then repeats.

They build no model, generate no sequence of GENEB-mini, read no metadata of installed packages, and
copy no page to collect garbage.
"""

import gc
from collections.abc import Iterator

from pydantic import BaseModel

from reference_harness import environment, mini
from reference_harness.extractors.kmer import KmerExtractor


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


for _model in set(_models(BaseModel)):
    if _model.__module__.startswith(("geneb_ci.", "reference_harness.")):
        _model.model_rebuild()
for _task in mini.TASKS:
    mini.load(_task.id)
environment.packages_of(KmerExtractor())
gc.collect()
gc.freeze()
