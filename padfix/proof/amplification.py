"""Where an original amplifies rounding: the stretch whose result is further apart than what it is computed from."""

from __future__ import annotations

import numpy as np

from padfix.proof.executors import Array, ExecutionFailed
from padfix.proof.probes import Probe
from padfix.proof.stretches import Stretches

_NOISE = 2.0**-22
"""Relative differences below this are the last bits themselves."""


def amplifier(stretches: Stretches, probe: Probe) -> str:
    """Return the node whose stretch amplifies most on a probe, and what it does to a difference.

    Empty where none does by itself, or nothing can be seen.
    """
    names = stretches.ends()
    apart: dict[str, float] = {}
    for start in range(0, len(names), 32):
        some = names[start : start + 32]
        try:
            ours = stretches.sides[0].values(probe.arrays, some)
            partners = [stretches.pairing.partners[name] for name in some]
            theirs = stretches.sides[1].values(stretches.translate(probe.arrays), partners)
        except ExecutionFailed:
            return ""
        for name, partner in zip(some, partners, strict=True):
            if name in ours and partner in theirs:
                other = stretches.layouts.to_reference(name, theirs[partner])
                apart[name] = _relative(ours[name], other)
    worst = max(apart.values(), default=0.0)
    best, words = 4.0, ""
    for name, after in apart.items():
        if after < worst / 100 or after <= _NOISE:
            continue
        stretch = stretches.stretch(name)
        before = max((apart.get(each, 0.0) for each in stretch.above), default=0.0)
        gain, node = after / max(before, _NOISE), stretch.nodes[-1]
        if gain > best or (gain == best and not words):
            best = gain
            words = f"{node.op_type} {node.name!r}, which makes {after:.2g} of its values of {before:.2g}"
    return words


def _relative(first: Array, second: Array) -> float:
    if first.shape != second.shape or first.dtype.kind != "f":
        return 0.0
    usual = np.isfinite(first) & np.isfinite(second)
    magnitude = float(np.abs(first[usual]).max(initial=0.0))
    difference = np.abs(first[usual].astype(np.float64) - second[usual].astype(np.float64))
    return float(difference.max(initial=0.0)) / magnitude if magnitude else 0.0
