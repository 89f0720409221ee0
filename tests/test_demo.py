"""The demo proves what it prints, and fails when the proof does."""

import re

import pytest
import torch
from click.testing import CliRunner

from backend.demo import checks, model
from fxpasses.cli import main

pytestmark = pytest.mark.compile
FILES = ["after.txt", "before.txt", "report.html", "smolvlm.pte"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """One run of the command: its result and its output directory."""
    output = tmp_path_factory.mktemp("demo")
    return CliRunner().invoke(main, ["demo", "--output", str(output)]), output


def test_it_succeeds_and_names_its_files(shown):
    result, output = shown
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in output.iterdir()) == FILES
    assert all(f"wrote {output / name}" in result.stdout for name in FILES)


def test_count_reads_go_to_zero(shown):
    rows = [line.split() for line in shown[0].stdout.splitlines()]
    assert ["before", "2", "10"] in rows
    assert ["after", "0", "0"] in rows


def test_six_calls_equal_eager(shown):
    calls = re.findall(r"^call \d: (.*)$", shown[0].stdout, re.MULTILINE)
    assert len(calls) == 6
    assert all(call.startswith("equal to eager, position ids exact") for call in calls)


def test_the_remark_has_its_source_line(shown):
    assert re.search(r"^passed replace-masked-copy.*\(modeling_smolvlm.py:\d+\)$", *texts(shown))


def texts(shown):
    return shown[0].stdout, re.MULTILINE


def test_the_graphs_are_before_and_after(shown):
    before, after = ((shown[1] / name).read_text() for name in ("before.txt", "after.txt"))
    assert "aten.index_put" in before
    assert "aten.index_put" not in after
    assert "aten.where" in after


def test_a_wrong_position_id_is_no_agreement():
    module = model.vision_embeddings()
    call = next(model.fresh_calls("cpu"))
    right = module(*call)
    assert checks.agreement(module, call, right) == (0.0, True)
    swapped = right.clone()
    rows = module.position_embedding.weight
    first = int(model.position_ids(module, call, right)[0, 0])
    swapped[0, 0] += rows[(first + 1) % 16] - rows[first]
    found = checks.agreement(module, call, swapped)
    assert not found.equal
    assert "DIFFERS from eager, position ids WRONG" in str(found)


def test_a_difference_beyond_the_tolerance_fails(shown, monkeypatch, tmp_path):
    monkeypatch.setattr("backend.demo.backend.load", lambda path: Off())
    result = CliRunner().invoke(main, ["demo", "--output", str(tmp_path)])
    assert result.exit_code == 1
    assert "DIFFERS from eager" in result.stdout
    assert result.stderr == (
        "error: the lowered program differs from eager, or still reads counts\n"
    )


class Off:
    """A program whose results are zero."""

    def __enter__(self):
        return {"forward": lambda pixels, mask: torch.zeros(2, 16, 64)}

    def __exit__(self, *error):
        return None


def test_every_mask_index_that_runs_is_counted():
    mask = torch.tensor([True, False])

    def twice(x):
        x = x.clone()
        x[mask] = x[mask]
        x[torch.tensor([0])] = 1.0
        return x

    assert checks.count_reads(twice, [(torch.zeros(2),)]) == 2
