"""What goes by lengths that the model measures, by others: a Reshape by those that it copies, a row turned round."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.lengths import filled, length_of
from padfix.graph.scopes import Dimension, ValueType
from padfix.operators.batches import images_at_once, lies_behind, names_moved_images
from padfix.operators.constant_chains import chain_of, leaves_of, values_of
from padfix.operators.refusal import Refusal
from padfix.operators.told_lengths import reverses_all, told_lengths
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.along_axes import LONGEST, TAKING, one_by_one
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import OPEN_LENGTH, chain_trial, like, trials_of
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.transposed import TO_THE_END


def image_forms(site: Site) -> Iterator[Form]:
    """Yield a Reshape that copies how many images there are, or finds that by itself, where its shape says so."""
    own = traits_of(site.scope, site.node) or {}
    if not own.get("numbers-images"):
        return
    before, gives = site.input_type(0), site.scope.type_of(site.node.output[0])
    lengths = list(gives.lengths or ()) if gives is not None else []
    given = (before.lengths or ()) if before is not None else ()
    is_whole = bool(lengths) and bool(given)
    is_copied = is_whole and lengths[0] == given[0]
    batch = images_at_once(site.scope) or 1
    fits = is_whole and math.prod(given) % (batch * max(math.prod(lengths[1:]), 1)) == 0
    fits = fits and (given[0] % batch == 0 or given[0] == 1)  # or another axis has been put first
    operators = (("Reshape", {**own, "numbers-images": False}),)
    is_moved = is_whole and lies_behind(batch, given)
    moved = [0 if place < len(given) and each == given[place] else each for place, each in enumerate(lengths)]
    for name, told, fits_first in (
        ("the number of images copied", [0, *lengths[1:]], is_copied),
        ("a first length by itself", [-1, *lengths[1:]], fits),
        ("the lengths that it copies", moved, False),
    ):
        is_equal = not names_moved_images(batch, given, told) if is_moved else fits_first
        why_not = None if is_equal and 0 not in lengths else Refusal("its shape does not begin with the images")
        yield Form(name, operators, partial(_reshaped, site, told), why_not)


def _reshaped(site: Site, told: Sequence[int]) -> Rewrite:
    builder = site.builder()
    builder.output(site.node.output[0], builder.reshaped(builder.input(site.input_name(0)), told))
    return Rewrite(builder.build(), trials_of(site), exact=True)


def told_forms(site: Site) -> Iterator[Form]:
    """Yield a Reshape with its shape written: 0 for an open length that it copies, -1 for another."""
    own = traits_of(site.scope, site.node) or {}
    if own.get("many-axes-or-none"):
        yield _copying_by_zero(site)
    if not own.get("measures-images") and not own.get("measures-by-lists"):
        return
    known, name = site.input_type(0), site.input_name(1)
    shape = () if known is None or known.shape is None else known.shape
    gives = site.scope.type_of(site.node.output[0])
    given = list((() if gives is None else gives.shape) or ())
    told = told_lengths(site.scope, name) or given
    if len(given) == len(told):  # what it finds by itself may be known
        told = [
            length if each == -1 and isinstance(length, int) else each for each, length in zip(told, given, strict=True)
        ]
    copied = [place < len(shape) and isinstance(each, str) and each == shape[place] for place, each in enumerate(told)]
    lengths = [
        each if isinstance(each, int) else 0 if is_copied else -1 for each, is_copied in zip(told, copied, strict=True)
    ]
    producer = site.scope.own_producer(name)
    chain = None if producer is None else chain_of(site.scope, producer, open_lengths=True)
    why_not = Refusal("more than one of its lengths is left open (--shape)") if lengths.count(-1) > 1 else None
    if chain is None or not lengths:
        why_not = Refusal("its shape is computed of data" if chain is None else "how many axes it has is not known")

    def write() -> Rewrite:
        assert chain is not None
        builder = site.builder()
        builder.output(site.node.output[0], builder.reshaped(builder.input(site.input_name(0)), lengths))
        _, measured = leaves_of(site.scope, chain)
        trial, types = chain_trial(site.scope, chain), [site.scope.type_of(each) for each in measured]
        if site.input_name(0) not in measured:
            named = {size for each in types if each is not None for size in each.shape or ()}
            asked = _asked_for(site, chain, trial) or told
            trial[site.input_name(0)] = TrialInput(_filling(shape, asked, named), site.elem_type(0))
        return Rewrite(builder.build(), (trial,), exact=True, replaces=tuple(chain))

    left = {"measures-images": False, "measures-by-lists": False, "steered-by-results": False}
    yield Form("what it copies, and what it finds by itself", (("Reshape", {**own, **left}),), write, why_not)


def _copying_by_zero(site: Site) -> Form:
    """Return a Reshape whose shape has no zeros, which so may say that they copy a length."""
    shape = site.constant(1)

    def write() -> Rewrite:
        node = copied(site.node)
        attributes.remove(node, "allowzero")
        return Rewrite(site.only(node), trials_of(site), exact=True)

    why_not = None if shape is not None and bool(shape.all()) else Refusal("its shape is not constant, or has zeros")
    own = {**(traits_of(site.scope, site.node) or {}), "many-axes-or-none": False}
    return Form("zeros that copy", (("Reshape", own),), write, why_not)


def reversed_forms(site: Site) -> Iterator[Form]:
    """Yield whole rows that a ReverseSequence turns round as their elements, taken from the last one on."""
    if not reverses_all(site.scope, site.node):
        return
    axis = attributes.integer(site.node, "time_axis", 0) or 0
    known, producer = site.input_type(0), site.scope.own_producer(site.input_name(1))
    length = 0 if known is None or known.shape is None else known.shape[axis]
    assert known is not None
    assert isinstance(length, int)
    chain = None if producer is None else chain_of(site.scope, producer, open_lengths=True)

    def write() -> Rewrite:
        trial = {**chain_trial(site.scope, chain or ()), site.input_name(0): like(known)}
        value = site.constant(1)
        if value is not None:
            trial[site.input_name(1)] = TrialInput.of(value)
        fragment = one_by_one(site, {axis: range(length - 1, -1, -1)})
        return Rewrite(fragment, (trial,), exact=True, replaces=tuple(chain or ()))

    why_not = Refusal(f"it has more than {LONGEST} elements in a row") if length > LONGEST else None
    if chain is None and site.constant(1) is None:
        why_not = Refusal("its lengths are computed of data")
    yield Form("its elements from the last one on", TAKING, write, why_not)


def picked_lengths(site: Site) -> Iterator[Form]:
    """Yield a Shape that gives all lengths, and the Slice of those that are wanted."""
    own = traits_of(site.scope, site.node) or {}
    if not own.get("picks-lengths"):
        return
    start, end = attributes.integer(site.node, "start", 0), attributes.integer(site.node, "end", TO_THE_END)

    def write() -> Rewrite:
        builder = site.builder()
        lengths = builder.op("Shape", [builder.input(site.input_name(0))])
        builder.output(site.node.output[0], sliced(builder, lengths, [start], [end], [0]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    operators = (("Shape", {**own, "picks-lengths": False, "as-result": False}), ("Slice", {"elements": "integer"}))
    yield Form("some of all lengths", operators, write)


def _asked_for(site: Site, chain: Sequence[NodeProto], trial: Trial) -> list[int] | None:
    """Return the lengths that a chain asks a Reshape for where it is tried; None where they can't be worked out."""
    types = {name: ValueType(each.elem_type, each.shape) for name, each in trial.items()}
    try:
        values = values_of(site.scope, list(chain), lambda name: types.get(name, site.scope.type_of(name)))
    except ValueError:
        return None
    asked = values.get(site.input_name(1))
    return None if asked is None else [int(each) for each in asked.reshape(-1)]


def _filling(shape: Sequence[Dimension], told: Sequence[Dimension], measured: Collection[Dimension]) -> tuple[int, ...]:
    """Return the shape of data that fill what a Reshape is told where ``OPEN_LENGTH`` stands for all that is measured.

    An open length of the data that nothing measures is what the others leave; more of them are 1.
    """
    symbols = {symbol for each in measured for symbol, _ in length_of(each).factors}
    known = [
        filled([each], OPEN_LENGTH)[0]
        if each is not None and symbols.issuperset(symbol for symbol, _ in length_of(each).factors)
        else None
        for each in shape
    ]
    finds_one = any(each in (None, -1) for each in told)
    whole = math.prod(filled([each for each in told if each not in (None, -1)], OPEN_LENGTH))
    rest = whole if finds_one else max(1, whole // math.prod(each for each in known if each))
    first = known.index(None) if None in known else None
    return tuple((rest if axis == first else 1) if each is None else each for axis, each in enumerate(known))
