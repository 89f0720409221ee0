"""Hand a pass of your own to an ExecuTorch partitioner, by name.

python examples/lower_with_own_pass.py head.pte
"""

import sys

import drop_dropout  # noqa: F401  # registers acme.drop-dropout
import torch
from executorch.exir import to_edge_transform_and_lower

import backend
from backend import CudaPartitioner


def main(path: str) -> None:
    """Lower a small head with dropout into `path`, and run it."""
    head = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.1))
    inputs = (torch.randn(2, 4),)

    partitioner = CudaPartitioner(passes="acme.drop-dropout,default")
    edge = to_edge_transform_and_lower(torch.export.export(head, inputs), partitioner=[partitioner])
    edge.to_executorch().save(path)

    with backend.load(path) as program:
        print(program["forward"](*inputs))


if __name__ == "__main__":
    main(sys.argv[1])
