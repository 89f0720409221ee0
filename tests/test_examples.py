"""The example: a pass of the user's own, found by name everywhere a pass is named."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from backend.program import pte
from fxpasses import Pipeline

EXAMPLES = Path(__file__).parent.parent / "examples"
PASS = "acme.drop-dropout"


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Import the pass as a script beside it would."""
    monkeypatch.syspath_prepend(EXAMPLES)
    importlib.import_module("drop_dropout")


def fxpasses(*arguments, before=""):
    """Run the command in a process of its own, where nothing is registered yet."""
    code = f"{before}\nfrom fxpasses.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class Head(torch.nn.Module):
    """A layer with dropout, and on request the mask of a second one."""

    def __init__(self, mask=False):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.mask = mask

    def forward(self, x):
        values = torch.nn.functional.dropout(self.linear(x), 0.5, self.training)
        return torch.native_dropout(values, 0.5, True) if self.mask else values


def exported(head):
    return torch.export.export(head.train(), (torch.randn(2, 4),)).run_decompositions({})


def test_without_dropout_it_computes_what_eval_computes():
    head = Head()
    result = Pipeline.parse(PASS).run(exported(head))
    assert [remark.kind for remark in result.remarks] == ["passed"]
    x = torch.randn(2, 4)
    assert torch.equal(result.program.module()(x), head.eval()(x))


def test_dropout_whose_mask_is_read_stays():
    remarks = Pipeline.parse(PASS).run(exported(Head(mask=True))).remarks
    assert [(remark.kind, remark.guard) for remark in remarks] == [
        ("passed", ""),
        ("missed", "unread_mask"),
    ]


@pytest.mark.compile
def test_a_partitioner_takes_it_by_name(tmp_path, capsys):
    path = tmp_path / "head.pte"
    importlib.import_module("lower_with_own_pass").main(str(path))
    assert "tensor(" in capsys.readouterr().out
    payload = pte.read(path.read_bytes(), "head.pte").methods["forward"].payload
    assert payload.pipeline == str(Pipeline.parse(f"{PASS},default"))
    assert [remark["pass_name"] for remark in payload.remarks] == [PASS]


def test_a_command_loads_it_from_its_file():
    done = fxpasses("--load", EXAMPLES / "drop_dropout.py", "passes")
    assert (done.returncode, done.stderr) == (0, "")
    assert PASS in done.stdout


def test_an_installed_package_offers_it_by_an_entry_point(tmp_path):
    shutil.copy(EXAMPLES / "drop_dropout.py", tmp_path / "acme_passes.py")
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fxpasses.passes]\nacme = acme_passes\n")
    done = fxpasses("passes", PASS, before=f"import sys; sys.path.insert(0, {str(tmp_path)!r})")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Let the readers of dropout read its input." in done.stdout
