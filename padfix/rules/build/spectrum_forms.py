"""Equal forms of a STFT: told all that it may leave unsaid, and as a convolution with cosines and sines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.constant_chains import worked_out
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of, window_traits
from padfix.operators.window import Window
from padfix.operators.written import Written
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.along_axes import FLOATS, MOST_WEIGHTS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators

_PARTS = 2
"""What a complex number has: the real part, and the imaginary one."""

_SIGNAL, _WITH_PARTS = 2, 3
"""Axes of a real signal: the batch and time, and one for its parts if it has that."""

_CONSTANTS = (1, 2, 3)
"""Inputs that say what is transformed: the step from frame to frame, the window, and how long a frame is."""

_TRIED = 2
"""Signals, and steps beyond the first frame, in place of numbers of them that are left open."""


@dataclass(frozen=True)
class _Spectra:
    """What a STFT does.

    Attributes:
        shape: The lengths of its signal: the batch, time, and 1 for real numbers or 2 for complex ones.
        rank: How many axes the signal is written with.
        step: From frame to frame.
        window: What each element of a frame is multiplied by.
        kept: The number of frequencies: about half a frame where only one side is kept.
    """

    shape: tuple[Any, ...]
    rank: int
    step: int
    window: np.ndarray
    kept: int

    @property
    def frames(self) -> int | None:
        """How many frames there are, where that is known."""
        time = self.shape[1]
        return (time - len(self.window)) // self.step + 1 if isinstance(time, int) else None


def spectrum_forms(site: Site) -> Iterator[Form]:
    """Yield a STFT with its window, length and sides written, of a signal with other axes; and as a convolution."""
    found = _read(site)
    ranks = (found.rank, _SIGNAL + _WITH_PARTS - found.rank) if isinstance(found, _Spectra) else ()
    for rank in ranks:
        yield _told(site, found, rank)
    for axes in (1, 2):
        yield _convolved(site, found, axes)


def _read(site: Site) -> _Spectra | Refusal:
    node, known = site.node, site.input_type(0)
    shape = () if known is None or known.shape is None else tuple(known.shape)
    step, window, length = told = [_told_input(site, place) for place in _CONSTANTS]
    if any(site.input_name(place) and told[place - 1] is None for place in _CONSTANTS) or step is None:
        return Refusal("its step, its window, or how long that is, is not constant")
    parts = shape[2] if len(shape) == _WITH_PARTS else 1
    if len(shape) not in (_SIGNAL, _WITH_PARTS) or parts not in (1, _PARTS):
        return Refusal("whether its signal is real is not known")
    if window is None and length is not None:
        window = np.ones(int(length.reshape(-1)[0]))
    if window is None or not window.size:
        return Refusal("it has neither a window nor a length of frames")
    is_one_sided = attributes.integer(node, "onesided", 1) != 0
    kept = window.size // 2 + 1 if is_one_sided else window.size
    return _Spectra((*shape[:2], parts), len(shape), int(step.reshape(-1)[0]), window.reshape(-1), kept)


def _told_input(site: Site, place: int) -> np.ndarray | None:
    """Return what an input is, also where that is worked out, as a window by its own operator."""
    name = site.input_name(place)
    return worked_out(site.scope, name) if name else None


def _told(site: Site, found: _Spectra | Refusal, rank: int) -> Form:
    """Return a STFT of a signal of ``rank`` axes with all written that it may leave unsaid."""

    def write() -> Rewrite:
        step = _told_input(site, 1)
        assert isinstance(found, _Spectra)
        assert step is not None
        builder = site.builder()
        node = copied(site.node)
        attributes.set_integer(node, "onesided", attributes.integer(site.node, "onesided", 1) or 0)
        value = builder.input(site.input_name(0))
        if rank != found.rank:
            value = builder.unsqueezed(value, _SIGNAL, back=rank == _SIGNAL)
        window = found.window.astype(helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
        length = np.array(len(window), step.dtype)
        told = [builder.constant(each, name) for each, name in ((window, "window"), (length, "length"))]
        fragment = builder.ending_in(node, [value, builder.input(site.input_name(1)), *told])
        return Rewrite(fragment, (_trial(site, found),), exact=False)

    own = traits_of(site.scope, site.node) or {}
    told = {"rank": rank, "sides-written": True, "window-given": True, "length-given": True}
    operators: Operators = (("STFT", {**own, **told}),)
    why_not = None
    if rank == _SIGNAL and isinstance(found, _Spectra) and found.shape[2] != 1:
        why_not = Refusal("its signal is complex")
    return Form(f"all written, of a signal of {rank} axes", operators, write, why_not)


def _convolved(site: Site, found: _Spectra | Refusal, axes: int) -> Form:
    """Return a STFT as a convolution along time, of lines or of images of one row, that gives both parts in turns."""
    name = f"a convolution with cosines and sines, along {axes} axes" if axes > 1 else "one along a line"
    if isinstance(found, Refusal):
        return Form(name, (), lambda: Refusal("There is no such form."), found)
    batch, time, parts = found.shape
    taps, maps = len(found.window), _PARTS * found.kept
    kernel, strides = ((*[1] * (axes - 1), each) for each in (taps, found.step))
    window = Window(
        domain="",
        op_type="Conv",
        written=Written(kernel_shape=kernel, strides=strides),
        kernel=kernel,
        strides=strides,
        dilations=(1,) * axes,
        sizes=(*[1] * (axes - 1), time),
        elem_type=site.elem_type(0),
        channels=parts,
        maps=maps,
        batch=batch,
    )

    # Of an empty batch no Reshape finds the length.
    is_open = not isinstance(batch, int) and not isinstance(time, int)
    is_turned = parts == _PARTS or (is_open and found.rank == _WITH_PARTS)
    first = batch if isinstance(batch, int) else 0

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        if is_turned:
            value = builder.op("Transpose", [value], {"perm": [0, 2, 1]})
        elif is_open:
            value = builder.unsqueezed(value, 1)
        if is_open or parts == _PARTS:
            value = builder.unsqueezed(value, 2) if axes > 1 else value
        else:
            value = builder.reshaped(value, [first, 1, *[1] * (axes - 1), time if isinstance(time, int) else -1])
        weights = _weights(found, axes).astype(helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
        given = {"kernel_shape": list(kernel), "strides": list(strides)}
        value = builder.op("Conv", [value, builder.constant(weights, "weights")], given)
        value = builder.op("Transpose", [value], {"perm": [0, *range(2, axes + 2), 1]})
        result = builder.reshaped(value, [first, found.frames or 0, found.kept, _PARTS])
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), (_trial(site, found),), exact=False)

    turned: Any = {"turned-back": False, "turned-back-alike": False}
    operators: Operators = (
        *((("Transpose", {"rank": 3, **turned}),) if is_turned else ()),
        *((("Reshape", {"rank": axes + 2}),) if not is_turned or axes > 1 else ()),
        ("Conv", window_traits(window)),
        ("Transpose", {"rank": axes + 2, **turned}),
        ("Reshape", {"rank": 4}),
    )
    why_not = None
    if site.elem_type(0) not in FLOATS:
        why_not = Refusal("its data are no floats")
    elif taps * maps * parts > MOST_WEIGHTS:
        why_not = Refusal(f"it would have more than {MOST_WEIGHTS} weights")
    return Form(name, operators, write, why_not)


def _weights(found: _Spectra, axes: int) -> np.ndarray:
    """Return the weights of the convolution: real and imaginary parts of frequencies take turns."""
    taps, parts = len(found.window), found.shape[2]
    angles = 2 * np.pi * (np.outer(np.arange(found.kept), np.arange(taps)) % taps) / taps
    cosine, sine = np.cos(angles) * found.window, np.sin(angles) * found.window
    pairs = np.array([[cosine, sine], [-sine, cosine]])[:, :parts]  # of the result, of the signal, kept, taps
    return pairs.transpose(2, 0, 1, 3).reshape(_PARTS * found.kept, parts, *[1] * (axes - 1), taps)


def _trial(site: Site, found: _Spectra) -> Trial:
    """Return the lengths of the signal as they are, or those of a few frames where they are left open."""
    batch, time, parts = found.shape
    length = time if isinstance(time, int) else len(found.window) + _TRIED * found.step + 1
    shape = (batch if isinstance(batch, int) else _TRIED, length, parts)[: found.rank]
    trial = {site.input_name(0): TrialInput(shape, site.elem_type(0))}
    for place in _CONSTANTS:
        told = _told_input(site, place)
        if told is not None:
            trial[site.input_name(place)] = TrialInput.of(told, constant=site.constant(place) is not None)
    return trial
