"""One editor makes every change.

A pass gets an editor for one region and changes the graph through it alone:

    for node in editor.find(torch.ops.aten.dropout.default):
        editor.replace(node, node.args[0])

The editor computes the metadata of what it inserts by running the operator under the graph's own
fake mode, refreshes what lies downstream only as far as it changes, records where new nodes came
from, erases only what is dead and pure, and counts: `changed` is what happened.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg

from fxpasses import _torch, held
from fxpasses.analysis.calls import chooses_by
from fxpasses.analysis.effects import effects
from fxpasses.analysis.nested import Numberings
from fxpasses.analysis.numbering import Numbering
from fxpasses.budget import Budget
from fxpasses.constants import add_constant
from fxpasses.dialect import Spelling, dialect_of
from fxpasses.errors import RewriteRefused
from fxpasses.events import Listener
from fxpasses.fake import Evaluator, finds_sizes
from fxpasses.operators import (
    is_higher_order,
    nodes_in,
    operator_of,
    refuse_no_operator,
    unwrap,
)
from fxpasses.program import Program
from fxpasses.regions import Region
from fxpasses.remarks import Remark, source_of
from fxpasses.values import signature_of, value_of

# Where in the user's program a node comes from; the last is ExecuTorch's number for that.
_INHERITED = ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "debug_handle")


class Editor:
    """The right to change one region, for the time of one pass.

    Attributes:
        program: the program under work.
        pass_name: the pass that works.
        region: the region under work; `editor.region.graph` is its graph.
        node: the node that a `RewritePass` is trying, if it is one.
        edits: how many insertions, replacements and erasures were made.
        tried: nodes that a `RewritePass` looked at.
        matched: those of them that were what it looks for.
        rewrites: rewrites that the pass reported with `passed`.
        remarks: what the pass did and left alone, in order.
        evaluate: gives the fake value of a call without making it (`fxpasses.fake.Evaluator`).
    """

    def __init__(
        self,
        program: Program,
        region: Region,
        pass_name: str,
        listener: Listener,
        evaluate: Evaluator,
        budget: Budget,
        numberings: Numberings | None = None,
    ) -> None:
        self.program = program
        self.region = region
        self.edits = 0
        self.tried = self.matched = self.rewrites = 0
        self.remarks: list[Remark] = []
        self.evaluate = evaluate
        self.pass_name = pass_name
        self.node: Node | None = None
        self._budget = budget
        self._listener = listener
        self._numberings = numberings or Numberings()
        self._numbering: Numbering | None = None
        self._origins: tuple[Node, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything was inserted, replaced or erased."""
        return self.edits > 0

    @cached_property
    def _spell(self) -> Spelling:
        return dialect_of(self.program)

    @property
    def numbering(self) -> Numbering:
        """Value numbers and memory of the region; true for the nodes it had at first use.

        Inputs of a nested graph have one number where every caller gives them one value.
        """
        if self._numbering is None:
            self._numbering = self._numberings.of(self.region)
        return self._numbering

    def find(self, *targets: Any) -> list[Node]:
        """The nodes that call one of `targets`, in graph order, edge-dialect wrappers removed."""
        wanted = set(targets)
        return [node for node in self.region.graph.nodes if operator_of(node) in wanted]

    @contextmanager
    def at(self, node: Node, *origins: Node) -> Iterator[None]:
        """Insert before `node`; what is inserted comes from `origins`, or from `node` alone."""
        self._origins = origins or (node,)
        try:
            with self.region.graph.inserting_before(node):
                yield
        finally:
            self._origins = ()

    def call(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        """Insert a call of `target` where `at` says, with its metadata, and return it.

        In a program of ExecuTorch's edge dialect an ATen operator is inserted as an edge one.

        Raises:
            InvalidPass: `target` is a packet of overloads, or no operator at all.
            RewriteRefused: outside of `with editor.at(...)`, or the operator rejects its operands,
                or an exported program would get a size that depends on data, for which its tables
                have no name.
        """
        if not self._origins:
            raise RewriteRefused("say where to insert: with editor.at(node): ...")
        refuse_no_operator(target)
        self._refuse_foreign(args, kwargs)
        spelled = self._spell(target)
        operator = unwrap(spelled)
        value = self._value(operator, args, kwargs)
        if isinstance(self.program, ExportedProgram):
            _refuse_new_sizes(operator, value, args)
        name = operator._schema.name.split("::")[-1] if isinstance(operator, OpOverload) else None
        node = self.region.graph.create_node("call_function", spelled, args, kwargs, name)
        self._describe(node, value)
        self.edits += 1
        return node

    def constant(self, tensor: torch.Tensor) -> Node:
        """A node that stands for `tensor`, which the program holds from now on.

        Raises:
            RewriteRefused: in a nested graph of an exported program.
        """
        self.edits += 1
        node = add_constant(self.program, self.region, tensor, self.evaluate.mode)
        _torch.creates(node, self.pass_name, self._origins)
        return node

    def move(self, inputs: Sequence[Node], device: torch.device) -> None:
        """Let the program hold the buffers and constants `inputs` on `device` from now on.

        Raises:
            RewriteRefused: one of them is something else, or a reader does not take it there.
        """
        held.move(self.program, inputs, device)
        self.edits += 1
        self.refresh((reader for node in inputs for reader in node.users), inputs)

    def replace(self, old: Node, new: Any, effects_kept: bool = False) -> None:
        """Let every reader of `old` read `new`, then erase `old` and its dead, pure feeders.

        An `old` that writes, checks or draws stays, unless `effects_kept` promises that what
        replaces it has the same effect.
        """
        readers = [reader for reader in old.users if reader is not new]
        old.replace_all_uses_with(
            new, delete_user_cb=lambda user: user is not new, propagate_meta=False
        )
        self.edits += 1
        if signature_of(value_of(old)) != signature_of(value_of(new)):
            self.refresh(readers, [new])
        if effects_kept:
            if self._numbering is not None:
                self._numbering.stands_for(new, old)
            self.erase(old)
        else:
            self.erase_dead(old)

    def erase(self, node: Node) -> None:
        """Erase a node that nobody reads, whatever its effects, and its dead, pure feeders.

        Raises:
            RewriteRefused: `node` still has readers.
        """
        if node.users:
            raise RewriteRefused(f"{node} is still read by {', '.join(map(str, node.users))}")
        feeders = node.all_input_nodes
        self.region.graph.erase_node(node)
        self.edits += 1
        for feeder in feeders:
            self.erase_dead(feeder)

    def erase_dead(self, node: Node) -> None:
        """Erase `node` and its feeders as far as nobody reads them and they only compute.

        A check of metadata that always holds does not count as a reader, and goes too.
        """
        pending = [node]
        while pending:
            dead = pending.pop()
            if (
                _torch.is_erased(dead)
                or dead.op in ("placeholder", "output")
                or not all(map(_gives_nothing, dead.users))
                or not effects(dead).pure
            ):
                continue
            pending.extend(dead.all_input_nodes)
            for erased in (*dead.users, dead):
                self.region.graph.erase_node(erased)
                self.edits += 1

    def refresh(self, nodes: Iterable[Node], altered: Iterable[Any] = ()) -> None:
        """Compute the metadata of `nodes` anew, and of their readers while it changes.

        Args:
            nodes: in any order; each is computed once, after its operands.
            altered: which of their operands changed, as far as that is known.

        Raises:
            RewriteRefused: the change reaches an operator that does not take it, one whose sizes
                depend on data and have names already, or the operands of a nested graph, which was
                traced for the metadata that they have.
        """
        waiting = list(dict.fromkeys(nodes))
        seen, changed = set(waiting), set(nodes_in(list(altered)))
        heapq.heapify(waiting)  # nodes are ordered as in their graph
        while waiting:
            node = heapq.heappop(waiting)
            if node.op == "output" or chooses_by(node, changed):
                continue
            if is_higher_order(node):
                raise RewriteRefused(f"the change would alter what {node} gives to its graphs")
            if node.meta.get("unbacked_bindings"):
                raise RewriteRefused(f"the change would rename the sizes that {node} finds in data")
            before = signature_of(value_of(node))
            node.meta["val"] = self._value(operator_of(node), node.args, node.kwargs)
            if signature_of(node.meta["val"]) != before:
                changed.add(node)
                for reader in node.users.keys() - seen:
                    seen.add(reader)
                    heapq.heappush(waiting, reader)

    def may_rewrite(self) -> bool:
        """Whether one more rewrite may be made; asking counts it as made."""
        return self._budget.take(self.pass_name, self.region.path)

    def passed(self, node: Node, what: str) -> None:
        """Report a rewrite of `node`: `what` completes "rewrote NODE: ..."."""
        self.rewrites += 1
        remark = Remark(
            "passed", self.pass_name, self.region.path, node.name, "", what, source_of(node)
        )
        self.remarks.append(remark)
        self._listener.rewrite(remark)

    def missed(self, node: Node, guard: str, reason: str) -> None:
        """Report that `node` stays: `reason` completes "kept NODE: guard GUARD: ..."."""
        remark = Remark(
            "missed", self.pass_name, self.region.path, node.name, guard, reason, source_of(node)
        )
        self.remarks.append(remark)
        self._listener.missed(remark)

    def _value(self, target: Any, args: Any, kwargs: Any) -> Any:
        try:
            return self.evaluate(target, *args, **kwargs)
        except Exception as error:  # whatever an operator raises, it does not take these operands
            raise RewriteRefused(f"{target} does not take {args}: {error}") from error

    def _refuse_foreign(self, args: Any, kwargs: Any) -> None:
        def refuse(operand: Node) -> None:
            if operand.graph is not self.region.graph:
                raise RewriteRefused(
                    f"{operand} belongs to another graph than "
                    f"{self.region.path or 'the top graph'}: "
                    "hand it over as an operand of the operator that runs the graph"
                )

        map_arg((args, kwargs), refuse)

    def _describe(self, node: Node, value: Any) -> None:
        """Give a new node its value, its provenance and the source position of its first origin."""
        first = self._origins[0]
        for key in _INHERITED:
            if key in first.meta:
                node.meta[key] = first.meta[key]
        _torch.creates(node, self.pass_name, self._origins)
        if value is not None:
            node.meta["val"] = value


def _gives_nothing(node: Node) -> bool:
    """Whether a node neither does anything nor returns anything: a check that always holds."""
    called = operator_of(node)
    return isinstance(called, OpOverload) and not called._schema.returns and effects(node).pure


def _refuse_new_sizes(operator: Any, value: Any, args: Any) -> None:
    """Refuse a size that depends on data and is not among those of the operands.

    Raises:
        RewriteRefused: it would be in none of the tables that an exported program keeps of sizes.
    """
    if isinstance(operator, OpOverload) and finds_sizes(operator):
        known = map_arg(args, value_of)
        if _torch.sizes_from_data(value) - _torch.sizes_from_data(known):
            raise RewriteRefused(f"{operator} finds a size in data, which an export must name")
