"""The command line: what it prints and writes, and one line with an exit code for each error."""

import json
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
import torch
from click.testing import CliRunner

from fxpasses import Pipeline, VerificationFailed, registry
from fxpasses.cli import main
from fxpasses.cli.doctor import compiler, examine
from fxpasses.cli.errors import as_click
from fxpasses.inspect import inspect_pipeline
from tests.programs import MASKED_COPY

PASS = "replace-masked-copy-with-where"


def call(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A directory with a program, its inputs, and files that are something else."""
    directory = tmp_path_factory.mktemp("files")
    torch.export.save(MASKED_COPY.export(), directory / "model.pt2")
    torch.save(MASKED_COPY.inputs, directory / "in.pt")
    whole = (directory / "model.pt2").read_bytes()
    (directory / "half.pt2").write_bytes(whole[: len(whole) // 2])
    (directory / "text.pt2").write_text("no program")
    return directory


class TestPasses:
    def test_lists_every_pass_with_its_summary(self):
        result = call("passes")
        assert result.exit_code == 0
        for name in registry.names():
            assert name in result.stdout
            assert registry.get(name).summary() in result.stdout

    def test_lists_the_pipelines(self):
        assert "default" in call("passes").stdout

    def test_describes_one(self):
        shown = call("passes", PASS).stdout
        assert "targets:   aten.index_put.default" in shown
        assert "same_mask" in shown
        assert registry.get(PASS).summary() in shown

    def test_shows_options_and_ordering(self, tmp_path):
        plugin = tmp_path / "plugin.py"
        plugin.write_text(PLUGIN)
        shown = call("--load", plugin, "passes", "test.unroll").stdout
        rows = [line.split() for line in shown.splitlines()]
        assert ["limit", "int", "4"] in rows
        assert ["only", "str", "required"] in rows
        assert ["dry", "bool", "false"] in rows
        assert ["before:", PASS] in rows

    def test_prints_a_pipeline(self):
        assert call("passes", "default").stdout.strip() == registry.pipelines["default"]


PLUGIN = """
from dataclasses import dataclass
from fxpasses import Pass, register_pass

@register_pass("test.unroll", before=["replace-masked-copy-with-where"])
@dataclass(frozen=True)
class Unroll(Pass):
    \"\"\"Unroll what is short.\"\"\"
    only: str
    limit: int = 4
    dry: bool = False
    def run(self, editor): ...
"""


class TestRun:
    def test_writes_program_report_and_remarks(self, files, tmp_path):
        out, report, remarks = (tmp_path / name for name in ("out.pt2", "r.html", "r.json"))
        result = call(
            *("run", files / "model.pt2", "-p", PASS, "-o", out),
            *("--report", report, "--remarks", remarks),
        )
        assert result.exit_code == 0, result.output
        assert f"pipeline: {PASS}\n" in result.stdout
        assert "passed replace-masked-copy-with-where" in result.stdout
        inputs = MASKED_COPY.inputs
        eager = MASKED_COPY.module()(*inputs)
        assert torch.equal(torch.export.load(out).module()(*inputs), eager)
        assert "aten.where" in report.read_text(encoding="utf-8")
        held = json.loads(remarks.read_text())
        assert [(remark["kind"], remark["pass_name"]) for remark in held] == [("passed", PASS)]
        assert sorted(tmp_path.iterdir()) == sorted([out, report, remarks])

    def test_is_the_pipeline_that_python_runs(self, files, tmp_path):
        out = tmp_path / "out.pt2"
        call("run", files / "model.pt2", "-o", out)
        expected = inspect_pipeline(MASKED_COPY.export(), "default").after
        saved = inspect_pipeline(torch.export.load(out), "").after
        assert operators(saved) == operators(expected)

    def test_checks_numbers_on_given_inputs(self, files):
        result = call(
            "run", files / "model.pt2", "--verify", "numeric", "--inputs", files / "in.pt"
        )
        assert result.exit_code == 0, result.output

    def test_a_failed_check_is_failed_work(self, files, tmp_path):
        plugin = tmp_path / "wrong.py"
        plugin.write_text(WRONG)
        out = tmp_path / "out.pt2"
        arguments = (
            "run",
            files / "model.pt2",
            "-p",
            "test.wrong",
            "--verify",
            "numeric",
            "-o",
            out,
        )
        result = call("--load", plugin, *arguments)
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert "after test.wrong" in result.stderr
        assert not out.exists()


WRONG = """
from dataclasses import dataclass
import torch
from fxpasses import Pass, register_pass

@register_pass("test.wrong")
@dataclass(frozen=True)
class Wrong(Pass):
    \"\"\"Return the input for a clone of something else.\"\"\"
    def run(self, editor):
        for node in editor.find(torch.ops.aten.clone.default):
            with editor.at(node):
                editor.replace(node, editor.call(torch.ops.aten.neg.default, node.args[0]))
"""


def operators(text):
    return [line.partition(" = ")[2].partition("(")[0] for line in text.splitlines()]


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "fact"),
        [
            (["run", "missing.pt2"], "'missing.pt2' does not exist"),
            (["run", "half.pt2"], "half.pt2 is no .pt2 file, or is cut off"),
            (["run", "text.pt2"], "text.pt2 is no .pt2 file, or is cut off"),
            (["run", "in.pt"], "in.pt is no .pt2 file, or is cut off"),
            (["run", "model.pt2", "-p", "replace-masked-copy"], f"did you mean '{PASS}'?"),
            (["run", "model.pt2", "-p", f"{PASS}{{x=1}}"], "has no option 'x'"),
            (["run", "model.pt2", "-o", "missing/out.pt2"], "missing is no directory that can"),
            (["run", "model.pt2", "-o", "."], "is a directory"),
            (["run", "model.pt2", "--verify", "all"], "'all' is not one of 'off'"),
            (["run", "model.pt2", "--inputs", "in.pt"], "--inputs goes with --verify numeric"),
            (
                ["run", "model.pt2", "--verify", "numeric", "--inputs", "model.pt2"],
                "model.pt2 cannot be read: write it with torch.save",
            ),
            (["passes", "replace-masked-copy"], f"did you mean '{PASS}'?"),
            (["--load", "text.pt2", "passes"], "text.pt2 is no Python file"),
            (["rum"], "No such command 'rum'"),
            (["run"], "Missing argument 'IN.pt2'"),
        ],
    )
    def test_wrong_use_is_one_line_and_exit_code_2(self, files, monkeypatch, arguments, fact):
        monkeypatch.chdir(files)
        before = sorted(files.iterdir())
        result = call(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert fact in result.stderr
        assert sorted(files.iterdir()) == before

    def test_debug_adds_the_traceback(self, files):
        result = call("--debug", "run", files / "half.pt2")
        assert "Traceback" in result.stderr
        assert result.stderr.splitlines()[-1].startswith("error: ")
        assert result.exit_code == 2

    def test_a_plugin_that_raises_is_named(self, tmp_path):
        plugin = tmp_path / "broken.py"
        plugin.write_text("1 / 0")
        result = call("--load", plugin, "passes")
        assert result.stderr == f"error: {plugin}: ZeroDivisionError: division by zero\n"
        assert result.exit_code == 2

    def test_a_damaged_record_is_one_line(self, files, tmp_path):
        data = bytearray((files / "model.pt2").read_bytes())
        place = data.index(b'"graph_module"')
        data[place : place + 40] = bytes(40)
        damaged = tmp_path / "damaged.pt2"
        damaged.write_bytes(data)
        result = call("run", damaged)
        assert result.stderr == f"error: {damaged} is damaged: torch.export.load fails on it\n"
        assert result.exit_code == 2

    def test_what_failed_and_what_was_misused(self):
        assert as_click(VerificationFailed("p", "", "", "differs")).exit_code == 1
        assert as_click(RuntimeError("surprise\nmore")).exit_code == 1
        assert "surprise (--debug" in as_click(RuntimeError("surprise\nmore")).message
        assert (
            as_click(PermissionError(13, "Permission denied", "x")).message
            == "x: Permission denied"
        )

    def test_inputs_of_another_kind(self, files, tmp_path):
        saved = tmp_path / "in.pt"
        for held, fact in [
            (torch.zeros(1), "holds a Tensor; save a tuple"),
            ({"args": (), "kwargs": {"x": 1}}, "does not run on these inputs"),
        ]:
            torch.save(held, saved)
            result = call("run", files / "model.pt2", "--verify", "numeric", "--inputs", saved)
            assert (result.exit_code, fact in result.stderr) == (2, True), result.stderr


@pytest.fixture
def wrong(tmp_path):
    """A plugin whose pass breaks one program, and that program."""
    plugin = tmp_path / "wrong.py"
    plugin.write_text(BREAKS)
    source = tmp_path / "scales.pt2"
    torch.export.save(torch.export.export(Scales(), (torch.randn(3),)), source)
    return plugin, source


class Scales(torch.nn.Module):
    def forward(self, x):
        return x * 2 * 2 * 3 * 2


BREAKS = """
from dataclasses import dataclass
import torch
from fxpasses import RewritePass, register_pass
from fxpasses.patterns import op, var

@register_pass("test.double-by-adding")
@dataclass(frozen=True)
class DoubleByAdding(RewritePass):
    \"\"\"Write x * k as x + x, also where k is not 2.\"\"\"
    pattern = op(torch.ops.aten.mul.Tensor, var("x"), var("k"))
    def rewrite(self, node, match, editor):
        with editor.at(node):
            editor.replace(node, editor.call(torch.ops.aten.add.Tensor, match["x"], match["x"]))
        return f"times {match['k']} became a sum"
"""


class TestBisect:
    def test_names_the_rewrite_and_exits_with_1(self, wrong):
        plugin, source = wrong
        result = call("--load", plugin, "bisect", source, "-p", "test.double-by-adding")
        assert result.exit_code == 1
        assert "rewrite 3 of 4: test.double-by-adding" in result.stdout
        assert "times 3 became a sum" in result.stdout
        assert "breaks the program at rewrite 3" in result.stderr

    def test_a_command_can_decide(self, wrong):
        plugin, source = wrong
        options = ("-p", "test.double-by-adding", "--check", "test -s")
        result = call("--load", plugin, "bisect", source, *options)
        assert (result.exit_code, result.stdout.strip()) == (0, "no rewrite breaks the program")
        result = call("--load", plugin, "bisect", source, *options[:3], "false")
        assert "before any rewrite" in result.stderr

    def test_a_command_that_is_not_there_decides_nothing(self, wrong):
        plugin, source = wrong
        options = ("-p", "test.double-by-adding", "--check", "./not-there.sh")
        result = call("--load", plugin, "bisect", source, *options)
        assert result.exit_code == 2
        assert "'./not-there.sh' cannot be run: the shell says 127" in result.stderr

    def test_takes_a_recorded_failure(self, wrong, tmp_path):
        plugin, source = wrong
        archive = tmp_path / "failure.zip"
        options = ("-p", "test.double-by-adding", "--verify", "numeric", "--reproducer", archive)
        call("--load", plugin, "run", source, *options)
        result = call("--load", plugin, "bisect", archive)
        assert "rewrite 3 of 4: test.double-by-adding" in result.stdout


class TestReproducer:
    def test_a_failed_run_runs_again(self, wrong, tmp_path):
        plugin, source = wrong
        failure = tmp_path / "failure.zip"
        asked = ("-p", "test.double-by-adding", "--verify", "numeric", "--reproducer", failure)
        first = call("--load", plugin, "run", source, *asked)
        again = call("--load", plugin, "run", failure)
        assert (first.exit_code, again.exit_code) == (1, 1)
        assert first.stderr.splitlines()[-1] == again.stderr.splitlines()[-1]
        assert again.stderr.startswith("recorded: VerificationFailed")


class TestPluginCommands:
    def test_a_broken_one_leaves_the_others_alone(self, monkeypatch):
        broken = EntryPoint("broken", "no_such_module:command", "fxpasses.commands")
        monkeypatch.setattr("fxpasses.cli.group.entry_points", lambda group: [broken])
        shown = call("--help")
        assert shown.exit_code == 0
        assert "broken" in shown.stdout
        result = call("broken", "--any", "thing")
        assert result.exit_code == 1
        assert result.stderr.startswith("error: no_such_module:command cannot be loaded")

    def test_no_arguments_show_the_help(self):
        result = call()
        assert result.exit_code == 2
        assert "Commands:" in result.stderr


class TestDoctor:
    def test_finds_what_lowering_needs(self):
        result = call("doctor")
        assert result.exit_code == 0, result.output
        assert torch.__version__ in result.stdout

    def test_a_compiler_that_is_not_there_is_missing(self):
        assert compiler("no-such-compiler").state == "missing"

    def test_a_compiler_that_cannot_compile_is_missing(self):
        assert compiler("false").state == "missing"

    def test_something_missing_is_exit_code_1(self, monkeypatch):
        monkeypatch.setenv("CXX", "no-such-compiler")
        result = call("doctor")
        assert result.exit_code == 1
        assert "install g++" in result.stdout

    def test_an_executorch_of_another_torch_is_missing(self, monkeypatch):
        monkeypatch.setattr("fxpasses.cli.doctor.version", lambda name: "0.9.0")
        found = next(finding for finding in examine() if finding.what == "executorch")
        assert found.state == "missing"
        assert "pip install 'executorch==" in found.advice


def test_the_installed_command(files, tmp_path):
    command = [sys.executable, "-m", "fxpasses", "run", files / "model.pt2", "-o", "out.pt2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert str(Pipeline.parse("default")) in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["out.pt2"]
