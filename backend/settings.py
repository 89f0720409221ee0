"""What a partitioner asks of the backend, carried through ExecuTorch in compile specs.

    settings = Settings(passes="remove-async-asserts", device="cpu")
    Settings.from_specs(settings.to_specs()) == settings

Compile specs are bytes under a key, and the only thing that reaches a backend's `preprocess`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import torch

from backend._executorch import CompileSpec
from backend.errors import InvalidArgument, NotSupported
from fxpasses import Pipeline


@dataclass(frozen=True)
class Settings:
    """The text of a pipeline, a device ("cpu", "cuda", "cuda:1") and the method's name."""

    passes: str
    device: str
    method: str = "forward"

    def to_specs(self) -> list[CompileSpec]:
        """One compile spec for each field; the value is the field's text."""
        return [CompileSpec(f.name, getattr(self, f.name).encode()) for f in fields(self)]

    @classmethod
    def from_specs(cls, specs: Iterable[CompileSpec]) -> Settings:
        """Read `specs`; a later one replaces an earlier one of the same key, others are left alone.

        Raises:
            InvalidArgument: the pipeline's text or the device is missing.
        """
        found = {spec.key: bytes(spec.value).decode() for spec in specs}
        missing = [name for name in ("passes", "device") if name not in found]
        if missing:
            raise InvalidArgument(
                f"compile spec {missing[0]!r} is missing; CudaPartitioner(...) writes all of them"
            )
        return cls(found["passes"], found["device"], found.get("method", "forward"))


def device_name(device: str | torch.device | None) -> str:
    """The device's name in the form that programs carry; None picks the GPU where there is one.

    Raises:
        InvalidArgument: not the name of a CPU or a CUDA device.
    """
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        parsed = torch.device(device)
    except (RuntimeError, TypeError):
        parsed = None
    if parsed is None or parsed.type not in ("cpu", "cuda"):
        raise InvalidArgument(f'device {str(device)!r} is neither "cpu" nor "cuda" or "cuda:N"')
    return "cpu" if parsed.type == "cpu" else str(parsed)


def pipeline_text(passes: str | Pipeline | None, device: str) -> str:
    """The full text of `passes`, or where that is None of the pipeline made for the device.

    Raises:
        fxpasses.PassError: the text is wrong; an unknown pass is `UnknownPass`.
    """
    chosen = torch.device(device).type if passes is None else str(passes)
    return str(Pipeline.parse(chosen))


def require_device(name: str) -> None:
    """Make sure that this machine has the device `name`.

    Raises:
        NotSupported: it has not.
    """
    device = torch.device(name)
    if device.type == "cpu":
        return
    count = torch.cuda.device_count()
    if (device.index or 0) >= count:
        raise NotSupported(
            f'device "{name}" is not there: this machine has {count} CUDA devices; use device="cpu"'
        )
