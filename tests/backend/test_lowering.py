"""What `lower` returns, what it refuses, and what it leaves alone."""

import copy
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import backend
import fxpasses
from backend.compile import aoti, method


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.unused = torch.nn.Linear(2, 2)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        return x * 2 + self.count


class SharedState(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("whole", torch.zeros(2))
        self.register_buffer("part", self.whole[:1])

    def forward(self, x):
        self.whole.add_(x)
        return self.part * 10


class WritesInput(torch.nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2


def exported(module: torch.nn.Module = None, *inputs: torch.Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(module or Twice(), inputs or (torch.randn(2),))


@pytest.fixture
def no_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if Inductor is asked to compile."""

    def compiled(*_: object) -> None:
        raise AssertionError("Inductor was called")

    monkeypatch.setattr(aoti, "call_inductor", compiled)


def test_the_pipeline_is_recorded_as_it_ran(lowered, saved, program) -> None:
    assert lowered.pipeline == str(fxpasses.Pipeline.parse("default"))
    assert lowered.pipeline.encode() in saved.read_bytes()
    assert all(program[name].pipeline == lowered.pipeline for name in program.methods)


def test_reports_and_remarks_come_back_by_method(lowered) -> None:
    (remark,) = [r for r in lowered.remarks["branch"] if r.kind == "passed"]
    assert remark.pass_name == "replace-masked-copy-with-where"
    assert remark.region
    assert remark.source.startswith("conftest.py:")
    assert any(report.changed for report in lowered.reports["branch"])
    assert not lowered.remarks["nothing"]


def test_the_file_holds_the_remarks(lowered, saved) -> None:
    assert b'"replace-masked-copy-with-where"' in saved.read_bytes()


def test_lowering_and_running_change_nothing_outside(temporary) -> None:
    """Neither the program, nor its weights, nor the directory for temporary files."""
    program = exported()
    before = str(program), sorted(program.state_dict)
    with backend.load(backend.lower(program, device="cpu").buffer) as loaded:
        loaded["forward"](torch.randn(2))
    assert (str(program), sorted(program.state_dict)) == before
    assert program.state_dict["count"] == 0
    assert not [path for path in temporary.iterdir() if path.name.startswith("fxpasses")]


def test_folding_left_on_would_freeze_the_counter(methods, monkeypatch) -> None:
    """Why `may_fold` is there: without it, a silently wrong answer."""
    monkeypatch.setattr(method, "may_fold", lambda program: True)
    lowered = backend.lower(methods["counter"].export(), device="cpu", self_check=None)
    with backend.load(lowered.buffer) as program:
        counts = [program["forward"](torch.zeros(1)).item() for _ in range(3)]
    assert counts == [1, 1, 1]


def test_a_program_that_writes_nothing_may_be_folded(methods) -> None:
    assert method.may_fold(methods["batch"].export())
    assert not method.may_fold(methods["counter"].export())


def test_a_failed_compile_is_one_clear_line_and_leaves_no_file(temporary, monkeypatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("\n  first cause\nand a long trace")

    monkeypatch.setattr(aoti.inductor, "aot_compile", broken)
    with pytest.raises(backend.Internal, match=r"^AOTInductor cannot compile .*: first cause$"):
        backend.lower(exported(), device="cpu")
    assert not list(temporary.iterdir())


def test_a_missing_compiler_is_named(monkeypatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise RuntimeError("wrapped") from aoti.InvalidCxxCompiler()

    monkeypatch.setattr(aoti.inductor, "aot_compile", missing)
    with pytest.raises(backend.AccessFailed, match=r"no C\+\+ compiler was found; install g\+\+"):
        backend.lower(exported(), device="cpu")


def test_a_weight_that_the_compiler_forgot_is_noticed(monkeypatch) -> None:
    library = SimpleNamespace(constants=lambda: {"lin_weight": "lin.weight", "count": "count"})
    monkeypatch.setattr(aoti, "open_library", lambda *_: library)
    with pytest.raises(backend.Internal, match=r"gave no value for lin\.weight"):
        aoti.check_weights(Path("method.so"), "cpu", {"count": torch.zeros(1)})


@pytest.mark.usefixtures("no_compile")
class TestRefusedBeforeCompiling:
    def test_an_unknown_pass(self) -> None:
        with pytest.raises(fxpasses.UnknownPass, match="remove-async-asserts"):
            backend.lower(exported(), passes="remove-async-assert", device="cpu")

    def test_an_unknown_device(self) -> None:
        with pytest.raises(backend.InvalidArgument, match="'tpu' is neither"):
            backend.lower(exported(), device="tpu")

    def test_a_device_that_is_not_there(self) -> None:
        with pytest.raises(backend.NotSupported, match='"cuda:99" is not there'):
            backend.lower(exported(), device="cuda:99")

    def test_a_module_that_was_not_exported(self) -> None:
        with pytest.raises(backend.InvalidArgument, match=r"'forward' is a Twice; torch\.export"):
            backend.lower(Twice(), device="cpu")  # type: ignore[arg-type]

    def test_no_program_at_all(self) -> None:
        with pytest.raises(backend.InvalidArgument, match="no program to lower"):
            backend.lower({}, device="cpu")

    def test_a_written_buffer_that_another_one_looks_at(self) -> None:
        with pytest.raises(backend.NotSupported, match='"part" and "whole" share memory'):
            backend.lower(exported(SharedState()), device="cpu")

    def test_a_program_that_writes_its_input(self) -> None:
        with pytest.raises(backend.NotSupported, match='writes its input "x" in place'):
            backend.lower(exported(WritesInput()), device="cpu")


def test_saving_replaces_the_file_at_once(lowered, tmp_path) -> None:
    path = tmp_path / "m.pte"
    path.write_bytes(b"old")
    assert lowered.save(path) == path
    assert path.read_bytes() == lowered.buffer
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.pte"]


def test_a_save_that_fails_leaves_the_old_file(lowered, tmp_path, monkeypatch) -> None:
    path = tmp_path / "m.pte"
    path.write_bytes(b"old")

    def replace(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(backend.AccessFailed, match=r"cannot write .*m.pte: No space left"):
        lowered.save(path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.pte"]


def test_saving_where_there_is_no_directory_is_named(lowered, tmp_path) -> None:
    with pytest.raises(backend.AccessFailed, match=r"cannot write .*none/m.pte: No such file"):
        lowered.save(tmp_path / "none" / "m.pte")


def test_a_saved_file_has_the_rights_of_any_new_file(saved, tmp_path) -> None:
    other = tmp_path / "other"
    other.touch()
    assert saved.stat().st_mode == other.stat().st_mode


def test_a_module_is_not_changed_by_running_its_lowered_form(program, methods) -> None:
    module = methods["state"].fresh()
    before = copy.deepcopy(module.state_dict())
    program["state"](torch.randn(16))
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
