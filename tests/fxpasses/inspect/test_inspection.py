"""An inspection keeps what each pass saw, and the report shows it."""

import re
from html.parser import HTMLParser

import networkx
import pytest
import torch

from fxpasses import Pipeline, UnknownPass
from fxpasses.inspect import inspect_pipeline
from fxpasses.inspect.html import page, side_by_side
from tests.programs import IN_BRANCH, MASKED_COPY

PASS = "replace-masked-copy-with-where"


@pytest.fixture(scope="module")
def inspection():
    return inspect_pipeline(MASKED_COPY.export(), "default")


def test_a_step_for_each_pass_and_region(inspection):
    assert [step.report for step in inspection.steps] == inspection.result.reports
    changed = [step for step in inspection.steps if step.changed]
    assert [(step.name, step.region) for step in changed] == [(PASS, "")]
    assert "aten.index_put" in changed[0].before
    assert "aten.index_put" not in changed[0].after


def test_a_step_that_changed_nothing_has_equal_texts(inspection):
    assert all(step.before == step.after != "" for step in inspection.steps if not step.changed)


def test_a_step_begins_where_the_last_one_ended():
    first, second = inspect_pipeline(MASKED_COPY.export(), f"{PASS},{PASS}").steps
    assert first.before != first.after == second.before == second.after


def test_the_program_is_kept_as_it_was(inspection):
    assert "aten.index_put" in inspection.before
    assert "aten.where" in inspection.after
    assert inspection.pipeline == str(Pipeline.parse("default"))


def test_steps_name_the_nested_region():
    steps = inspect_pipeline(IN_BRANCH.export(), PASS).steps
    assert [step.region for step in steps if step.changed] == ["true_graph_0"]


def test_an_unknown_pass_is_refused():
    with pytest.raises(UnknownPass, match="did you mean 'replace-masked-copy-with-where'"):
        inspect_pipeline(MASKED_COPY.export(), "replace-masked-copy-with-were")


def test_networkx_joins_values_to_readers_and_operators_to_regions():
    inspection = inspect_pipeline(IN_BRANCH.export(), PASS)
    before = inspection.to_networkx("before")
    index = before.nodes["true_graph_0.index"]
    assert index["operator"] == "aten.index.Tensor"
    assert index["type"].startswith("f32[u")
    assert before.edges["true_graph_0.index", "true_graph_0.index_put"] == {"kind": "data"}
    entries = [reader for _, reader, kind in before.out_edges("cond", "kind") if kind == "calls"]
    assert {before.nodes[entry]["region"] for entry in entries} == {"true_graph_0", "false_graph_0"}
    assert networkx.has_path(before, "mask", "true_graph_0.index_put")
    assert "true_graph_0.index" not in inspection.to_networkx()


class Reader(HTMLParser):
    """Collects tags and the text of changed cells, and checks that every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells, self.tags = [], {"gone": [], "new": []}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append((tag, dict(attrs).get("class")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if len(self.open) > 1 and self.open[-2][1] in self.cells:
            self.cells[self.open[-2][1]].append(data)


def test_the_page_marks_the_changed_lines(inspection):
    shown = Reader(page(inspection))
    assert shown.open == []
    assert any("aten.index_put" in line for line in shown.cells["gone"])
    assert any("aten.where" in line for line in shown.cells["new"])
    assert not any("= input" in line for line in shown.cells["gone"] + shown.cells["new"])


def test_the_page_stands_alone_in_light_and_dark(inspection):
    text = page(inspection)
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"\b(src|href)=|https?:|@import|<script", text)


def test_the_page_holds_pipeline_passes_and_remarks(inspection):
    text = page(inspection)
    for fact in (inspection.pipeline, PASS, inspection.remarks[0].source, "Passed"):
        assert fact in text


def test_what_a_program_says_is_escaped():
    class Plain(torch.nn.Module):
        def forward(self, x):
            return torch.einsum("ij->ji", x)

    program = torch.export.export(Plain(), (torch.ones(2, 3),))
    program.graph.output_node().args[0][0].name = "<script>"
    text = page(inspect_pipeline(program, PASS))
    assert "<script>" not in text
    assert "%&lt;script&gt;" in text


def test_a_notebook_shows_a_fragment(inspection):
    fragment = inspection._repr_html_()
    assert "<html" not in fragment
    assert fragment in page(inspection)


def test_save_replaces_the_file_at_once(inspection, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    inspection.save(path)
    assert path.read_text(encoding="utf-8") == page(inspection)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_save_into_a_missing_directory_names_the_file(inspection, tmp_path):
    path = tmp_path / "missing" / "report.html"
    with pytest.raises(FileNotFoundError) as raised:
        inspection.save(path)
    assert raised.value.filename == str(path)


def test_lines_are_aligned_where_they_agree():
    rows = list(side_by_side("a\nb\nc", "a\nc\nd"))
    assert rows == [("a", "a"), ("b", None), ("c", "c"), (None, "d")]
    assert [row.changed for row in rows] == [False, True, False, True]
