"""Listeners, each on one run of the default pipeline."""

import zipfile
from dataclasses import dataclass

import pytest
import torch

from fxpasses import (
    InvalidProgram,
    Listener,
    ListenerFailed,
    Pass,
    Pipeline,
    Registry,
    VerificationFailed,
    register_pass,
)
from fxpasses.fixpoint import Fixpoint
from fxpasses.listeners import Dumps, Reproducer, Statistics, Timing, load_reproducer
from fxpasses.passes import RemoveAsyncAsserts, RemoveCountChecks, ReplaceMaskedCopyWithWhere
from fxpasses.program import fork

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


class Stops(Listener):
    """Ends a run at its first rewrite."""

    def rewrite(self, remark):
        raise OSError("the disk is full")


def test_guards_that_were_switched_off_are_recorded(program, tmp_path):
    """In a group too: the guards come back to the pass that they belong to."""
    weakened = ReplaceMaskedCopyWithWhere().without("same_mask")
    pipeline = Pipeline([Fixpoint((RemoveAsyncAsserts(), weakened)), RemoveCountChecks()])
    with pytest.raises(ListenerFailed, match="Stops failed at 'rewrite'"):
        pipeline.run(program, listeners=[Reproducer(tmp_path / "failure.zip"), Stops()])
    recorded = load_reproducer(tmp_path / "failure.zip")
    assert recorded.passes() == pipeline
    skipped = [pass_.skipped for pass_ in recorded.passes().passes]
    assert skipped == [frozenset(), {"same_mask"}, frozenset()]
    assert set(recorded.versions) == {"fxpasses", "torch", "python"}


def test_a_run_in_place_is_recorded_as_it_began(program, tmp_path):
    forked = fork(program)
    listeners = [Reproducer(tmp_path / "failure.zip"), Stops()]
    with pytest.raises(ListenerFailed):
        Pipeline.parse("default").run(forked, in_place=True, listeners=listeners)
    recorded = load_reproducer(tmp_path / "failure.zip").program
    assert len(recorded.graph.nodes) == len(program.graph.nodes) != len(forked.graph.nodes)


def test_a_reproducer_that_cannot_be_written_hides_no_failure(program, tmp_path):
    missing = tmp_path / "no-such-directory" / "failure.zip"
    pipeline = Pipeline([ScaleByThree()])
    with pytest.raises(VerificationFailed) as caught:
        pipeline.run(program, verify="numeric", listeners=[Reproducer(missing)])
    assert "listener Reproducer failed at 'failed'" in caught.value.__notes__[0]


@pytest.mark.parametrize("part", ["run.json", "inputs.pt", "program.pt2"])
def test_a_damaged_record_is_refused(program, tmp_path, part):
    path, damaged = tmp_path / "failure.zip", tmp_path / "damaged.zip"
    with pytest.raises(VerificationFailed):
        Pipeline([ScaleByThree()]).run(program, verify="numeric", listeners=[Reproducer(path)])
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(damaged, "w") as broken:
        for name in whole.namelist():
            broken.writestr(name, b"[]" if name == part else whole.read(name))
    with pytest.raises(InvalidProgram, match="is no recorded failure"):
        load_reproducer(damaged)


def test_a_graph_module_is_not_recorded_and_the_log_says_so(program, tmp_path, caplog):
    pipeline = Pipeline([ScaleByThree(), ReplaceMaskedCopyWithWhere().without("same_mask")])
    with pytest.raises(VerificationFailed):
        pipeline.run(
            program.graph_module,
            verify="numeric",
            inputs=program.example_inputs[0],
            listeners=[Reproducer(tmp_path / "failure.zip")],
        )
    assert "a graph module has no file format" in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_timing_prints_the_slowest_first(program):
    timing = Timing()
    timing.seconds.update({"quick": 0.001, "slow": 0.0125})
    assert str(timing) == "slow: 12.5 ms\nquick: 1.0 ms"
