"""A pipeline in front of a `torch.compile` backend: inference, and a training step."""

import copy
from dataclasses import dataclass, field

import pytest
import torch
from torch._inductor.utils import fresh_cache
from torch.fx import GraphModule

from fxpasses import InvalidOption, Listener, Pipeline, RewritePass, UnknownPass
from fxpasses.adapters.compile import backend
from fxpasses.adapters.inductor import inductor_pass
from fxpasses.patterns import op, var
from tests.fxpasses.programs import named

aten = torch.ops.aten
pytestmark = [pytest.mark.compile, pytest.mark.filterwarnings("ignore")]  # Inductor's own


class Masked(torch.nn.Module):
    """Writes through a mask, forward and backward."""

    def __init__(self, weight):
        super().__init__()
        self.weight = torch.nn.Parameter(weight)

    def forward(self, x, mask):
        y = x * self.weight
        y[mask] = 0.5
        return y * y


class Rewrites(Listener):
    """The operators that were rewritten."""

    def __init__(self):
        self.nodes = []

    def rewrite(self, remark):
        self.nodes.append(remark.node)


@dataclass
class Keep:
    """A compiler that keeps the graphs and runs them as they are."""

    graphs: list[GraphModule] = field(default_factory=list)

    def __call__(self, module, inputs):
        self.graphs.append(module)
        return module

    def targets(self):
        return [{node.target for node in module.graph.nodes} for module in self.graphs]


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    with fresh_cache():
        yield


def step(module, model, x, mask):
    """One training step: the loss, and the weight after it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = module(x, mask).sum()
    loss.backward()
    optimizer.step()
    return loss.detach(), model.weight.detach()


@pytest.fixture(params=["compiler", "inductor"])
def then(request):
    return Keep() if request.param == "compiler" else "inductor"


def test_inference(then, draw):
    model, listener = Masked(draw.floats(4, 3)), Rewrites()
    compiled = torch.compile(model, backend=backend("default", then=then, listeners=[listener]))
    inputs = draw.floats(4, 3), draw.mask(4)
    with torch.no_grad():
        assert torch.equal(compiled(*inputs), model(*inputs))
    assert listener.nodes == ["index_put"]


def test_a_training_step(then, draw):
    model, listener = Masked(draw.floats(4, 3)), Rewrites()
    other = copy.deepcopy(model)
    compiled = torch.compile(model, backend=backend("default", then=then, listeners=[listener]))
    inputs = draw.floats(4, 3), draw.mask(4)
    for ours, eager in zip(
        step(compiled, model, *inputs), step(other, other, *inputs), strict=True
    ):
        assert torch.equal(ours, eager)
    assert len(listener.nodes) == 2  # the write, and its gradient


def test_the_compiler_gets_the_rewritten_aten_graphs(draw):
    keep = Keep()
    model = Masked(draw.floats(4, 3))
    torch.compile(model, backend=backend("default", then=keep))(
        draw.floats(4, 3), draw.mask(4)
    ).sum().backward()
    forward, backward = keep.targets()
    for targets in (forward, backward):
        assert aten.where.self in targets
        assert aten.index_put.default not in targets


def test_decompositions_reach_the_compiler(draw):
    keep = Keep()
    table = torch._decomp.get_decompositions([aten.silu])
    compiled = torch.compile(
        torch.nn.functional.silu, backend=backend("default", then=keep, decompositions=table)
    )
    x = draw.floats(4)
    torch.testing.assert_close(compiled(x), torch.nn.functional.silu(x))
    assert aten.silu.default not in keep.targets()[0]


def test_a_compiler_may_take_its_inputs_as_one_list(draw):
    def boxed(module, inputs):
        def call(values):
            return module(*values)

        call._boxed_call = True
        return call

    x = draw.floats(4)
    assert torch.equal(torch.compile(torch.sin, backend=backend("default", then=boxed))(x), x.sin())


def test_inductor_keeps_its_options(draw):
    compiled = torch.compile(
        torch.sin, backend=backend("default"), options={"no-such-option": True}
    )
    with pytest.raises(Exception, match="no-such-option"):
        compiled(draw.floats(4))


def test_another_pass_in_the_same_hook_is_not_pushed_out(draw):
    hook = {"post_grad_custom_pre_pass": inductor_pass("default")}
    compiled = torch.compile(torch.sin, backend=backend("default"), options=hook)
    with pytest.raises(Exception, match="make one pipeline of both"):
        compiled(draw.floats(4))


def test_wrong_use_fails_at_once():
    with pytest.raises(UnknownPass):
        backend("no-such-pass")
    with pytest.raises(InvalidOption, match="inductor"):
        backend("default", then="aot_eager")
    with pytest.raises(InvalidOption, match="leave them out"):
        backend("default", decompositions={})


@named("test.add-a-constant")
@dataclass(frozen=True)
class AddAConstant(RewritePass):
    """x + 1 -> x + constant"""

    pattern = op(aten.add.Tensor, var("x"), 1)

    def rewrite(self, node, match, editor):
        with editor.at(node):
            one = editor.constant(torch.ones(()))
            editor.replace(node, editor.call(aten.add.Tensor, match["x"], one))
        return "the number became a constant"


def test_a_new_constant_is_real(draw):
    """AOTAutograd calls a compiler where it has turned fake tensors on."""
    keep, x = Keep(), draw.floats(3)
    torch.compiler.reset()
    compiled = torch.compile(
        lambda x: x + 1, backend=backend(Pipeline([AddAConstant()]), then=keep)
    )
    assert torch.equal(compiled(x), x + 1)
    assert type(dict(keep.graphs[0].named_buffers())["_lifted_constant_0"]) is torch.Tensor
