"""Facts about a program that passes and the backend rest on."""

from fxpasses.analysis.buffers import BufferWrite, writes_buffers
from fxpasses.analysis.effects import Effects, effects
from fxpasses.analysis.equivalence import equivalent
from fxpasses.analysis.host_reads import HostRead, host_reads
from fxpasses.analysis.layout import lays_out_like
from fxpasses.analysis.memory import Memory
from fxpasses.analysis.numbering import Numbering

__all__ = [
    "BufferWrite",
    "Effects",
    "HostRead",
    "Memory",
    "Numbering",
    "effects",
    "equivalent",
    "host_reads",
    "lays_out_like",
    "writes_buffers",
]
