"""Call AOTInductor: a program in, a library and the weights that it asks for out.

The library holds code only. Weights stay beside it, so that several programs can share them and a
buffer that is written lives in a tensor of the runtime's. Options are chosen here and nowhere else.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch._inductor as inductor
from torch import Tensor
from torch._inductor.exc import InvalidCxxCompiler
from torch.export import ExportedProgram

from backend.compile.library import open_library
from backend.compile.numbers import round_numbers
from backend.compile.roundings import roundings_kept
from backend.errors import AccessFailed, Internal, first_line
from backend.program.weights import pack

LOCK = threading.RLock()  # torch.export and Inductor keep state that two threads would share


def options(device: str, fold: bool, directory: Path) -> dict[str, Any]:
    """Inductor's options.

    `fold` says whether constants may be folded: Inductor (torch 2.11 to 2.14) folds a buffer of
    uniform content although the program writes it, and so freezes its first value. Precision casts
    are kept as eager rounds, since eager is what a lowered program is compared with.
    """
    chosen: dict[str, Any] = {
        "aot_inductor.output_path": f"{directory}/",
        "aot_inductor.package": True,
        "aot_inductor.package_constants_in_so": False,
        "aot_inductor.package_constants_on_disk_format": "pickle_weights",
        "emulate_precision_casts": True,
        "joint_graph_constant_folding": fold,
    }
    if torch.device(device).type == "cuda":
        chosen["aot_inductor.embed_kernel_binary"] = True
    return chosen


@dataclass(frozen=True)
class Compiled:
    """The bytes of each blob, by kind, and the weights that lie in host memory for a device."""

    blobs: dict[str, bytes]
    host_weights: tuple[str, ...]


def on_host(weights: dict[str, Tensor], device: str) -> tuple[str, ...]:
    """The names of the weights that a program for another device keeps in host memory."""
    if torch.device(device).type == "cpu":
        return ()
    return tuple(sorted(name for name, tensor in weights.items() if tensor.device.type == "cpu"))


def compile_program(
    program: ExportedProgram, inputs: Sequence[Any], device: str, fold: bool
) -> Compiled:
    """Compile `program` for `inputs`; fake tensors will do.

    On a CPU the numbers in the graphs of `program` are rounded in place, as eager rounds them.
    The library is opened once, to see that it asks for no weight that it does not get. Work goes on
    in a private directory that is gone afterwards, whatever happens.

    Raises:
        AccessFailed: there is no C++ compiler.
        Internal: Inductor fails, or asks for weights that it does not give.
    """
    with LOCK, TemporaryDirectory(prefix="fxpasses-compile-") as name, torch.no_grad():
        if torch.device(device).type == "cpu":
            round_numbers(program.graph_module)
        artifacts = call_inductor(program, tuple(inputs), options(device, fold, Path(name)))
        weights = next((a for a in artifacts if isinstance(a, dict)), {})
        tensors = {name: tensor for name, (tensor, _) in weights.items()}
        library = path_with(artifacts, ".so")
        check_weights(library, device, tensors)
        blobs = {"library": library.read_bytes(), "weights": pack(tensors)}
        kernels = library.with_suffix(".json")
        if kernels.exists():
            blobs["extern_kernels"] = kernels.read_bytes()
        return Compiled(blobs, on_host(tensors, device))


def call_inductor(
    program: ExportedProgram, inputs: tuple[Any, ...], chosen: dict[str, Any]
) -> list[Any]:
    """The files that AOTInductor wrote and its dictionary of weights."""
    try:
        with roundings_kept():
            artifacts: Any = inductor.aot_compile(program.module(), inputs, options=chosen)
        return list(artifacts)
    except Exception as error:  # Inductor raises errors of any kind, from any depth
        if isinstance(root(error), InvalidCxxCompiler):
            raise AccessFailed(
                "no C++ compiler was found; install g++ or name one in CXX"
            ) from error
        raise Internal(f"AOTInductor cannot compile the program: {first_line(error)}") from error


def root(error: BaseException) -> BaseException:
    """The error that others were raised from."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def path_with(artifacts: Sequence[Any], suffix: str) -> Path:
    """The one file among `artifacts` whose name ends with `suffix`."""
    found = [a for a in artifacts if isinstance(a, str) and a.endswith(suffix)]
    if len(found) != 1:
        raise Internal(f"AOTInductor wrote {len(found)} files named *{suffix}, expected one")
    return Path(found[0])


def check_weights(library: Path, device: str, tensors: dict[str, Tensor]) -> None:
    """Every weight that the library asks for must be among `tensors`."""
    wanted = set(open_library(library, device).constants().values())
    missing = sorted(wanted - set(tensors))
    if missing:
        raise Internal(f"AOTInductor gave no value for {', '.join(missing)}")
