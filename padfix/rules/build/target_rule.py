"""A rule about what the target refuses or computes wrongly: what its facts say, and the first form that they allow."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from padfix.operators.constant_chains import has_chain, is_worked_out
from padfix.operators.refusal import Refusal
from padfix.operators.steps_of_bytes import is_of_quantizer
from padfix.operators.traits import traits_of
from padfix.results import Finding, Severity
from padfix.rules.base import Rewrite, Rule, Site
from padfix.rules.build.apart_from_layers import apart_from_convolution
from padfix.rules.build.as_floats import MOVING, as_floats, between_steps, in_single_precision
from padfix.rules.build.axis_forms import as_images, beside_an_axis, joined_reshapes
from padfix.rules.build.broadcast_forms import on_rows
from padfix.rules.build.constant_forms import (
    CONSTANTS_APART,
    asked_form,
    constant_form,
    initialized_form,
    mended_later,
    number_form,
    of_nothing,
)
from padfix.rules.build.data_before_constants import behind_data
from padfix.rules.build.early_lengths import early_lengths, lengths_as_tensors
from padfix.rules.build.far_squares import of_smaller_squares
from padfix.rules.build.fewer_axes import on_fewer_axes
from padfix.rules.build.folded_batch import folded_batch
from padfix.rules.build.forms import Form, by_another_rule, first_right
from padfix.rules.build.laid_out_alike import laid_out_alike
from padfix.rules.build.masked_forms import from_least_masked
from padfix.rules.build.moved_forms import behind_convolution, behind_reshapes
from padfix.rules.build.negative_forms import between_negatives, negated_difference
from padfix.rules.build.node_forms import negated_behind
from padfix.rules.build.objections import Objection, objections, worst_objection
from padfix.rules.build.passing_forms import (
    APART,
    behind_maximum,
    identity_behind,
    kept_written,
    negated_twice,
    of_fewer_axes,
    summed_with_nothing,
)
from padfix.rules.build.told_batch import pooled_before
from padfix.rules.build.uncopied_forms import uncopied_form
from padfix.rules.build.whole_forms import as_dense_layer, with_whole_doubles
from padfix.rules.build.written_forms import without_unnamed_ends
from padfix.targets import Target, named

_OF_DATA = (
    "across-images",
    "alike",
    "axes",
    "beside-numbers",
    "bytes",
    "channels-last",
    "computed-fewer-axes",
    "constants",
    "doubles-of-floats",
    "ends-model",
    "fewer-axes",
    "high-power",
    "joins-images",
    "leaves-bytes",
    "leaves-rows-out",
    "moves-batch",
    "moves-fewer-axes",
    "orders-differ",
    "put-back",
    "reads-unsigned-bytes",
    "of-weights",
    "type",
)
"""What is said of the data of a node, and of who reads its result, whatever form it has."""

_OF_BYTES = frozenset(("bytes", "elements", "numbers", "of-quantizer", "type"))
"""What is said of the type of data."""

_OF_ORDER = frozenset(("channels-last", "orders-differ", "put-back"))
"""What is said of the order in which the axes of data are."""


_BY_MARK: Mapping[str, Callable[[Site], Iterable[Form]]] = {
    "adds-to-convolution": lambda site: [apart_from_convolution(site)],
    "ends-unnamed": lambda site: [without_unnamed_ends(site)],
    "joins-a-copy": lambda site: [uncopied_form(site)],
    "squares-far": of_smaller_squares,
    "cuts-window-off-zero": lambda site: [between_negatives(site)],
    "laid-out-apart": laid_out_alike,
    "gives-squeezed": lambda site: [identity_behind(site)],
    "kept-unwritten": lambda site: [kept_written(site)],
    "turns-longs": lambda site: [summed_with_nothing(site)],
    "takes-nothing": lambda site: [of_nothing(site)],
    "doubles-of-floats": lambda site: [as_dense_layer(site), with_whole_doubles(site)],
    "makes-lengths-late": early_lengths,
    "reads-list-of-lengths": lengths_as_tensors,
    "spreads-alike": lambda site: [negated_difference(site)],
    "masks-by-numbers": lambda site: [from_least_masked(site)],
}
"""By what a fact that fits a node says of it: the forms that are without that, for a target with such a fact alone."""


class TargetRule(Rule):
    """Matches operators that a fact of the target fits, and writes the first of its forms that none fits."""

    severity = Severity.ERROR
    example_target = "ncnn"

    @abstractmethod
    def forms(self, site: Site) -> Iterator[Form]:
        """Yield equal forms of the node, the nearest to what stands there first."""

    def has_a_say(self, target: Target) -> bool:
        """Whether anything is known of the target."""
        return bool(target.facts)

    def match(self, site: Site) -> Finding | None:
        """Return a finding where a fact of the target fits the node."""
        objection = self.objection(site) if site.target.facts else None
        if objection is None:
            return None
        found = self.finding(
            site,
            objection.sentence(site.target, site.node.op_type),
            f"padfix convert --target {site.target.name} writes it in a form that is right there.",
        )
        return dataclasses.replace(found, severity=objection.severity)

    def objection(self, site: Site) -> Objection | None:
        """Return the worst thing that the target has against the node; None where it has nothing.

        What its converter works out by itself it never runs, but it works out no norm that trains.
        """
        traits = traits_of(site.scope, site.node)
        found = None if traits is None else worst_objection(site.target, site.node.op_type, site.opset, traits)
        folds = site.target.folds_lengths and not (traits or {}).get("trains")
        is_folded = found is not None and folds and is_worked_out(site.scope, site.node)
        return None if is_folded else found

    def minimum_opset(self, site: Site) -> int:
        """Return the version that the first right form is written in."""
        form = first_right(site, self._forms(site))
        return 1 if isinstance(form, Refusal) else form.opset

    def refusal(self, site: Site) -> Refusal | None:
        """Return why there is no form that is right on the target."""
        form = first_right(site, self._forms(site))
        return self._refused(site, form) if isinstance(form, Refusal) else None

    def _forms(self, site: Site) -> Iterator[Form]:
        """Yield the forms, in which what is still of the node's own type reads the node's data unless it says more."""
        own = traits_of(site.scope, site.node) or {}
        read = {name: own[name] for name in _OF_DATA if name in own}
        numbers = {"numbers": own["numbers"]} if own.get("numbers", "single") != "single" else {}
        numbers |= {"by-infinity": True} if own.get("by-infinity") else {}
        numbers |= {"constant-doubles": True} if own.get("constant-doubles") else {}
        # What is still given by nodes, or for others, is in initializers in the end: the node is found for that again.
        later = dict.fromkeys(mended_later(site), False)
        for form in self._all_forms(site):
            told = (
                (
                    op_type,
                    {**numbers, **traits} if op_type != site.node.op_type else {**numbers, **read, **traits, **later},
                )
                for op_type, traits in form.operators
            )
            yield dataclasses.replace(form, operators=tuple(told))

    def _all_forms(self, site: Site) -> Iterator[Form]:
        """Yield the forms; only once there is but one image, what else the target has against the operator counts.

        What depends on no data has the form of a constant, whatever computes it; weights stay quantized if they can.
        """
        # What a Where chooses can be computed instead; all else holds the number itself.
        against = () if site.node.op_type == "Where" else self._objections(site)
        if any("infinity-as-result" in each.fact.where for each in against):
            return iter((Form("numbers", (), by_another_rule, Refusal("a result of the model holds an infinity")),))
        computed = []
        if has_chain(site.scope, site.node, open_lengths=True):
            is_result = site.scope.parent is None and any(map(site.scope.is_output, site.node.output))
            computed = [constant_form(site), *([behind_data(site)] if is_result else [])]
        is_stored = site.node.op_type == "DequantizeLinear"
        return chain(computed, self._data_forms(site)) if not is_stored else chain(self._data_forms(site), computed)

    def _data_forms(self, site: Site) -> Iterator[Form]:
        worst, every = self.objection(site), self._objections(site)
        marks = set() if worst is None else set(worst.fact.where)
        if marks & (later := mended_later(site)):
            others = [each for each in every if not later & each.fact.where.keys()]
            marks |= {mark for each in others for mark in each.fact.where}
        if "batch-within" in marks:
            yield folded_batch(site)
        elif "unlike-batches" in marks:
            yield Form(
                "each image alone",
                (),
                by_another_rule,
                Refusal("an input or a result is, or may be, of another number of images (--shape)"),
            )
        # The target minds that nothing is left of the node, whatever else it has against it.
        elif any("gives-the-same" in each.fact.where and not each.unknown for each in every):
            yield negated_twice(site)
        elif any("laid-back" in each.fact.where for each in every):
            yield negated_behind(site)
        else:
            if any("of-untold-volume" in each.fact.where for each in every):
                yield from pooled_before(site)
            if marks & {"constants-by-nodes", *CONSTANTS_APART}:
                yield initialized_form(site)
            if "lists-for-numbers" in marks:
                yield number_form(site)
            if "constant-booleans" in marks:
                yield asked_form(site)
            for mark, forms in _BY_MARK.items():
                if any(mark in each.fact.where for each in every):
                    yield from forms(site)
            if any("one-of-more-axes" in each.fact.where for each in every):
                yield of_fewer_axes(site)
            if any(mark in each.fact.where for mark in APART for each in every):
                yield behind_maximum(site)
            if marks & {"of-made-list", "of-made-number"}:
                yield from on_rows(site)
            if marks & _OF_ORDER:
                yield from behind_convolution(site)
            if "orders-differ" in marks:
                yield from behind_reshapes(site)
            if "channels-last" in marks:
                yield from as_images(site)
                yield from joined_reshapes(site) if site.node.op_type == "Reshape" else beside_an_axis(site)
            if any({"axes", "spreads-alike"} & each.fact.where.keys() for each in every):
                yield from on_fewer_axes(site)
            of_bytes = bool(marks & _OF_BYTES)
            is_quantized = of_bytes and is_of_quantizer(site.scope, site.node)
            if is_quantized:
                yield between_steps(site)
            yield from self.forms(site)
            if "bytes" in marks and site.node.op_type in MOVING:
                yield from as_floats(site)
            if of_bytes and not is_quantized:
                yield between_steps(site)
            if "numbers" in marks:
                yield in_single_precision(site)
            if "channels-last" in marks or any("spreads-alike" in each.fact.where for each in every):
                yield from behind_reshapes(site)

    def _objections(self, site: Site) -> tuple[Objection, ...]:
        """Return all that the target has against the node as it is."""
        traits = traits_of(site.scope, site.node) or {}
        return tuple(objections(site.target, site.node.op_type, site.opset, traits))

    def _refused(self, site: Site, refusal: Refusal) -> Refusal:
        """Return the refusal with the version that takes the node as it is, where the target means others as well."""
        for version in reversed(site.target.versions) if len(site.target.versions) > 1 else ():
            only = named(f"{site.target.name}@{version}")
            if self.match(dataclasses.replace(site, target=only)) is None:
                takes = f"{only.title or only.name} {version} takes it as it is: --target {only.name}"
                return Refusal(f"{refusal.reason.rstrip('.')}. {takes}.")
        return refusal

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the first form to which the target has no objection."""
        form = first_right(site, self._forms(site))
        return self._refused(site, form) if isinstance(form, Refusal) else form.write()
