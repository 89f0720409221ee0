"""SmolVLM's vision embeddings with random weights and a small configuration: no download."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from backend._executorch import quietly
from backend.errors import NotSupported


class Call(NamedTuple):
    """Inputs of one call: images f32[2, 3, 64, 64], and which patches hold one, bool[2, 4, 4]."""

    pixel_values: Tensor
    patch_attention_mask: Tensor


def vision_embeddings() -> torch.nn.Module:
    """The module: 16 patches an image, 64 channels.

    Raises:
        NotSupported: transformers is not installed.
    """
    try:
        with quietly():  # torchao, which transformers imports, warns about itself
            from transformers import SmolVLMVisionConfig
            from transformers.models.smolvlm.modeling_smolvlm import SmolVLMVisionEmbeddings
    except ImportError as error:
        raise NotSupported(
            "the demo takes its model from transformers: pip install 'fxpasses[models]'"
        ) from error
    config = SmolVLMVisionConfig(hidden_size=64, image_size=64, patch_size=16)
    module: torch.nn.Module = SmolVLMVisionEmbeddings(config)
    return module.eval().requires_grad_(False)


def fresh_calls(device: str) -> Iterator[Call]:
    """Random images; an image fills the upper left of its patches, all of them or none at times."""
    for rows, columns in ((4, 4), (0, 0), (3, 2), (1, 4), (2, 3), (4, 1)):
        pixels = torch.randn(2, 3, 64, 64, device=device)
        mask = torch.zeros(2, 4, 4, dtype=torch.bool, device=device)
        mask[0, :rows, :columns] = True
        mask[1, : torch.randint(1, 5, ()), : torch.randint(1, 5, ())] = True
        yield Call(pixels, mask)


def position_ids(module: Any, call: Call, result: Tensor) -> Tensor:
    """The ids that `result`, f32[2, 16, 64], was made with: i64[2, 16].

    A result is the patches plus the embedding's rows; the nearest row tells the id.
    """
    patches = module.patch_embedding(call.pixel_values).flatten(2).transpose(1, 2)
    return torch.cdist(result - patches, module.position_embedding.weight).argmin(-1)
