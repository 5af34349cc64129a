"""What a command has to say of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from padfix.results.findings import Disagreement, Finding, Refused, Rewritten
from padfix.results.record import Record
from padfix.results.verdict import Verdict

SCHEMA = 1


@dataclass(frozen=True)
class CheckReport(Record):
    """What ``padfix check`` says of one model.

    ``baselined`` is the number of findings that a baseline holds already; they are not among ``findings``.
    ``fix_options`` are what ``convert`` has to be told to rewrite what can be rewritten; None where it can't be used.
    """

    source: str
    target: str
    findings: list[Finding] = field(default_factory=list)
    baselined: int = 0
    fix_options: tuple[str, ...] | None = ()

    @property
    def fixable(self) -> int:
        """How many findings ``convert`` is expected to rewrite."""
        return 0 if self.fix_options is None else sum(finding.fixable for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values, ``schema`` first."""
        content = super().to_dict()
        return {"schema": SCHEMA, **{key: content[key] for key in ("source", "target", "findings")}}


@dataclass(frozen=True)
class ExplicitWindows(Record):
    """How many convolutions and pools of a model have their pads written out.

    Attributes:
        number: All of them.
        asymmetric: Those whose pads, Pads before them included, differ between the two sides of an axis.
    """

    number: int
    asymmetric: int


@dataclass(frozen=True)
class ConvertReport(Record):
    """What ``padfix convert`` did: rewrites with their proofs, refusals with their reasons, and the verdict.

    ``unchanged`` says that a file to be replaced was what it should be already, and was not touched.
    ``disagreements`` are the nodes of the original that a runtime was found to run against the specification.
    ``windows`` are those of the result where the source is not ONNX: the conversion writes most pads out by itself.
    """

    source: str
    output: str
    source_kind: str
    opset: int
    target: str = "onnx"
    rewrites: list[Rewritten] = field(default_factory=list)
    refusals: list[Refused] = field(default_factory=list)
    verdict: Verdict | None = None
    notes: list[str] = field(default_factory=list)
    unchanged: bool = False
    disagreements: list[Disagreement] = field(default_factory=list)
    windows: ExplicitWindows | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values, ``schema`` first."""
        return {"schema": SCHEMA, **super().to_dict(), "verified": self.verdict is not None}


@dataclass(frozen=True)
class OpRecord(Record):
    """One windowed or resampling operator of a model, as ``padfix inspect`` lists it.

    Every tuple has one entry for each spatial axis, None where the operator has no such thing or it is not known.

    Attributes:
        name: The node's.
        op: Its operator.
        graph: Path of scopes.
        kernel: Taps.
        strides: From one window to the next.
        dilations: From one tap to the next.
        padding: As written in the model.
        pads: The resolved ones in ONNX order (all begins, then all ends), those of Pads before the operator included.
        layout: ``"NCHW"`` and the like.
        pad_before: What Pads before the operator add, in the same order; None where there are none.
        mode: How a resize interpolates.
        coordinates: Where it samples.
        rounding: Which element it takes in mode nearest.
        sizes: The lengths that it is told, one entry for each axis that they are for.
        scales: The factors likewise.
    """

    name: str
    op: str
    graph: str
    kernel: tuple[int | None, ...] | None
    strides: tuple[int, ...] | None
    dilations: tuple[int, ...] | None
    padding: str
    pads: tuple[int | None, ...] | None
    layout: str
    pad_before: tuple[int | None, ...] | None = None
    mode: str = ""
    coordinates: str = ""
    rounding: str = ""
    sizes: tuple[int | None, ...] | None = None
    scales: tuple[float | None, ...] | None = None
