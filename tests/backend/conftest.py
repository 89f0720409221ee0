"""One lowered file for all tests: its methods are the modules below, each compiled once a session.

`eager` gives a fresh module for each method, the oracle: equal bit for bit, on fresh random inputs.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.export import Dim, ExportedProgram

import backend


class Branch(torch.nn.Module):
    """A masked copy that only one branch of a `torch.cond` makes."""

    def forward(self, flag, out, source, mask):
        def copy(out, source, mask):
            out = out.clone()
            out[mask] = source[mask]
            return out

        def double(out, source, mask):
            return out * 2

        return torch.cond(flag, copy, double, (out, source, mask))


class Counter(torch.nn.Module):
    """A one-element buffer that every call raises: Inductor folds such a one into a constant."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        return x + self.count


class State(torch.nn.Module):
    """Buffers of several shapes, written whole, by slice, by index, and returned."""

    def __init__(self):
        super().__init__()
        self.register_buffer("number", torch.ones(()))
        self.register_buffer("pair", torch.full((2,), 2.0))
        self.register_buffer("precise", torch.full((1,), 0.1, dtype=torch.float64))
        self.register_buffer("history", torch.zeros(3, 16))

    def forward(self, x):
        before = self.history.view(-1)[:16] * 1
        self.number.mul_(2)
        self.pair[1:] = self.pair[:1] + self.pair[1:]
        self.precise[0] = self.precise[0] * 3
        self.history.copy_(torch.roll(self.history, 1, 0))
        self.history[0] = x
        return x * self.number, self.pair, self.precise, self.history, before


class Batch(torch.nn.Module):
    """Any batch; results in a dictionary: tensors, views, a size, a constant, an input, weights."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 5)
        self.shared = torch.nn.Linear(3, 5)
        self.shared.weight = self.linear.weight

    def forward(self, x, pair, unused, factor, *, bias, nothing=None):
        y = self.linear(x) * factor + bias
        return {
            "y": (y, self.shared(x)),
            "view": y.t()[::2],
            "flat": x.view(-1),
            "pair": pair.flip(0) * 2,
            "rows": x.shape[0],
            "factor": factor,
            "input": x,
            "weight": self.linear.weight,
            "parts": x.split(1, dim=1),
        }


class Numbers(torch.nn.Module):
    """Numbers that a float32 cannot hold, next to float64 and bfloat16 tensors."""

    def forward(self, double, half, scalar):
        exact = double * 0.1 + 1e-9, half * 1.1, scalar / 3, torch.add(double, 0.7, alpha=2)
        return exact, half * 1.1 - 0.3


class Layouts(torch.nn.Module):
    """An input in channels_last, permuted and expanded weights, `aten._reshape_copy`."""

    def __init__(self):
        super().__init__()
        self.register_buffer("permuted", torch.randn(4, 4, 3).permute(2, 0, 1))
        self.register_buffer("expanded", torch.randn(1, 5).expand(4, 5))

    def forward(self, image, rows):
        image = image.to(memory_format=torch.channels_last)
        copy = torch.ops.aten._reshape_copy.default
        reshaped = copy(rows.t(), [-1]), copy(rows[:, ::2], [4]), copy(rows, [4, -1])
        return image * self.permuted + 1, rows @ self.expanded, image.clone(), reshaped


class Nothing(torch.nn.Module):
    """Neither inputs nor weights."""

    def forward(self):
        return torch.arange(4) * 2


class Method:
    """A module, inputs to export it with, and fresh random ones for each call."""

    def __init__(self, module: type[torch.nn.Module], draw: Callable[..., tuple], **export) -> None:
        self.module, self.draw, self.options = module, draw, export

    def fresh(self) -> torch.nn.Module:
        """A new module, the same at every call of this method."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return self.module().eval().requires_grad_(False)

    def export(self) -> ExportedProgram:
        return torch.export.export(self.fresh(), self.draw(), **self.options)


def draw_branch() -> tuple:
    return torch.rand(()) > 0.5, torch.randn(3, 4), torch.randn(3, 4), torch.rand(3, 4) > 0.5


def draw_batch(rows: int = 4) -> tuple:
    return torch.randn(rows, 3), torch.randn(2 * rows, 2), torch.randn(2), 3


def draw_numbers() -> tuple:
    double = torch.randn(4, dtype=torch.float64)
    return double, torch.randn(64, dtype=torch.bfloat16), torch.randn(())


def draw_layouts() -> tuple:
    image = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    return image, torch.randn(2, 4)


def batch() -> Method:
    rows = Dim("rows", max=20)
    shapes = {
        "x": {0: rows},
        "pair": {0: 2 * rows},
        "unused": None,
        "factor": None,
        "bias": None,
        "nothing": None,
    }
    kwargs = {"bias": torch.ones(5), "nothing": None}
    return Method(Batch, draw_batch, dynamic_shapes=shapes, kwargs=kwargs)


METHODS = {
    "branch": Method(Branch, draw_branch),
    "counter": Method(Counter, lambda: (torch.randn(1),)),
    "state": Method(State, lambda: (torch.randn(16),)),
    "batch": batch(),
    "numbers": Method(Numbers, draw_numbers),
    "layouts": Method(Layouts, draw_layouts),
    "nothing": Method(Nothing, tuple),
}


@pytest.fixture(scope="session")
def methods() -> dict[str, Method]:
    return METHODS


@pytest.fixture(scope="session")
def lowered() -> backend.LoweredProgram:
    """All methods in one program, on the CPU."""
    programs = {name: method.export() for name, method in METHODS.items()}
    return backend.lower(programs, device="cpu")


@pytest.fixture(scope="session")
def saved(lowered: backend.LoweredProgram, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lowered.save(tmp_path_factory.mktemp("lowered") / "methods.pte")


@pytest.fixture
def program(saved: Path):
    """The file, loaded anew: state starts afresh."""
    with backend.load(saved) as loaded:
        yield loaded


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files, empty and of this test's own."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory
