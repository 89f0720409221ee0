"""Each safeguard of the analyses is needed: without it, a rewrite changes what a program gives."""

from dataclasses import replace

import pytest
import torch

from fxpasses import VerificationFailed
from fxpasses.analysis import memory, numbering, repeats
from tests.fxpasses.programs import export, run

PASS = "replace-masked-copy-with-where"


def random_is_pure(patch):
    """Two draws of one distribution would be one value."""
    known = repeats.of_operator
    repeats.facts.cache_clear()
    patch.setattr(repeats, "of_operator", lambda called: replace(known(called), random=False))


def writes_are_not_seen(patch):
    """What was read before a write would be what is read after it."""
    patch.setattr(memory.Memory, "last_write", lambda self, operand, before: None)


def graphs_are_not_walked(patch):
    """Two conds on one predicate would be one value, whatever their branches do."""
    patch.setattr(numbering.Numbering, "_results", lambda self, module, inputs, node: None)


def drawn_twice(p, x, out, source):
    out = out.clone()
    out[torch.randperm(6) < 3] = source[torch.randperm(6) < 3]
    return out


def written_between(p, x, out, source):
    x, out = x.clone(), out.clone()
    picked = source[x > 0]
    x.view(-1).neg_()
    out[x > 0] = picked
    return out


def chosen(p, x, out, source):
    out = out.clone()
    above, below = (lambda x: x > 0), (lambda x: x <= 0)
    picked = source[torch.cond(p, above, below, (x,))]
    out[torch.cond(p, below, above, (x,))] = picked
    return out


@pytest.mark.parametrize(
    ("mutate", "function"),
    [
        (random_is_pure, drawn_twice),
        (writes_are_not_seen, written_between),
        (graphs_are_not_walked, chosen),
    ],
)
def test_mutant(mutate, function, draw, monkeypatch, request):
    request.addfinalizer(repeats.facts.cache_clear)
    half = torch.tensor([1.0, -1, 1, -1, -1, 1])
    program = export(function, torch.tensor(True), half, draw.floats(6), draw.floats(6))
    assert not run(PASS, program, verify="numeric").changed
    mutate(monkeypatch)
    with pytest.raises(VerificationFailed, match="differs"):
        run(PASS, program, verify="numeric")
