"""What runs pieces of a model: the contract of an executor's ``inner``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from padfix.proof.executors import Array, Executor, TensorSpec


def no_attribute(name: str) -> Any:
    """Return None: an operator whose attributes are not known here."""
    return None


@dataclass(frozen=True)
class TensorNode:
    """A tensor inside a runner of the original.

    Attributes:
        name: Its name, as the converted model has it where it is there too.
        op_type: The operator, in the runtime's own words.
        inputs: Names of the tensors that it is computed from.
        elem_type: ``TensorProto.DataType``; 0 when ONNX has none.
        shape: Static lengths, None for an unknown one; None as a whole when the rank is unknown.
        can_feed: Whether a value can be put in its place.
        attribute: Returns an attribute of the operator by name; None where there is none.
    """

    name: str
    op_type: str
    inputs: tuple[str, ...]
    elem_type: int
    shape: tuple[int | None, ...] | None
    can_feed: bool
    attribute: Callable[[str], Any] = field(default=no_attribute, compare=False)


class InnerExecutor(Protocol):
    """Runs pieces of a model: what an executor's ``inner`` is where it has one.

    Attributes:
        can_feed: Whether values can be put inside; else only inputs are fed.
    """

    can_feed: bool

    def graph(self) -> list[TensorNode]:
        """Return every tensor, each behind those that it is computed from.

        Raises:
            ExecutionFailed: The runtime refused.
        """
        ...

    def has_elements(self, feeds: Mapping[str, Array], fetches: Sequence[str]) -> bool:
        """Whether all that ``fetches`` need has elements, by the runtime's own rules of shapes; nothing is run."""
        ...

    def with_branch(self, node: str, branch: str) -> InnerExecutor:
        """Return what runs the model in which a condition always takes ``then_branch``, or ``else_branch``.

        Raises:
            ExecutionFailed: It has no such condition.
        """
        ...

    def run_inner(self, feeds: Mapping[str, Array], fetches: Sequence[str]) -> dict[str, Array]:
        """Run what ``fetches`` need, the model cut at the tensors that are fed.

        Args:
            feeds: Values by name. Whoever reads such a tensor reads the value.
            fetches: Names of tensors; one that is fed as well is computed from what else is fed.

        Raises:
            ExecutionFailed: The runtime refused, or there is no such tensor.
        """
        ...


class Piece:
    """An executor of what runs pieces of a model: of some of its tensors from its inputs on."""

    def __init__(self, name: str, inputs: Sequence[TensorSpec], outputs: Sequence[str], inner: InnerExecutor) -> None:
        self.name = name
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.inner = inner

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model once; see :class:`padfix.proof.executors.Executor`."""
        return self.inner.run_inner(feeds, self.outputs)


def inner_of(executor: Executor) -> InnerExecutor | None:
    """Return what runs pieces of the model that ``executor`` runs; None where nothing can."""
    found: InnerExecutor | None = getattr(executor, "inner", None)
    return found
