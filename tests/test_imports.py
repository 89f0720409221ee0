"""Imports point one way: backend -> decomps, fxpasses. Nothing points back."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FORBIDDEN = {
    "fxpasses": {"backend", "decomps", "executorch", "triton"},
    "decomps": {"backend", "fxpasses", "executorch", "triton"},
    "backend": {"tests", "examples"},
}


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and top-level package of each absolute import, those inside functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.partition(".")[0]


def violations(root: Path, package: str) -> list[str]:
    return [
        f"{path.relative_to(root)}:{line} imports {name}"
        for path in sorted((root / package).rglob("*.py"))
        for line, name in imported(path.read_text())
        if name in FORBIDDEN[package]
    ]


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_point_one_way(package: str) -> None:
    assert not violations(ROOT, package)


@pytest.mark.parametrize(
    "line",
    ["import backend.load", "from executorch.exir import memory", "def f():\n    import triton"],
)
def test_a_planted_import_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "fxpasses").mkdir()
    (tmp_path / "fxpasses" / "planted.py").write_text(line)
    assert len(violations(tmp_path, "fxpasses")) == 1
