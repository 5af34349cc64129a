"""What is said of a source, and what it is once it is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from padfix.errors import UsageError
from padfix.files.detection import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from padfix.config.options import VerifyOptions
    from padfix.files.model import Model
    from padfix.proof.executors import Executor
    from padfix.targets import Target


@dataclass(frozen=True)
class SourceOptions:
    """What the user said about a source.

    Attributes:
        inputs: Names of the tensors to start from (``name`` or ``name:0``); None to find them.
        outputs: Names of the tensors to end at; None to find them.
        constants: Values by input name: such an input becomes a constant.
        signature: The signature of a SavedModel or TensorFlow Lite file; None for ``serving_default`` or the only one.
        tag: The SavedModel's tag (several joined by commas); None for ``serve`` or the only set.
        shapes: Fixed shapes by input name.
        opset: Default-domain opset to convert to; None for the project's default.
        custom_objects: Classes and functions of a Keras file by name; text says where to import one from.
        trust: Whether code that the source itself holds may run, and files that it names be read and written.
    """

    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    constants: Mapping[str, object] = field(default_factory=dict)
    signature: str | None = None
    tag: str | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    opset: int | None = None
    trust: bool = False
    custom_objects: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def told(cls, options: VerifyOptions) -> SourceOptions:
        """Return what the user said about the source among all else."""
        tags = (options.tag,) if isinstance(options.tag, str) else tuple(options.tag or ())
        return cls(
            inputs=tuple(options.inputs or ()),
            outputs=tuple(options.outputs or ()),
            constants=dict(options.constants or {}),
            signature=options.signature,
            tag=",".join(tags) or None,
            shapes=options.pinned,
            trust=options.trust,
            custom_objects=dict(options.custom_objects or {}),
        )

    def require_kind(self, kind: Kind) -> None:
        """Refuse what is said of another kind of file than the one at hand.

        Raises:
            UsageError: An option that has no meaning for ``kind``.
        """
        for field_name, (option, kinds) in _KINDS_OF_OPTION.items():
            if getattr(self, field_name) and kind not in kinds:
                *first, last = dict.fromkeys(_FILES_OF_KIND[each] for each in kinds)
                meant = f"{', '.join(first)} and {last}" if first else last
                instead = _INSTEAD.get((field_name, kind), "")
                raise UsageError(
                    f"{option} is not for {_FILES_OF_KIND[kind]}.", f"It is for {meant}. {instead}".strip()
                )


_KINDS_OF_OPTION: Mapping[str, tuple[str, tuple[Kind, ...]]] = {
    "inputs": ("--input", ("frozen_graph",)),
    "outputs": ("--output", ("frozen_graph",)),
    "constants": ("--constant", ("saved_model", "frozen_graph", "keras", "keras_h5")),
    "custom_objects": ("--custom", ("keras", "keras_h5")),
    "signature": ("--signature", ("saved_model", "tflite")),
    "tag": ("--tag", ("saved_model",)),
}
"""Options by field of :class:`SourceOptions`, and the kinds of file that they say something about."""

_FILES_OF_KIND: Mapping[Kind, str] = {
    "onnx": "ONNX files",
    "saved_model": "SavedModels",
    "frozen_graph": "frozen graphs",
    "keras": "Keras files",
    "keras_h5": "Keras files",
    "tflite": "TensorFlow Lite files",
}

_INSTEAD: Mapping[tuple[str, Kind], str] = {
    ("inputs", "saved_model"): "Choose another signature with --signature.",
    ("outputs", "saved_model"): "Choose another signature with --signature.",
}


@dataclass
class Source:
    """An opened source.

    Attributes:
        kind: What the file is.
        model: The ONNX model, read or converted.
        executor: Makes a runner of the original in its own runtime, with the same input and output names as ``model``;
            None when the source is ONNX itself.
        notes: Sentences worth telling the user.
        passes: The passes of the importer's optimiser by name, those that break models first.
        without: Returns the source imported without some passes, with a note; None where there are none.
        faults: Finds the nodes that the original's runtime runs against its own documentation, a sentence for each;
            for when its numbers differ from the converted model's.
    """

    kind: Kind
    model: Model
    executor: Callable[[], Executor] | None = None
    notes: list[str] = field(default_factory=list)
    faults: Callable[[], list[str]] = list
    passes: Sequence[str] = ()
    without: Callable[[Sequence[str]], Source] | None = None

    def suited(self, target: Target) -> Model:
        """Return the model, which takes an empty batch where the target wants that and the original takes one."""
        from padfix.sources.rowless_recurrences import give_a_row

        if self.kind != "onnx" and target.empty_batch:
            give_a_row(self.model)
        return self.model

    def files(self, path: Path) -> list[Path]:
        """Return the files that the model comes from; ``path``, which the user named, first."""
        from padfix.files.sink import source_files

        if self.kind != "onnx":
            return [path]
        return [path, *(file for file in source_files(self.model, None) if not file.samefile(path))]
