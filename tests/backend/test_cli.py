"""`fxpasses lower` and `fxpasses exec`, and what they say of files and inputs that are wrong."""

import pytest
import torch
from click.testing import CliRunner

from fxpasses.cli import main
from tests.programs import ANY_BATCH, COUNTER, IN_BRANCH

pytestmark = pytest.mark.compile
EXAMPLES = {"branch": IN_BRANCH, "counter": COUNTER, "batch": ANY_BATCH}


def call(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A directory with each example as .pt2 and .pte, and its inputs."""
    directory = tmp_path_factory.mktemp("lowered")
    for name, example in EXAMPLES.items():
        torch.export.save(example.export(), directory / f"{name}.pt2")
        torch.save(example.inputs, directory / f"{name}.pt")
        source, target = directory / f"{name}.pt2", directory / f"{name}.pte"
        result = call("lower", source, "-o", target, "--device", "cpu")
        assert result.exit_code == 0, result.output
        assert f"wrote {target}: {target.stat().st_size:,} bytes for cpu" in result.stdout
    return directory


def run(files, name, inputs, calls=6):
    path = files / "given.pt"
    torch.save(inputs, path)
    return call("exec", files / f"{name}.pte", "--inputs", path, "--calls", calls)


def test_a_masked_copy_inside_a_branch(files):
    out, source = torch.zeros(4, 3), torch.arange(12.0).view(4, 3) + 1
    for mask in (torch.eye(4, 3) > 0, torch.zeros(4, 3) > 0):
        result = run(files, "branch", (out, source, mask), calls=2)
        eager = IN_BRANCH.module()(out, source, mask).flatten()[:6].tolist()
        shown = ", ".join(f"{value:g}" for value in eager)
        lines = [f"call {number} output 0: f32[4, 3] {shown}, ..." for number in (1, 2)]
        assert result.stdout.splitlines() == lines


def test_state_lives_from_call_to_call(files):
    lines = run(files, "counter", COUNTER.inputs).stdout.splitlines()
    assert lines == [f"call {number} output 0: f32[1] {number}" for number in range(1, 7)]


@pytest.mark.parametrize("rows", [2, 7])
def test_any_batch_size(files, rows):
    result = run(files, "batch", (torch.ones(rows, 3),), calls=1)
    assert (
        result.stdout == f"call 1 output 0: f32[{rows}, 3] 3, 3, 3, 3, 3, 3{', ...' * (rows > 2)}\n"
    )


def test_inputs_by_name(files):
    result = run(files, "batch", {"args": (), "kwargs": {"x": torch.ones(2, 3)}}, calls=1)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert run(files, "batch", {"args": (torch.ones(2, 3),)}, calls=1).exit_code == 0


@pytest.mark.parametrize(
    ("inputs", "fact"),
    [
        ((torch.ones(2, 4),), 'input 0 ("x") has size 4 in dim 1, expected 3'),
        ((torch.ones(2, 3, dtype=torch.float64),), 'input 0 ("x") is float64, expected float32'),
        ((), "got 0 inputs, expected 1"),
    ],
    ids=["shape", "dtype", "count"],
)
def test_a_wrong_input_is_named(files, inputs, fact):
    result = run(files, "batch", inputs)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {fact}\n"


def flipped(data):
    """A byte of the library changed; the library is the largest thing in the file."""
    place = data.index(b"\x7fELF") + 4096
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize(
    "spoil",
    [lambda data: data[: len(data) // 2], flipped, lambda data: b"no program", lambda data: b""],
    ids=["half", "flipped", "text", "empty"],
)
def test_a_damaged_file_is_refused(files, tmp_path, spoil):
    path = tmp_path / "spoiled.pte"
    path.write_bytes(spoil((files / "batch.pte").read_bytes()))
    result = call("exec", path, "--inputs", files / "batch.pt")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "spoiled.pte" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "fact"),
    [
        (["lower", "batch.pt2"], 2, "Missing option '-o' / '--output'"),
        (["lower", "batch.pt", "-o", "x.pte"], 2, "batch.pt is no .pt2 file"),
        (["lower", "batch.pt2", "-o", "missing/x.pte"], 2, "missing is no directory"),
        (["lower", "batch.pt2", "-o", "x.pte", "-p", "replace-mask"], 2, "unknown pass"),
        (["lower", "batch.pt2", "-o", "x.pte", "--device", "tpu"], 2, "'tpu' is not one of"),
        (["exec", "batch.pte", "--inputs", "batch.pte"], 2, "batch.pte cannot be read"),
        (["exec", "batch.pte", "--inputs", "batch.pt", "--method", "f"], 2, "no method 'f'"),
        (["exec", "batch.pte", "--inputs", "batch.pt", "--calls", "0"], 2, "0 is not in the range"),
    ],
)
def test_wrong_use_is_one_line(files, monkeypatch, arguments, code, fact):
    monkeypatch.chdir(files)
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert fact in result.stderr
    assert not list(files.glob("x.pte"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_device_that_is_not_there_is_failed_work(files, tmp_path):
    arguments = ("lower", files / "batch.pt2", "-o", tmp_path / "x.pte", "--device", "cuda")
    result = call(*arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith('error: device "cuda" is not there')
    assert list(tmp_path.iterdir()) == []
