"""The shortcut of Inductor's C++ writer is gone inside the block, and back after it."""

from torch._inductor.codegen.cpp import CppKernel

from backend.compile.roundings import SHORTCUT, converts_in_earnest, roundings_kept


def test_inside_the_block_only():
    before = vars(CppKernel)[SHORTCUT]
    with roundings_kept():
        assert vars(CppKernel)[SHORTCUT] is converts_in_earnest
    assert vars(CppKernel)[SHORTCUT] is before


def test_an_inductor_without_the_shortcut(monkeypatch):
    monkeypatch.delattr(CppKernel, SHORTCUT)
    with roundings_kept():
        assert not hasattr(CppKernel, SHORTCUT)
    assert not hasattr(CppKernel, SHORTCUT)
