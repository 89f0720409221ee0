"""A compiled library, opened: the one place that talks to torch's AOTInductor runner.

Known to work with torch 2.11 to 2.14 (`torch._C._aoti`, the runner behind
`torch._inductor.aoti_load_package`; it is the only way to hand a library weights that stay ours).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._C import _aoti

from backend.errors import Internal, InvalidProgram, first_line


class Library:
    """A library in this process, from `open_library`.

    Weights are bound by reference: the library reads them, and writes the buffers among them, in
    place. So state lives in tensors that the caller owns.
    """

    def __init__(self, runner: Any) -> None:
        self._runner = runner

    def constants(self) -> dict[str, str]:
        """The library's constants: its own name for each, and the weight's name in the program."""
        return dict(self._runner.get_constant_names_to_original_fqns())

    def bind(self, weights: Mapping[str, Tensor]) -> None:
        """Let the library use `weights`, by their names in the program.

        Raises:
            InvalidProgram: a weight is missing.
        """
        names = self.constants()
        missing = sorted(set(names.values()) - set(weights))
        if missing:
            raise InvalidProgram(f"the weights blob lacks {', '.join(missing)}")
        if names:
            tensors = {name: weights[weight] for name, weight in names.items()}
            self._runner.update_constant_buffer(tensors, False, True, True)

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run on tensors of the shapes, dtypes, strides and device that were compiled for.

        Raises:
            Internal: the library reports an error.
        """
        try:
            results: list[Tensor] = self._runner.run(list(inputs))
        except RuntimeError as error:
            raise Internal(f"the compiled library failed: {first_line(error)}") from error
        return results


def open_library(path: Path, device: str) -> Library:
    """Load the shared library at `path` for `device`; the file may go once this has returned.

    Raises:
        InvalidProgram: the dynamic loader or the library itself refuses.
    """
    try:
        if torch.device(device).type == "cuda":
            return Library(_aoti.AOTIModelContainerRunnerCuda(str(path), 1, device))
        return Library(_aoti.AOTIModelContainerRunnerCpu(str(path), 1))
    except RuntimeError as error:
        raise InvalidProgram(f"the library cannot be loaded: {first_line(error)}") from error
