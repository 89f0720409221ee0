"""What a pass on masked writes must do with a function: rewrite it, or refuse with a reason."""

from dataclasses import dataclass

import pytest
from torch.export import ExportedProgram

from fxpasses import RewritePass, VerificationFailed
from tests.fxpasses.programs import assert_equal_to_eager, export, missed, picks, run, writes


def copy_picks(out, source, mask):
    """A copy of `out` with `source` where the mask says so."""
    out = out.clone()
    out[mask] = source[mask]
    return out


@dataclass(frozen=True)
class Judge:
    """Exports functions, runs one pass on them, and compares with eager."""

    subject: RewritePass

    def rewrite(self, function, *inputs, functional=False, dynamic=None) -> ExportedProgram:
        """The rewritten program; every write must have become a where, and every pick be gone."""
        program = export(function, *inputs, functional=functional, dynamic=dynamic)
        result = run(self.subject, program)
        assert writes(result.program) == picks(result.program) == 0, missed(result)
        assert_equal_to_eager(result.program, function, *inputs)
        return result.program

    def refuse(self, function, *inputs, functional=False) -> dict[str, str]:
        """The reasons by guard; every write must be as it was."""
        program = export(function, *inputs, functional=functional)
        result = run(self.subject, program)
        assert writes(result.program) == writes(program)
        assert_equal_to_eager(result.program, function, *inputs)
        return missed(result)

    def assert_needed(self, guard, function, *inputs, functional=False) -> None:
        """Without the guard, the rewrite gives something else."""
        with pytest.raises(VerificationFailed, match=r"differs|it returned .* before the pass"):
            run(self.subject.without(guard), export(function, *inputs, functional=functional))
