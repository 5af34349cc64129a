"""The graph as a protobuf with the weights left where they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto

from padfix.results import Identity


@dataclass
class Model:
    """An ONNX graph whose large tensor payloads stay in the file they came from.

    Attributes:
        proto: The skeleton: a complete ``ModelProto`` but that each large tensor holds an external-data pointer into
            ``path`` (marked with the metadata property :data:`padfix.files.payloads.MARK`) in place of its payload.
            Tensors that were external data in the source keep their own entries untouched.
        path: The file that the marked pointers mean; None for a model made in memory, which has no marked pointers.
        folder: The folder that external-data locations are relative to.
        identity: The file as it was read; None for a model made in memory.
    """

    proto: ModelProto
    path: Path | None = None
    folder: Path | None = None
    identity: Identity | None = None

    def copy(self) -> Model:
        """Return a model with its own skeleton; the weights are still shared, on disk."""
        proto = ModelProto()
        proto.CopyFrom(self.proto)
        return Model(proto, self.path, self.folder, self.identity)
