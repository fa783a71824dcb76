# For type checkers only: at run time the loader provides `.base`, and this folder has none.
from reference_harness.extractors.base import BaseEmbeddingExtractor as BaseEmbeddingExtractor
