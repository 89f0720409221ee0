"""fxpasses: composable, checked, explained rewrites of FX graphs."""

from fxpasses import passes
from fxpasses.editor import Editor
from fxpasses.errors import (
    ConflictingPasses,
    DuplicatePass,
    InvalidOption,
    InvalidPass,
    InvalidPipeline,
    InvalidProgram,
    ListenerFailed,
    MissingRequirement,
    NoFixpoint,
    OrderingCycle,
    PassError,
    PassFailed,
    RewriteRefused,
    UnknownPass,
    VerificationFailed,
)
from fxpasses.events import Listener
from fxpasses.fixpoint import Fixpoint
from fxpasses.inspect import inspect_pipeline
from fxpasses.pipeline import Pipeline
from fxpasses.registry import Pass, Registry, register_pass, registry
from fxpasses.remarks import Remark
from fxpasses.report import PassReport, PipelineResult
from fxpasses.rewrite import RewritePass, guard
from fxpasses.verdict import YES, Verdict, no

__version__ = "0.1.0"

__all__ = [
    "YES",
    "ConflictingPasses",
    "DuplicatePass",
    "Editor",
    "Fixpoint",
    "InvalidOption",
    "InvalidPass",
    "InvalidPipeline",
    "InvalidProgram",
    "Listener",
    "ListenerFailed",
    "MissingRequirement",
    "NoFixpoint",
    "OrderingCycle",
    "Pass",
    "PassError",
    "PassFailed",
    "PassReport",
    "Pipeline",
    "PipelineResult",
    "Registry",
    "Remark",
    "RewritePass",
    "RewriteRefused",
    "UnknownPass",
    "Verdict",
    "VerificationFailed",
    "guard",
    "inspect_pipeline",
    "no",
    "passes",
    "register_pass",
    "registry",
]
