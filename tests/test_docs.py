"""What the pages say is true: their Python runs, and their commands print what is shown.

`...` in a shown output stands for any text. Blocks of one page share a directory and names.
"""

import doctest
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from fxpasses.cli import main

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


THEIRS = pytest.mark.filterwarnings("ignore")  # pages that call other compilers, which warn
PAGES = [
    *("README.md", "docs/pipelines.md", "docs/command-line.md", "docs/writing-a-pass.md"),
    *("docs/debugging.md", "docs/soundness.md"),
    pytest.param("docs/adapters.md", marks=THEIRS),
    pytest.param("docs/peers.md", marks=THEIRS),
]


@pytest.mark.compile
@pytest.mark.parametrize("page", PAGES)
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    names = {"__name__": "page"}
    blocks = BLOCK.findall(text)
    assert blocks
    for language, block in blocks:
        if language == "python":
            path = tmp_path / "page.py"
            path.write_text(block)
            exec(compile(block, path, "exec"), names)
        else:
            run_console(block)


def run_console(block):
    for command, shown in re.findall(r"^\$ fxpasses (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        result = CliRunner().invoke(main, shlex.split(command))
        assert (result.exit_code == 0) is not shown.startswith("error: "), result.output
        assert doctest.OutputChecker().check_output(shown, result.output, FLAGS), result.output


@pytest.mark.parametrize("page", [ROOT / "README.md", *(ROOT / "docs").glob("*.md")], ids=str)
def test_links_lead_somewhere(page):
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        assert target.startswith("https://") or (page.parent / target).exists(), target
