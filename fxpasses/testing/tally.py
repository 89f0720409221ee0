"""How many programs were judged, and what became of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from fxpasses.testing.oracle import Trial


@dataclass
class Tally:
    """What became of the programs.

    Attributes:
        programs: how many were exported, run through the pipeline and judged; all differ.
        rewritten: how many of them a pass changed; the others stayed the same object.
        by_pass: how many of them each pass changed.
        kept: for each guard, how many of them have a node that it refused.
        not_exportable: how many more torch.export did not take, by the first words of its reason.
        exported_differs: how many torch.export itself changed; judged against its result.
        failures: the programs that a pass got wrong, shrunk, each with what differs.
    """

    programs: int = 0
    rewritten: int = 0
    by_pass: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    not_exportable: Counter[str] = field(default_factory=Counter)
    exported_differs: int = 0
    failures: list[str] = field(default_factory=list)

    def count(self, trial: Trial) -> None:
        self.programs += 1
        self.rewritten += trial.changed
        self.exported_differs += trial.exported_differs
        passed = {r.pass_name for r in trial.remarks if r.kind == "passed"}
        missed = {f"{r.pass_name}/{r.guard}" for r in trial.remarks if r.kind == "missed"}
        self.by_pass.update(passed)
        self.kept.update(missed)

    def add(self, other: Tally) -> None:
        self.programs += other.programs
        self.rewritten += other.rewritten
        self.exported_differs += other.exported_differs
        self.by_pass += other.by_pass
        self.kept += other.kept
        self.not_exportable += other.not_exportable
        self.failures += other.failures

    def __str__(self) -> str:
        share = self.rewritten / max(self.programs, 1)
        refused = self.not_exportable.total()
        return "\n".join(
            [
                f"programs   {self.programs} ({refused} more that torch.export refuses)",
                f"rewritten  {self.rewritten} ({share:.0%})",
                *(
                    f"           {number:6} by {name}"
                    for name, number in self.by_pass.most_common()
                ),
                "kept by",
                *(f"           {number:6} {name}" for name, number in self.kept.most_common()),
                f"export     {self.exported_differs} differ from eager before any pass",
                f"wrong      {len(self.failures)}",
                *self.failures,
            ]
        )
