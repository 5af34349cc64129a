"""The results that the public API returns and that the reports print: plain frozen data, each with ``to_dict``.

The keys of ``to_dict`` are a contract; ``SCHEMA`` is raised when one changes its meaning.
"""

from __future__ import annotations

from padfix.results.certificate import Certificate, FileDigest, ProofCheck
from padfix.results.fetched import Fetched
from padfix.results.findings import Disagreement, Finding, LocalProof, Refused, Rewritten, Sample, Severity
from padfix.results.identity import Identity
from padfix.results.on_runtime import OnRuntime, RuntimesReport, RuntimeVerdict
from padfix.results.reports import SCHEMA, CheckReport, ConvertReport, ExplicitWindows, OpRecord
from padfix.results.verdict import (
    WITNESSES,
    Difference,
    Failure,
    FirstDifference,
    LayerDifference,
    Measured,
    OutputDifference,
    OutputSummary,
    ProofRun,
    StretchSummary,
    Verdict,
)

__all__ = [
    "SCHEMA",
    "WITNESSES",
    "Certificate",
    "CheckReport",
    "ConvertReport",
    "Difference",
    "Disagreement",
    "ExplicitWindows",
    "Failure",
    "Fetched",
    "FileDigest",
    "Finding",
    "FirstDifference",
    "Identity",
    "LayerDifference",
    "LocalProof",
    "Measured",
    "OnRuntime",
    "OpRecord",
    "OutputDifference",
    "OutputSummary",
    "ProofCheck",
    "ProofRun",
    "Refused",
    "Rewritten",
    "RuntimeVerdict",
    "RuntimesReport",
    "Sample",
    "Severity",
    "StretchSummary",
    "Verdict",
]
