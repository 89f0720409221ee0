"""What a method takes and gives, one tensor at a time.

    TensorSpec("x", "float32", (Dynamic("s77", 0, 20), 3), (0, 1), "cpu")

prints as `x: float32[s77[0..20], 3]`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from backend.program.fields import Fields
from backend.program.sizes import Size, size_from_json, size_to_json

NUMBER_KINDS = ("int", "float", "bool")


@dataclass(frozen=True)
class TensorSpec:
    """One input or output of a method.

    Attributes:
        name: as in the exported graph.
        dtype: "float32", "int64", ...
        shape: sizes; a dynamic one has a symbol and a range.
        dim_order: the dims from the outermost in memory to the innermost; (0, 2, 3, 1) is
            channels_last. An input is dense in this order.
        device: "cpu", "cuda", "cuda:N".
        kind: "tensor", or "int", "float", "bool" for an output that is a number to the caller.
    """

    name: str
    dtype: str
    shape: tuple[Size, ...]
    dim_order: tuple[int, ...]
    device: str
    kind: str = "tensor"

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return f"{self.name}: " + (f"{self.dtype}[{shape}]" if self.kind == "tensor" else self.kind)

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype as torch has it."""
        dtype: torch.dtype = getattr(torch, self.dtype)
        return dtype

    def to_json(self) -> dict[str, Any]:
        """The object in the payload's "inputs" and "outputs"."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": [size_to_json(size) for size in self.shape],
            "dim_order": list(self.dim_order),
            "device": self.device,
            "kind": self.kind,
        }

    @classmethod
    def from_json(cls, fields: Fields) -> TensorSpec:
        """Read what `to_json` wrote.

        Raises:
            InvalidProgram: naming the field that is missing or wrong.
        """
        shape = [size_from_json(size, fields, "shape") for size in fields.values("shape")]
        order = fields.values("dim_order")
        if sorted(order, key=str) != sorted(range(len(shape)), key=str):
            raise fields.wrong("dim_order", "an order of the shape's dims")
        return cls(
            name=fields.text("name"),
            dtype=dtype_name(fields),
            shape=tuple(shape),
            dim_order=tuple(order),
            device=fields.text("device"),
            kind=kind_name(fields),
        )


def dtype_name(fields: Fields) -> str:
    """The field "dtype", checked to name a dtype of this torch."""
    name = fields.text("dtype")
    if not isinstance(getattr(torch, name, None), torch.dtype):
        raise fields.wrong("dtype", "a dtype that this torch knows")
    return name


def kind_name(fields: Fields) -> str:
    """The field "kind", checked to be one that this runtime hands out."""
    name = fields.text("kind")
    if name != "tensor" and name not in NUMBER_KINDS:
        raise fields.wrong("kind", "a kind that this runtime knows")
    return name
