"""The program as eager runs it: what a lowered one must equal."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.utils._pytree import tree_map

from backend.compile.method import on_device
from fxpasses.analysis import writes_buffers


class Eager:
    """A program on a device, with state of its own.

    A call that raises leaves the state as it was, as if it had not been made.

    Attributes:
        example_inputs: (args, kwargs) that the program was exported with, on the device.
    """

    def __init__(self, program: ExportedProgram, device: str) -> None:
        args, kwargs = program.example_inputs
        self.example_inputs = tree_map(
            lambda v: v.detach().to(device) if isinstance(v, Tensor) else v, (args, kwargs)
        )
        self._module = on_device(program, device).module()
        self._written = {write.buffer for write in writes_buffers(program)}
        for name in self._written:
            self._set(name, self.buffer(name).clone())

    def buffer(self, name: str) -> Tensor:
        """The buffer `name` as it is now."""
        owner, _, leaf = name.rpartition(".")
        found: Tensor = getattr(self._module.get_submodule(owner), leaf)
        return found

    def _set(self, name: str, value: Tensor) -> None:
        owner, _, leaf = name.rpartition(".")
        setattr(self._module.get_submodule(owner), leaf, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run eagerly."""
        before = {name: self.buffer(name).clone() for name in self._written}
        try:
            with torch.no_grad():
                return self._module(*args, **kwargs)
        except Exception:
            for name, value in before.items():
                self.buffer(name).copy_(value)
            raise
