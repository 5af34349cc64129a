"""What ``convert`` and ``inspect`` have to say of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from padfix.results.certificate import Certificate
from padfix.results.check_report import SCHEMA
from padfix.results.graph_map import GraphMap
from padfix.results.on_runtime import RuntimeVerdict
from padfix.results.record import Record
from padfix.results.rewrites import Disagreement, Refused, Rewritten
from padfix.results.verdict import Failure, Verdict


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

    Attributes:
        source: What was converted.
        output: Where the result was to go.
        source_kind: What the source is; empty where it could not be told.
        opset: Of the result; None where it did not come to one.
        target: What the result has to suit.
        rewrites: What was rewritten, each with its own proof. Where nothing was written, that is all it is.
        refusals: What could not be rewritten.
        verdict: The proof of the whole; None where there is none.
        notes: Sentences worth saying.
        written: Whether the result is at ``output`` now.
        unchanged: Whether a file to be replaced was what it should be already, and was not touched.
        disagreements: The nodes of the original that a runtime was found to run against the specification.
        windows: Those of the result where the source is not ONNX: the conversion writes most pads out by itself.
        runtimes: What the runtimes that the result was to be proven on make of it.
        error: Why nothing was written; None after a success.
        certificate: Both models and what the report was made with; only where it was asked for.
        maps: The source's graphs as a report draws them, as ONNX; not part of what :meth:`to_dict` gives.
    """

    source: str
    output: str
    source_kind: str = ""
    opset: int | None = None
    target: str = "onnx"
    rewrites: list[Rewritten] = field(default_factory=list)
    refusals: list[Refused] = field(default_factory=list)
    verdict: Verdict | None = None
    notes: list[str] = field(default_factory=list)
    written: bool = False
    unchanged: bool = False
    disagreements: list[Disagreement] = field(default_factory=list)
    windows: ExplicitWindows | None = None
    runtimes: tuple[RuntimeVerdict, ...] = ()
    error: Failure | None = None
    certificate: Certificate | None = None
    maps: tuple[GraphMap, ...] = field(default=(), compare=False, repr=False)

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
