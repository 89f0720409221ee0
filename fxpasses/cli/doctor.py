"""`fxpasses doctor`: what this machine has, what it lacks, and the way out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import click
import torch

from fxpasses.cli.console import print_table

# Which ExecuTorch was built for which torch.
_PAIRS = {"2.11": "1.2", "2.13": "1.4", "2.14": "1.5"}


class Finding(NamedTuple):
    """One thing that was looked for.

    Attributes:
        state: "ok", "missing" (needed: the command exits with 1) or "optional".
        found: its version or place.
        advice: the way out, or what the thing is for.
    """

    what: str
    state: str
    found: str
    advice: str = ""


@click.command()
def doctor() -> None:
    """Check versions, compiler, flatc and CUDA."""
    findings = list(examine())
    print_table(("what", "state", "found", "advice"), findings)
    if any(finding.state == "missing" for finding in findings):
        raise SystemExit(1)


def examine() -> Iterator[Finding]:
    """Look for everything that lowering and running a program can need."""
    yield _python()
    yield Finding("torch", "ok", torch.__version__)
    yield _executorch()
    yield _flatc()
    yield compiler(os.environ.get("CXX", "g++"))
    yield _cuda()
    yield _package("triton", "optional", "the CUDA kernels need it: pip install triton")
    yield _package("transformers", "optional", "the demo needs it: pip install 'fxpasses[models]'")


def _python() -> Finding:
    known = (3, 11) <= sys.version_info[:2] <= (3, 12)
    advice = "" if known else "use Python 3.11 or 3.12"
    return Finding("python", "ok" if known else "missing", sys.version.split()[0], advice)


def _executorch() -> Finding:
    found = _package("executorch", "missing", "pip install executorch")
    wanted = _PAIRS.get(torch.__version__.rpartition(".")[0])
    if found.state != "ok" or wanted is None or found.found.startswith(f"{wanted}."):
        return found
    advice = f"built for another torch: pip install 'executorch=={wanted}.*'"
    return found._replace(state="missing", advice=advice)


def _flatc() -> Finding:
    """ExecuTorch writes .pte files with the flatc that pip installs beside the interpreter."""
    beside = shutil.which("flatc", path=str(Path(sys.executable).parent))
    path = os.environ.get("FLATC_EXECUTABLE") or shutil.which("flatc") or beside
    if path is None:
        return Finding("flatc", "missing", "", "reinstall executorch, or set FLATC_EXECUTABLE")
    return Finding("flatc", "ok", path)


def compiler(command: str) -> Finding:
    """Compile a line of C++ with `command`, as AOTInductor will compile programs."""
    path = shutil.which(command)
    if path is None:
        return Finding("c++", "missing", command, "install g++, or name a compiler with CXX=...")
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "probe.cpp"
        source.write_text("#include <vector>\nint main() { return std::vector<int>{}.size(); }\n")
        arguments = [path, "-std=c++17", "-o", f"{directory}/probe", str(source)]
        failed = subprocess.run(arguments, capture_output=True, check=False).returncode
    advice = "it cannot compile C++17 with the standard library: reinstall it" if failed else ""
    return Finding("c++", "missing" if failed else "ok", path, advice)


def _cuda() -> Finding:
    if torch.cuda.is_available():
        return Finding("cuda", "ok", f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}")
    return Finding("cuda", "optional", "no device", "programs are lowered for the CPU")


def _package(name: str, state: str, advice: str) -> Finding:
    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
        return Finding(name, state, "not installed", advice)
