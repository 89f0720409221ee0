"""A method that can be called like the module that was exported.

    method = program["forward"]
    [str(spec) for spec in method.inputs]      # ['x: float32[s77[0..20], 3]']
    result = method(x)

What the compiled code returns belongs to the caller: it shares no memory with the inputs, with the
weights or with the state, nor do two results share any, where eager may return views. An input
that the program returns as it is comes back as the very tensor that was passed, as in eager. State
(the buffers that the program writes) stays with the method from call to call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_unflatten

from backend.compile.library import Library
from backend.errors import InvalidArgument
from backend.program.plan import Constant, MethodPlan
from backend.program.tensor_spec import TensorSpec
from backend.runtime.inputs import flatten, select


class Method:
    """One method of a `Program`. Calls from several threads run one after the other.

    Attributes:
        name: its name in the program.
        plan: how its inputs and outputs reach the compiled code.
    """

    def __init__(
        self, name: str, plan: MethodPlan, library: Library, weights: dict[str, Tensor]
    ) -> None:
        library.bind(weights)
        self.name = name
        self.plan = plan
        self._library: Library | None = library
        self._weights = weights
        self._lock = Lock()

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The tensors that the compiled code takes."""
        return self.plan.payload.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """The tensors and numbers that the compiled code gives."""
        return self.plan.payload.outputs

    @property
    def pipeline(self) -> str:
        """The text of the pipeline that ran before the method was compiled."""
        return self.plan.payload.pipeline

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on `args` and `kwargs`, structured as at export; the result is as eager's.

        Raises:
            InvalidArgument: the arguments are not what the method was compiled for.
            Internal: the compiled code failed.
        """
        with self._lock, torch.no_grad():
            library = self._open_library()
            leaves = flatten(args, kwargs, self.plan.in_spec)
            tensors = select(leaves, self.plan)
            results = owned(library.run(tensors), [*tensors, *self._weights.values()])
        given = [
            as_exported(value, spec) for value, spec in zip(results, self.outputs, strict=True)
        ]
        flat = [pick(source, leaves, given) for source in self.plan.outputs]
        return tree_unflatten(flat, self.plan.out_spec)

    def state_dict(self) -> dict[str, Tensor]:
        """The buffers that the method writes, as they are now: copies, by name.

        Raises:
            InvalidArgument: the method is closed.
        """
        with self._lock:
            self._open_library()
            names = self.plan.payload.mutated_buffers
            return {name: self._weights[name].clone() for name in names}

    def close(self) -> None:
        """Let go of library, weights and state."""
        with self._lock:
            self._library = None
            self._weights = {}

    def _open_library(self) -> Library:
        if self._library is None:
            raise InvalidArgument(f"method {self.name!r} is closed; load the program again")
        return self._library


def pick(source: tuple[str, int] | Constant, leaves: Sequence[Any], given: Sequence[Any]) -> Any:
    """The value of one output: a constant, one of the call's inputs, or what the library gave."""
    if isinstance(source, Constant):
        return source.value
    origin, index = source
    return given[index] if origin == "delegate" else leaves[index]


def owned(results: Iterable[Tensor], held: Iterable[Tensor]) -> list[Tensor]:
    """`results`, each in memory that neither `held` nor an earlier result uses.

    The lowered graph copies what it returns, but a pass may drop an operator after that, and leave
    an input or a buffer in its place.
    """
    taken = {address(tensor) for tensor in held}
    fresh = []
    for result in results:
        if address(result) in taken and result.numel():
            result = result.clone()
        taken.add(address(result))
        fresh.append(result)
    return fresh


def address(tensor: Tensor) -> int:
    """Where the storage of `tensor` starts."""
    return tensor.untyped_storage().data_ptr()


def as_exported(value: Tensor, spec: TensorSpec) -> Any:
    """The tensor, or the number that it stands for."""
    return value if spec.kind == "tensor" else value.item()
