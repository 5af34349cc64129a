"""What a rule is: it matches a node, says why that is a problem, and rewrites it or declines with a reason."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.graph.fragment import Fragment
from padfix.graph.scopes import Scope, ValueType, label, normal_domain
from padfix.operators.illustration import illustrate
from padfix.operators.refusal import Refusal
from padfix.results import Finding, Severity
from padfix.results.findings import fingerprint
from padfix.targets import Target, named

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


@dataclass(frozen=True)
class Site:
    """One node where it stands: the node, its index, the scope that knows types and constants, and what is wanted."""

    scope: Scope
    index: int
    node: NodeProto
    target: Target = field(default_factory=partial(named, "onnx"))

    @property
    def domain(self) -> str:
        """The node's domain, normalised."""
        return normal_domain(self.node.domain)

    @property
    def opset(self) -> int:
        """The imported version of the node's domain."""
        return self.scope.opsets.get(self.domain, 1)

    @property
    def label(self) -> str:
        """The node's name for people."""
        return label(self.node, self.index)

    def fingerprint(self, rule: str) -> str:
        """Return what identifies a finding of ``rule`` here while nodes around this one come and go."""
        own = self.node.name or next((f"output {name}" for name in self.node.output if name), "")
        return fingerprint(rule, self.scope.path, self.node.op_type, own)

    def input_name(self, position: int) -> str:
        """Return the name of the input at ``position``; ``""`` when omitted."""
        return self.node.input[position] if position < len(self.node.input) else ""

    def input_type(self, position: int) -> ValueType | None:
        """Return the type of an input, or None when omitted or unknown."""
        name = self.input_name(position)
        return self.scope.type_of(name) if name else None

    def elem_type(self, position: int) -> int:
        """Return the element type of an input; float where it is not known."""
        known = self.input_type(position)
        return known.elem_type if known is not None and known.elem_type else int(TensorProto.FLOAT)

    def constant(self, position: int) -> np.ndarray | None:
        """Return the constant value of an input, or None."""
        name = self.input_name(position)
        return self.scope.constant(name) if name else None

    def text(self, name: str, default: str = "") -> str:
        """Return a string attribute."""
        return attributes.text(self.node, name, default)

    def only(self, *nodes: NodeProto) -> Fragment:
        """Return ``nodes``, which read and give values of the host, as what takes this node's place."""
        return Fragment(nodes, (), self.scope.opset)

    def builder(self, opset: int | None = None, *, shares: bool = False) -> FragmentBuilder:
        """Return a builder for the nodes that take this node's place (imported late: linting never needs it)."""
        from padfix.graph.fragment_builder import FragmentBuilder

        return FragmentBuilder(opset or self.scope.opset, shares=shares)


@dataclass(frozen=True)
class TrialInput:
    """One input of the tiny models of a local proof.

    Attributes:
        shape: The shape to run with.
        elem_type: ``TensorProto.DataType``.
        value: The exact value, for inputs that are not data (scales, output shapes); None for data to be generated.
        constant: Whether ``value`` stands as an initializer in both models, as it does in the host.
    """

    shape: tuple[int, ...]
    elem_type: int = TensorProto.FLOAT
    value: np.ndarray | None = None
    constant: bool = False

    @classmethod
    def of(cls, value: np.ndarray, *, constant: bool = True) -> TrialInput:
        """Return the input that holds this very array."""
        return cls(value.shape, int(helper.np_dtype_to_tensor_dtype(value.dtype)), value, constant)


Trial = Mapping[str, TrialInput]
"""A shape case of a local proof: every boundary input of the node by name."""


@dataclass(frozen=True)
class Rewrite:
    """An exact replacement of one node, or of that node and others that it alone needs.

    Attributes:
        after: What takes the node's place.
        trials: The shape cases to prove it on; each names every non-empty input of the node.
        exact: Whether the results must be equal to the last bit (pools by maximum, nearest); else a few units in the
            last place of the output's range are allowed, for sums that run in another order.
        replaces: Nodes before the node, in the order of the graph, that ``after`` makes up for as well: part of what
            is proven, and deleted once nothing reads them. ``trials`` then name the inputs of them all.
    """

    after: Fragment
    trials: tuple[Trial, ...]
    exact: bool = False
    replaces: tuple[NodeProto, ...] = ()


