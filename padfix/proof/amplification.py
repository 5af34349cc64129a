"""Where an original amplifies rounding: the stretch whose result is further apart than what it is computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from padfix.proof.executors import Array, ExecutionFailed
from padfix.proof.probes import Probe
from padfix.proof.stretches import Stretches

_NOISE = 2.0**-22
"""Relative differences below this are the last bits themselves."""


@dataclass(frozen=True)
class Amplifier:
    """A stretch that amplifies.

    Attributes:
        node: The original's node.
        op_type: Its operator.
        before: Relative difference of what it is computed from, when both models run as a whole.
        after: That of its result.
    """

    node: str
    op_type: str
    before: float
    after: float

    @property
    def words(self) -> str:
        """The node and what it does to a difference."""
        return f"{self.op_type} {self.node!r}, which makes {self.after:.2g} of its values of {self.before:.2g}"


def amplifier(stretches: Stretches, probe: Probe) -> Amplifier | None:
    """Return the stretch that amplifies most on a probe; None where none does by itself, or nothing can be seen."""
    names = stretches.ends()
    apart: dict[str, float] = {}
    for start in range(0, len(names), 32):
        some = names[start : start + 32]
        try:
            ours = stretches.sides[0].values(probe.arrays, some)
            partners = [stretches.pairing.partners[name] for name in some]
            theirs = stretches.sides[1].values(stretches.translate(probe.arrays), partners)
        except ExecutionFailed:
            return None
        for name, partner in zip(some, partners, strict=True):
            if name in ours and partner in theirs:
                other = stretches.layouts.to_reference(name, theirs[partner])
                apart[name] = _relative(ours[name], other)
    worst = max(apart.values(), default=0.0)
    found: list[tuple[float, Amplifier]] = []
    for name, after in apart.items():
        if after < worst / 100 or after <= _NOISE:
            continue
        stretch = stretches.stretch(name)
        before = max((apart.get(each, 0.0) for each in stretch.above), default=0.0)
        gain = after / max(before, _NOISE)
        node = stretch.nodes[-1]
        found.append((gain, Amplifier(node.name, node.op_type, max(before, 0.0), after)))
    best = max(found, key=lambda each: each[0], default=None)
    return best[1] if best is not None and best[0] >= 4 else None


def _relative(first: Array, second: Array) -> float:
    if first.shape != second.shape or first.dtype.kind != "f":
        return 0.0
    usual = np.isfinite(first) & np.isfinite(second)
    magnitude = float(np.abs(first[usual]).max(initial=0.0))
    difference = np.abs(first[usual].astype(np.float64) - second[usual].astype(np.float64))
    return float(difference.max(initial=0.0)) / magnitude if magnitude else 0.0
