"""Loading trusts nothing: each damaged file is refused, in one line, and leaves no file behind."""

import json
from pathlib import Path

import pytest
import torch

import backend
from backend.program.payload import seal
from backend.runtime import load as loading


def header_of(data: bytes, method: str) -> tuple[int, bytes]:
    """Where the payload of `method` lies in a file, and its bytes."""
    start = -1
    while (start := data.find(b'{"blobs"', start + 1)) >= 0:
        content, _ = json.JSONDecoder().raw_decode(data[start : start + 20_000].decode("latin-1"))
        if content["method"] == method:
            return start, seal(content)
    raise AssertionError(method)


def edited(data: bytes, method: str, old: str, new: str) -> bytes:
    """`data` with a sealed payload in which `old` is `new`, of the same length."""
    start, header = header_of(data, method)
    assert old.encode() in header
    changed = seal(json.loads(header.decode().replace(old, new)))
    assert len(changed) == len(header)
    return data[:start] + changed + data[start + len(header) :]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def refused(source, kind: type[Exception], *words: str) -> None:
    """`source` must be refused with one line that has `words` in it."""
    with pytest.raises(kind) as caught:
        backend.load(source)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


class CodeLoaded(BaseException):
    """A library was opened where none should be."""


@pytest.fixture
def no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a library is opened."""

    def opened(*_: object) -> None:
        raise CodeLoaded

    monkeypatch.setattr(loading, "open_library", opened)


@pytest.mark.usefixtures("no_code")
class TestRefusedBeforeCodeIsLoaded:
    def test_a_file_that_is_not_there(self, tmp_path) -> None:
        refused(tmp_path / "none.pte", backend.AccessFailed, "none.pte", "No such file")

    def test_a_file_of_another_kind(self, tmp_path) -> None:
        path = tmp_path / "other.pte"
        path.write_bytes(b"PK\x03\x04" + bytes(200))
        refused(path, backend.InvalidProgram, "other.pte is no ExecuTorch program")

    def test_an_empty_file(self) -> None:
        refused(b"", backend.InvalidProgram, "is no ExecuTorch program")

    def test_a_file_cut_in_half(self, lowered, tmp_path) -> None:
        path = tmp_path / "half.pte"
        path.write_bytes(lowered.buffer[: len(lowered.buffer) // 2])
        refused(path, backend.InvalidProgram, "half.pte is cut off")

    @pytest.mark.parametrize("at", range(4, 1000, 83))
    def test_a_flipped_byte_in_the_plan(self, lowered, at) -> None:
        """Either it is noticed, with an error of ours, or it changed nothing that is read."""
        with pytest.raises((backend.InvalidProgram, backend.NotSupported, CodeLoaded)):
            backend.load(flipped(lowered.buffer, at))

    def test_a_flipped_byte_in_the_library(self, lowered, temporary) -> None:
        at = lowered.buffer.index(b"\x7fELF") + 5000
        refused(flipped(lowered.buffer, at), backend.InvalidProgram, "library blob is damaged")
        assert not list(temporary.iterdir())

    def test_a_flipped_byte_in_the_weights(self, lowered, temporary) -> None:
        at = lowered.buffer.index(b'{"__metadata__"')
        refused(flipped(lowered.buffer, at), backend.InvalidProgram, "weights blob is damaged")
        assert not list(temporary.iterdir())

    def test_a_flipped_byte_in_the_payload(self, lowered) -> None:
        start, header = header_of(lowered.buffer, "counter")
        at = start + header.index(b'"shape":[1]') + 9
        changed = lowered.buffer[:at] + b"2" + lowered.buffer[at + 1 :]
        refused(changed, backend.InvalidProgram, '"counter"', "checksum differs")

    def test_a_format_from_the_future(self, lowered) -> None:
        changed = edited(lowered.buffer, "counter", '"format_version":1', '"format_version":9')
        refused(changed, backend.InvalidProgram, "format version 9, this runtime reads 1")

    def test_a_field_that_is_missing(self, lowered) -> None:
        changed = edited(lowered.buffer, "counter", '"pipeline":', '"pipelime":')
        refused(changed, backend.InvalidProgram, '"counter"', 'field "pipeline" is missing')

    def test_another_torch(self, lowered) -> None:
        major, minor, *_ = torch.__version__.split(".")
        other = f"{major}.{'9' * len(minor)}."
        mine = f'"torch_version":"{major}.{minor}.'
        changed = edited(lowered.buffer, "counter", mine, f'"torch_version":"{other}')
        refused(changed, backend.NotSupported, f"with torch {other}", torch.__version__)

    def test_a_device_that_is_not_there(self, lowered) -> None:
        start, header = header_of(lowered.buffer, "counter")
        content = json.loads(header)
        changes = {"device": "cuda:99", "pipeline": content["pipeline"][4:]}
        sealed = seal(content | changes)
        assert len(sealed) == len(header)
        changed = lowered.buffer[:start] + sealed + lowered.buffer[start + len(header) :]
        refused(changed, backend.NotSupported, '"cuda:99" is not there')

    def test_a_weights_file_for_a_program_that_holds_its_own(self, saved) -> None:
        with pytest.raises(backend.InvalidArgument, match="holds its weights itself"):
            backend.load(saved, weights="other.ptd")

    def test_another_kind_of_device(self, saved) -> None:
        options = backend.RuntimeOptions(device="cuda")
        with pytest.raises(backend.NotSupported, match="lowered for cpu, so it cannot run on cuda"):
            backend.load(saved, options=options)


def test_a_program_loads_from_bytes(lowered) -> None:
    with backend.load(lowered.buffer) as program:
        assert program.methods == lowered.methods


def test_no_file_is_left_while_loaded_or_after_close(saved, temporary) -> None:
    with backend.load(saved) as program:
        program["counter"](torch.zeros(1))
        assert not list(temporary.iterdir())
    assert not list(temporary.iterdir())


def test_a_library_that_the_loader_refuses_leaves_no_file(saved, temporary, monkeypatch) -> None:
    write = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", lambda path, data: write(path, b"no library"))
    with pytest.raises(backend.InvalidProgram, match="the library cannot be loaded"):
        backend.load(saved)
    assert not list(temporary.iterdir())


def test_a_full_disk_is_named_and_leaves_no_file(saved, temporary, monkeypatch) -> None:
    def write(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises(backend.AccessFailed, match=r"cannot unpack .*: No space left on device"):
        backend.load(saved)
    assert not list(temporary.iterdir())


def test_a_library_is_written_where_only_its_owner_reads(saved, temporary, monkeypatch) -> None:
    modes = []
    original = loading.open_library

    def watched(path, device):
        modes.append(path.parent.stat().st_mode & 0o777)
        return original(path, device)

    monkeypatch.setattr(loading, "open_library", watched)
    backend.load(saved).close()
    assert set(modes) == {0o700}
