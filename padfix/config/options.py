"""Options of a conversion and of a proof: what to make, and how to prove it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from padfix.errors import UsageError

if TYPE_CHECKING:
    from padfix.targets import Target

PathArgument = str | PathLike[str]
REFERENCES = ("auto", "onnxruntime", "spec", "tensorflow")


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """How to prove: the keyword arguments of :func:`verify`, and of :func:`convert` beside its own.

    Attributes:
        reference: Who runs the original: ``"onnxruntime"``, ``"spec"``, ``"tensorflow"``, or ``"auto"`` for
            TensorFlow when the source is TensorFlow's and ONNX Runtime when it is ONNX.
        probes: ``.npz`` and ``.npy`` files, images, and folders of these to prove on, beside the generated data.
        rtol: Allowed difference as a fraction of the output's range; None for the documented defaults.
        atol: Allowed absolute difference, added to it.
        seed: Seed of the generated inputs.
        shapes: Input shapes to fix, by input name.
        locate: Whether to look for the first tensor that differs, which the verdict then names as
            ``first_difference``; :func:`convert` always does.
        certificate: Whether the verdict is to name the files by their SHA-256, which means reading them whole. The
            output's metadata then bears the certificate's digest, unless it is equal to the source.
        layers: Whether the verdict is to say how far inner tensors are, which means running the models again.
        trust: Whether code that the source itself holds may run (Lambda layers), and files that it names be read and
            written. Only for sources that you would run as a program.
        custom_objects: Classes and functions that a Keras file names and does not hold, by name there; or where to
            import each from, ``"module:name"``, which needs ``trust``.
        probes_only: Whether the whole is judged by the data of ``probes`` alone.
        ranges: The lowest and the highest number, both included, of the data that is made for an input, by its name.
        usual_ranges: The same, for models that have such an input; what a configuration file says.
        inputs: Names of the inputs of a frozen graph, when those found are not the right ones. This and the next four
            are of the source; for :func:`verify`, of the first model, of the second where the first is ONNX, and of
            both where they are of one kind.
        outputs: Names of the outputs of a frozen graph.
        constants: Values to fix inputs of a TensorFlow source to, by name: ``{"is_training": False}``. They are no
            inputs of the result.
        signature: Signature of a SavedModel or a TensorFlow Lite file.
        tag: Tag set of a SavedModel.
    """

    reference: str = "auto"
    probes: Sequence[PathArgument] | None = None
    rtol: float | None = None
    atol: float | None = None
    seed: int = 0
    shapes: Mapping[str, Sequence[int]] | None = None
    locate: bool = False
    certificate: bool = False
    layers: bool = False
    trust: bool = False
    custom_objects: Mapping[str, object] | None = None
    probes_only: bool = False
    ranges: Mapping[str, Sequence[float]] | None = None
    usual_ranges: Mapping[str, Sequence[float]] | None = None
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    constants: Mapping[str, object] | None = None
    signature: str | None = None
    tag: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Raise :class:`UsageError` for what does not exist, and for probes alone where there are none."""
        if self.probes_only and not self.probes:
            raise UsageError("There are no probes to judge by alone.", "Give data with --probe beside --probes-only.")
        if self.reference not in REFERENCES:
            raise UsageError(f"There is no reference {self.reference!r}.", f"References: {', '.join(REFERENCES)}.")
        for name, told in (("rtol", self.rtol), ("atol", self.atol)):
            if told is not None and not 0 <= told < math.inf:
                raise UsageError(f"{name} is {told}, which is no tolerance.", "It is a number from 0 on, such as 1e-4.")
        for name, bounds in {**(self.usual_ranges or {}), **(self.ranges or {})}.items():
            if len(bounds) != 2 or not -math.inf < bounds[0] <= bounds[1] < math.inf:
                raise UsageError(
                    f"The range of input {name!r} is not two numbers, the lower one first.", "For example 0..255."
                )

    @property
    def pinned(self) -> dict[str, tuple[int, ...]]:
        """The shapes to fix, by input name."""
        return {name: tuple(shape) for name, shape in (self.shapes or {}).items()}


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(VerifyOptions):
    """What to make and how to prove it: the keyword arguments of :func:`convert`.

    Attributes:
        opset: Lowest default-domain opset of the result.
        target: What the result has to suit, by name.
        pads: ``"attribute"`` writes pads into the operators; ``"node"`` writes those that differ between the two
            sides of an axis as a Pad before the operator (a Slice behind ConvTranspose); None as the target wants it.
        verify: False writes without the whole proof, and the report says so.
        partial: Whether to write what could be rewritten when something else could not.
        external_data: Write the weights beside the model even when it is small.
        in_place: ``output`` is the source itself, an ONNX file, which is replaced; not touched when nothing changes.
        backup: With ``in_place``, keep the original beside it as ``<name>.bak`` (``.bak.1`` when that is taken).
        prove_on: Runtimes that the result is run on as well before it is written; names of
            :func:`padfix.runtimes.names`.
    """

    opset: int | None = None
    target: str = "onnx"
    pads: str | None = None
    verify: bool = True
    partial: bool = False
    external_data: bool = False
    in_place: bool = False
    backup: bool = True
    prove_on: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Raise :class:`UsageError` for what does not exist, and for a proof that is not to be one."""
        super().__post_init__()
        self.wanted()
        if self.prove_on and not self.verify:
            raise UsageError("A result that is to be proven on a runtime is not written without proof.")

    def wanted(self) -> Target:
        """Return the target, with the style of pads that was asked for."""
        from padfix.targets import named

        target = named(self.target)
        return target if self.pads is None else dataclasses.replace(target, pads=self.pads)
