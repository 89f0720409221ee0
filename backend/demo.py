"""The demo: a real model from export to a .pte that is proved equal to eager.

SmolVLM's vision embeddings write their position ids through a boolean mask: two reads of a count,
and on a GPU two waits, in every call. The default pipeline removes both. The weights are random
and the configuration is small, so nothing is downloaded.

    fxpasses demo --output demo-output
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.utils._python_dispatch import TorchDispatchMode

import backend
from backend._executorch import quietly
from decomps import decomposition_table
from fxpasses.analysis import host_reads
from fxpasses.cli.console import print_remarks, print_reports, print_table, working
from fxpasses.files import write_text
from fxpasses.inspect import Inspection, inspect_pipeline

aten = torch.ops.aten
# A wrong position id picks another row of the embedding and is off by about 1. The convolution of
# the patches may differ in its last bits: Inductor and eager may sum in different orders.
TOLERANCE = 1e-5


class Call(NamedTuple):
    """Inputs of one call: images f32[2, 3, 64, 64], and which patches hold one, bool[2, 4, 4]."""

    pixel_values: Tensor
    patch_attention_mask: Tensor


def show(output: Path, device: str | None = None) -> bool:
    """Run the demo, write its files into `output`, and say whether all of it held."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    module = vision_embeddings().to(device)
    calls = list(fresh_calls(device))
    with working("exporting"):
        exported = torch.export.export(module, calls[0])
        program = exported.run_decompositions(decomposition_table(device))
    with working("running the passes"):
        inspection = inspect_pipeline(program, "default")
    _show_passes(inspection)
    reads = _show_reads(inspection, calls[:5])
    with working("compiling"):
        path = backend.lower(exported, inspection.pipeline, device).save(output / "smolvlm.pte")
    equal = _show_calls(path, module, calls)
    _write(inspection, output)
    return equal and reads == 0


def vision_embeddings() -> torch.nn.Module:
    """SmolVLM's vision embeddings with random weights: 16 patches an image, 64 channels.

    Raises:
        NotSupported: transformers is not installed.
    """
    try:
        with quietly():  # torchao, which transformers imports, warns about itself
            from transformers import SmolVLMVisionConfig
            from transformers.models.smolvlm.modeling_smolvlm import SmolVLMVisionEmbeddings
    except ImportError as error:
        raise backend.NotSupported(
            "the demo takes its model from transformers: pip install 'fxpasses[models]'"
        ) from error
    config = SmolVLMVisionConfig(hidden_size=64, image_size=64, patch_size=16)
    module: torch.nn.Module = SmolVLMVisionEmbeddings(config)
    return module.eval().requires_grad_(False)


def fresh_calls(device: str) -> Iterator[Call]:
    """Random images with random masks; among the masks one that is all True, one all False."""
    for density in (0.7, 0.5, 1.0, 0.0, 0.3, 0.9):
        pixels = torch.randn(2, 3, 64, 64, device=device)
        yield Call(pixels, torch.rand(2, 4, 4, device=device) < density)


def _show_passes(inspection: Inspection) -> None:
    click.echo(f"pipeline: {inspection.pipeline}\n")
    print_reports(inspection.result.reports)
    click.echo()
    print_remarks(inspection.remarks)
    click.echo()


def _show_reads(inspection: Inspection, calls: Sequence[Call]) -> int:
    """Print the count reads before and after the passes; return how many are left."""
    programs = {"before": inspection.program, "after": inspection.result.program}
    rows = [
        (name, len(host_reads(program)), _counted(program.module(), calls))
        for name, program in programs.items()
        if isinstance(program, ExportedProgram)
    ]
    print_table(("count reads", "per call, by analysis", f"counted in {len(calls)} calls"), rows)
    click.echo()
    _, analysed, counted = rows[-1]
    return analysed + counted


def _counted(module: torch.nn.Module, calls: Sequence[Call]) -> int:
    counter = CountReads()
    with counter:
        for call in calls:
            module(*call)
    return counter.reads


def _show_calls(path: Path, module: torch.nn.Module, calls: Sequence[Call]) -> bool:
    """Call the lowered program and eager on the same inputs; return whether all agree."""
    agree = True
    with backend.load(path) as program:
        for number, call in enumerate(calls, start=1):
            result, expected = program["forward"](*call), module(*call)
            difference = float((result - expected).abs().max())
            exact = torch.equal(
                position_ids(module, call, result), position_ids(module, call, expected)
            )
            equal = exact and difference <= TOLERANCE
            agree &= equal
            click.echo(
                f"call {number}: {'equal to eager' if equal else 'DIFFERS from eager'}, "
                f"position ids {'exact' if exact else 'WRONG'}, largest difference {difference:.1e}"
            )
    click.echo(f"tolerance {TOLERANCE:.0e}: the convolution may sum in another order than eager\n")
    return agree


def position_ids(module: Any, call: Call, result: Tensor) -> Tensor:
    """The ids that `result`, f32[2, 16, 64], was made with: i64[2, 16].

    A result is the patches plus the embedding's rows; the nearest row tells the id.
    """
    patches = module.patch_embedding(call.pixel_values).flatten(2).transpose(1, 2)
    return torch.cdist(result - patches, module.position_embedding.weight).argmin(-1)


def _write(inspection: Inspection, output: Path) -> None:
    write_text(output / "before.txt", inspection.before + "\n")
    write_text(output / "after.txt", inspection.after + "\n")
    inspection.save(output / "report.html")
    for name in ("before.txt", "after.txt", "report.html", "smolvlm.pte"):
        path = output / name
        click.echo(f"wrote {path} ({path.stat().st_size:,} bytes)")


class CountReads(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """Counts the operators that must know how many elements a mask picks, as they run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.reads = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (aten.index.Tensor, aten.index_put.default):
            self.reads += any(index is not None and index.dtype is torch.bool for index in args[1])
        return func(*args, **(kwargs or {}))
