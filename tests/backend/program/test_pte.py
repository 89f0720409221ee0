"""ExecuTorch's deserializer is guarded, and finds its flatc without an activated environment."""

import os
from pathlib import Path

import pytest

from backend.errors import InvalidProgram
from backend.program import pte


def test_a_file_lists_its_methods_and_blobs(lowered) -> None:
    file = pte.read(lowered.buffer, "m.pte")
    assert sorted(file.methods) == lowered.methods
    keys = {blob.key for plan in file.methods.values() for blob in plan.payload.blobs.values()}
    assert keys == set(file.named_data)


@pytest.mark.parametrize("length", [0, 7, 8, 63, 64, 200, 2000, -1])
def test_every_cut_is_noticed(lowered, length) -> None:
    with pytest.raises(InvalidProgram, match=r"is no ExecuTorch program|is cut off"):
        pte.read(lowered.buffer[:length], "m.pte")


def test_whatever_the_deserializer_throws_is_one_line(lowered, monkeypatch) -> None:
    def broken(data: bytes) -> None:
        raise AssertionError("first\nsecond")

    monkeypatch.setattr(pte, "deserialize_pte_binary", broken)
    with pytest.raises(InvalidProgram, match=r"^m.pte is damaged: first$"):
        pte.read(lowered.buffer, "m.pte")


def test_flatc_is_found_beside_the_interpreter(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("FLATC_EXECUTABLE", raising=False)
    with pte.flatc_found():
        assert Path(os.environ["FLATC_EXECUTABLE"]).is_file()
    assert "FLATC_EXECUTABLE" not in os.environ


def test_a_file_reads_without_an_activated_environment(lowered, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert pte.read(lowered.buffer, "m.pte").methods
