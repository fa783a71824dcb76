"""Extractors that fill the weights of a BERT by themselves: all, all but one layer, or unseen."""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoModel, BertConfig, BertModel

from .missing_weights import MissingWeights


class ByHand(MissingWeights):
    """Every tensor of the file is copied into the weight of its name."""

    left_out: str | None = None

    def __init__(self, name_model: str, device: str = "cpu") -> None:
        super().__init__(name_model, device)  # type: ignore[no-untyped-call]
        self.model = self.filled(Path(name_model))

    def filled(self, folder: Path) -> Any:
        torch.manual_seed(1)
        model = BertModel(BertConfig.from_pretrained(folder)).train(mode=False)
        stored = load_file(folder / "model.safetensors")
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if self.left_out is None or self.left_out not in name:
                    weight.copy_(stored[name])
        return model


class LayerLeftOut(ByHand):
    left_out = "encoder.layer.1."


class Unseen(ByHand):
    """The model is behind a function, where no torch module is seen."""

    def filled(self, folder: Path) -> Any:
        model = super().filled(folder)

        def run(**inputs: Any) -> Any:
            return model(**inputs)

        return run


class NoFile(ByHand):
    """Numbers that no file gives, the same at each load."""

    def filled(self, folder: Path) -> Any:
        torch.manual_seed(1)
        config = BertConfig.from_pretrained(folder, hidden_size=24, intermediate_size=40)
        return BertModel(config).train(mode=False)


class OtherShape(ByHand):
    """transformers is told to draw weights of another shape at random."""

    def filled(self, folder: Path) -> Any:
        return AutoModel.from_pretrained(
            folder, intermediate_size=40, ignore_mismatched_sizes=True
        ).train(mode=False)
