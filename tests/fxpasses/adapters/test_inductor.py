"""A pipeline in Inductor's custom pass hooks, in Inductor itself."""

import subprocess
import sys
from dataclasses import dataclass

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_cache

from fxpasses import Listener, Pass, Pipeline, RewritePass
from fxpasses.adapters.fingerprint import fingerprint
from fxpasses.adapters.inductor import inductor_pass
from fxpasses.errors import InvalidProgram
from fxpasses.patterns import op, var
from tests.fxpasses.programs import named

aten = torch.ops.aten
pytestmark = [pytest.mark.compile, pytest.mark.filterwarnings("ignore")]  # Inductor's own
HOOKS = [
    f"{stage}_custom_{place}_pass" for stage in ("joint", "post_grad") for place in ("pre", "post")
]


class Count(Listener):
    """How often a rewrite was made, and how often a pass ran."""

    def __init__(self):
        self.rewrites = self.runs = 0

    def rewrite(self, remark):
        self.rewrites += 1

    def before(self, pass_, region):
        self.runs += 1


@named("t.limit")
@dataclass(frozen=True)
class Limit(RewritePass):
    """Has an option and a guard, and does nothing."""

    limit: int = 4
    pattern = op(aten.sin.default, var("x"))

    def rewrite(self, node, match, editor):
        return ""


@named("t.other")
@dataclass(frozen=True)
class Other(Pass):
    """Stands beside it."""

    def run(self, editor):
        pass


def fill(x, mask):
    x = x.clone()
    x[mask] = 0.5
    return x * 2


@pytest.fixture
def caches():
    """Inductor's caches, empty."""
    torch._dynamo.reset()
    counters.clear()
    with fresh_cache():
        yield counters


def compiled(function, passes, hook="post_grad_custom_pre_pass"):
    torch._dynamo.reset()  # forget the compiled code; the caches on disk stay
    return torch.compile(function, options={hook: passes})


@pytest.mark.parametrize("hook", HOOKS)
def test_each_hook_rewrites(hook, caches, draw):
    count, inputs = Count(), (draw.floats(4, 3), draw.mask(4))
    function = compiled(fill, inductor_pass("default", listeners=[count]), hook)
    assert torch.equal(function(*inputs), fill(*inputs))
    assert count.rewrites == 1


def test_the_graphs_of_control_flow_are_visited_once(caches, draw):
    def branches(x, mask):
        return torch.cond(x.sum() > 0, fill, lambda x, mask: x + 1, (x, mask))

    count, inputs = Count(), (draw.floats(4, 3), draw.mask(4))
    passes = Pipeline([*Pipeline.parse("default").items, Other()])
    function = compiled(branches, inductor_pass(passes, listeners=[count]))
    for x in (inputs[0].abs(), -inputs[0].abs()):
        assert torch.equal(function(x, inputs[1]), branches(x, inputs[1]))
    assert count.rewrites == 1
    assert count.runs == 1 + 3  # the rewrite in one branch, and the other pass on three graphs


def test_a_second_compilation_comes_from_the_cache(caches, draw):
    inputs = draw.floats(4, 3), draw.mask(4)
    first, second = Count(), Count()
    with torch._functorch.config.patch(enable_autograd_cache=False):
        compiled(fill, inductor_pass("default", listeners=[first]))(*inputs)
        assert caches["inductor"]["fxgraph_cache_hit"] == 0
        function = compiled(fill, inductor_pass("default", listeners=[second]))
        assert torch.equal(function(*inputs), fill(*inputs))
    assert caches["inductor"]["fxgraph_cache_hit"] == 1
    assert (first.rewrites, second.runs) == (1, 0)


def test_another_pipeline_is_compiled_anew(caches, draw):
    inputs = draw.floats(4, 3), draw.mask(4)
    compiled(fill, inductor_pass("default"))(*inputs)
    compiled(fill, inductor_pass("default,-remove-async-asserts"))(*inputs)
    assert caches["inductor"]["fxgraph_cache_hit"] == 0
    assert caches["inductor"]["fxgraph_cache_miss"] == 2


def test_a_graph_without_a_module_is_refused():
    graph = torch.fx.Graph()
    with pytest.raises(InvalidProgram, match="GraphModule"):
        inductor_pass("default")(graph)


def test_the_fingerprint_is_the_same_in_each_process():
    program = (
        "from fxpasses import Pipeline; from fxpasses.adapters.fingerprint import fingerprint;"
        "print(fingerprint(Pipeline.parse('default')))"
    )
    command = [sys.executable, "-W", "ignore", "-c", program]
    printed = [subprocess.check_output(command, text=True).strip() for _ in range(2)]
    assert printed[0] == printed[1] != "None"


def test_the_fingerprint_tells_options_and_order_apart():
    pipelines = [
        [Limit(), Other()],
        [Other(), Limit()],
        [Limit(limit=5), Other()],
        [Limit()],
    ]
    assert len({fingerprint(Pipeline(passes)) for passes in pipelines}) == len(pipelines)
    assert fingerprint(Pipeline([Limit()])) == fingerprint(Pipeline([Limit(limit=4)]))


def test_the_fingerprint_tells_weakened_passes_apart():
    default = Pipeline.parse("replace-masked-fill-with-where")
    weakened = Pipeline([default.passes[0].without("layout")])
    assert str(weakened) == str(default)
    assert fingerprint(weakened) != fingerprint(default)


DEFINITION = """
from dataclasses import dataclass
from fxpasses import Pass, Registry, register_pass

def helper(editor):
    {body}

@register_pass("t.from-file", into=Registry())
@dataclass(frozen=True)
class FromFile(Pass):
    def run(self, editor):
        helper(editor)
"""


@pytest.fixture
def from_file(tmp_path, monkeypatch):
    """Imports `FromFile` from a new module, with this body of its helper."""
    monkeypatch.syspath_prepend(tmp_path)

    def load(module, body):
        (tmp_path / f"{module}.py").write_text(DEFINITION.format(body=body))
        loaded = __import__(module)
        return Pipeline([loaded.FromFile()])

    yield load
    for name in ("first_version", "second_version", "same_version"):
        sys.modules.pop(name, None)


def test_the_fingerprint_tells_sources_apart(from_file):
    first = fingerprint(from_file("first_version", "pass"))
    assert fingerprint(from_file("second_version", "return 1")) != first
    assert fingerprint(from_file("same_version", "pass")) == first


def test_a_pass_without_source_is_not_cached(caches, draw, caplog):
    names = {"__name__": "nowhere"}
    exec(DEFINITION.format(body="pass"), names)
    passes = inductor_pass(Pipeline([names["FromFile"]()]))
    assert passes.uuid() is None
    assert "nothing compiled with t.from-file is cached" in caplog.text
    inputs = draw.floats(4, 3), draw.mask(4)
    assert torch.equal(compiled(fill, passes)(*inputs), fill(*inputs))