class Rule(ABC):
    """A rule. The class docstring is its documentation page.

    Class attributes:
        code: ``"PF101"``; fixed for ever.
        name: The bad pattern in kebab case.
        severity: How bad a finding is unless the rule says otherwise for a site.
        operators: (normalised domain, op_type) pairs that :meth:`match` and :meth:`before_upgrade` are asked about.
        fixable: Whether :meth:`rewrite` exists.
        opt_in: Fields of a target under which ``check`` asks the rule when it is selected by its code or name, also
            where the target at hand has no objection.
        example_target: The target for which the page's example is told.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity] = Severity.WARNING
    operators: ClassVar[frozenset[tuple[str, str]]]
    fixable: ClassVar[bool] = True
    opt_in: ClassVar[Mapping[str, Any]] = {}
    example_target: ClassVar[str] = "onnx"

    def has_a_say(self, target: Target) -> bool:
        """Whether the rule can object to a model for this target, which :attr:`opt_in` may make it do."""
        plain = named("onnx")
        return not self.opt_in or any(getattr(target, field) != getattr(plain, field) for field in self.opt_in)

    @abstractmethod
    def match(self, site: Site) -> Finding | None:
        """Return a finding when the node is an instance of the bad pattern. Never needs weights."""

    def minimum_opset(self, site: Site) -> int:
        """Return the lowest default-domain opset that the rewrite of this site can be written in."""
        return 1

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return an exact replacement, or the reason why there is none. Called only for sites that match."""
        return Refusal("This rule only reports.")

    def refusal(self, site: Site) -> Refusal | None:
        """Return why a site that matches has no rewrite, as far as that can be told without writing it; else None.

        Asked by ``check`` as well: what is refused here is reported with the reason, and ``convert`` is not promised.
        """
        return None

    def needs_specification(self, site: Site) -> bool:
        """Whether ONNX Runtime is no judge of a model with this node, and convert wants ``--reference spec``."""
        return False

    def before_upgrade(self, site: Site, opset: int) -> Finding | None:
        """Return a finding for a node that :meth:`rewrite` has to take before its scope moves to a newer ``opset``.

        For operators that lose their meaning on the way, so that no one can translate them afterwards. The rewrite must
        be right at both versions.
        """
        return None

    def trials(self, site: Site) -> tuple[Trial, ...]:
        """Return shape cases that show what a node that is only reported does in a runtime; none by default."""
        return ()

    def finding(self, site: Site, message: str, hint: str = "", *, fixable: bool | None = None) -> Finding:
        """Return a finding of this rule at ``site``."""
        return Finding(
            self.code,
            self.name,
            self.severity,
            site.scope.path,
            site.label,
            site.node.op_type,
            message,
            self.fixable if fixable is None else fixable,
            hint,
            site.fingerprint(self.code),
            illustrate(site.scope, site.node),
            self.needs_specification(site),
        )


@dataclass(frozen=True)
class Correction:
    """Something that is wrong with what a scope says of itself, and what sets it right.

    Attributes:
        finding: What is said and what should be.
        apply: Corrects the model in place, where no computation depends on it.
        opset: The version of the default domain that the model has to move to; None where that is not what is wrong.
        lowers: Whether that is below the one it is written for.
        inlines: Whether what is wrong is that this is a function, whose nodes should stand in the place of its calls;
            or a body, which :attr:`apply` puts in the place of what holds it.
        moves: Whether :attr:`apply` adds nodes before others, so that all is read again before anything else is done.
    """

    finding: Finding
    apply: Callable[[], None] | None = None
    opset: int | None = None
    lowers: bool = False
    inlines: bool = False
    moves: bool = False


class ScopeRule(Rule):
    """A rule about what a scope declares, rather than about one of its nodes."""

    operators: ClassVar[frozenset[tuple[str, str]]] = frozenset()

    def match(self, site: Site) -> Finding | None:
        """Return None: this rule has nothing to say of a node."""
        return None

    @abstractmethod
    def examine(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield what the scope declares wrongly, or otherwise than ``target`` wants it. Never needs weights."""

    def step(self, site: Site, opset: int) -> Finding:
        """Return the finding for one node that has to be rewritten for the move to ``opset``."""
        return Finding(
            self.code,
            self.name,
            Severity.INFO,
            site.scope.path,
            site.label,
            site.node.op_type,
            f"{site.node.op_type} is written for opset {site.scope.opset}; the model moves to opset {opset}.",
        )

    def scope_finding(self, scope: Scope, subject: str, message: str, hint: str, op_type: str = "") -> Finding:
        """Return a finding of this rule about ``subject``, something that ``scope`` declares."""
        return Finding(
            self.code,
            self.name,
            self.severity,
            scope.path,
            subject,
            op_type,
            message,
            fixable=self.fixable,
            hint=hint,
        )
