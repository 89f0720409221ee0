"""Listeners, each on one run of the default pipeline."""

from dataclasses import dataclass

import pytest
import torch

from fxpasses import (
    InvalidProgram,
    Pass,
    Pipeline,
    Registry,
    VerificationFailed,
    register_pass,
)
from fxpasses.listeners import Dumps, Reproducer, Statistics, Timing, load_reproducer

COPY = "replace-masked-copy-with-where"
known = Registry()


@register_pass("scale-by-three", into=known)
@dataclass(frozen=True)
class ScaleByThree(Pass):
    """Makes x * 2 wrong."""

    factor: int = 3
    targets = (torch.ops.aten.mul.Tensor,)

    def run(self, editor):
        for node in editor.find(*self.targets):
            with editor.at(node):
                editor.replace(node, editor.call(node.target, node.args[0], self.factor))


class Copies(torch.nn.Module):
    def forward(self, out, source, mask, other):
        out = out.clone()
        out[mask] = source[mask]
        out[mask] = source[other]
        return out * 2


@pytest.fixture(scope="module")
def program():
    mask = torch.tensor([True, False, True])
    inputs = (torch.randn(3), torch.randn(3), mask, mask.flip(0))
    return torch.export.export(Copies(), inputs).run_decompositions({})


def test_statistics_count_what_each_pass_did(program):
    statistics = Statistics()
    Pipeline.parse("default").run(program, listeners=[statistics])
    assert (statistics.tried[COPY], statistics.matched[COPY], statistics.rewrites[COPY]) == (
        2,
        2,
        1,
    )
    assert statistics.refused[COPY] == {"same_mask": 1}
    assert COPY not in statistics.never_fired
    assert set(statistics.never_fired) == {
        pass_.name for pass_ in Pipeline.parse("default").passes
    } - {COPY}
    assert "same_mask 1" in str(statistics)


def test_timing_sums_seconds_and_peaks(program):
    timing = Timing(memory=True)
    result = Pipeline.parse("default").run(program, listeners=[timing])
    assert timing.seconds[COPY] == pytest.approx(
        sum(r.seconds for r in result.reports if r.name == COPY)
    )
    assert timing.peak_bytes[COPY] > 0


def test_dumps_write_only_what_changed(program, tmp_path):
    Pipeline.parse("default").run(program, listeners=[Dumps(tmp_path / "dumps")])
    names = sorted(path.name for path in (tmp_path / "dumps").iterdir())
    assert names == ["000-before.txt", f"001-{COPY}.txt"]
    before, after = ((tmp_path / "dumps" / name).read_text() for name in names)
    assert "aten.where.self" in after
    assert "aten.where.self" not in before


def test_a_failure_is_recorded_and_fails_again(program, tmp_path):
    path, inputs = tmp_path / "failure.zip", program.example_inputs[0]
    pipeline = Pipeline.parse("scale-by-three{factor=4}", known)
    with pytest.raises(VerificationFailed) as error:
        pipeline.run(program, verify="numeric", inputs=inputs, listeners=[Reproducer(path)])
    failure = load_reproducer(path)
    assert str(error.value) in failure.error
    assert failure.verify == "numeric"
    with pytest.raises(VerificationFailed, match="differs"):
        Pipeline.parse(failure.pipeline, known).run(
            failure.program, failure.verify, failure.args, failure.kwargs
        )


def test_a_run_that_succeeds_leaves_no_reproducer(program, tmp_path):
    Pipeline.parse("default").run(program, listeners=[Reproducer(tmp_path / "failure.zip")])
    assert list(tmp_path.iterdir()) == []


def test_another_file_is_no_recorded_failure(tmp_path):
    (tmp_path / "failure.zip").write_bytes(b"PK nothing")
    with pytest.raises(InvalidProgram, match="no recorded failure"):
        load_reproducer(tmp_path / "failure.zip")
