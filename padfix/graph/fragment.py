"""Nodes that take the place of one node, before they are spliced into its graph."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto, TensorProto

LOCAL_PREFIX = "padfix::local::"
"""How names of a fragment's own values start, so that no name of the host is taken for one; splicing renames them."""


@dataclass(frozen=True)
class Fragment:
    """Nodes and constants that compute the same outputs from the same inputs as the node they replace.

    Names of boundary inputs and outputs are the host's own; all other names are local and are made unique when the
    fragment is spliced. ``opset`` is the default-domain version that the nodes are written for.
    """

    nodes: tuple[NodeProto, ...]
    initializers: tuple[TensorProto, ...]
    opset: int
