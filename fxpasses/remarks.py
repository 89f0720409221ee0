"""What a pass did, and what it left alone and why.

A remark is one sentence about one node, with the source line the node came from:

    passed replace-masked-copy-with-where: index_put became where (embeddings.py:129)
    missed replace-masked-copy-with-where: kept index_put_1: guard same_mask: ... (model.py:12)
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Literal

from torch.fx import Node

_FRAME = re.compile(r'File "(?P<file>[^"<][^"]*)", line (?P<line>\d+)')


@dataclass(frozen=True)
class Remark:
    """One decision of a pass.

    Attributes:
        kind: "passed" for a rewrite that was made, "missed" for one that was refused.
        pass_name: the pass that decided.
        region: path of the graph; "" is the top graph.
        node: name of the node as it was before the decision.
        guard: the guard that refused; "" when passed.
        reason: what was done, or why not.
        source: "file.py:129" of the user's code, or "" where the program does not say.
    """

    kind: Literal["passed", "missed"]
    pass_name: str
    region: str
    node: str
    guard: str
    reason: str
    source: str

    def __str__(self) -> str:
        place = f"{self.region}." if self.region else ""
        guard = f"guard {self.guard}: " if self.guard else ""
        verb = "kept" if self.kind == "missed" else "rewrote"
        source = f" ({self.source})" if self.source else ""
        return (
            f"{self.kind} {self.pass_name}: {verb} {place}{self.node}: {guard}{self.reason}{source}"
        )

    def to_dict(self) -> dict[str, str]:
        """The fields as a JSON object; every value is a string."""
        return asdict(self)


def source_of(node: Node) -> str:
    """Where in the user's code `node` comes from: the innermost frame that export recorded.

    Frames of generated code, such as the graph of a torch.cond branch, are passed over.
    """
    frames = list(_FRAME.finditer(node.meta.get("stack_trace") or ""))
    if not frames:
        return ""
    file, line = frames[-1]["file"], frames[-1]["line"]
    return f"{file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{line}"
