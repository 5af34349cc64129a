"""What inputs of ONNX Runtime's own operators a node is tried on, by role, where they are no mere data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from padfix.rules.build.trial_roles import Role, Wanted


def _rows_of(position: int) -> Role:
    """Return what makes indices of the rows of another input."""

    def role(wanted: Wanted) -> npt.ArrayLike:
        known = wanted.site.input_type(position)
        rows = known.shape[0] if known is not None and known.shape else None
        return np.asarray(wanted.below(rows if isinstance(rows, int) else 2))

    return role


def _places(wanted: Wanted) -> npt.ArrayLike:
    """Return the place of each word, or that of the first alone."""
    return np.zeros(wanted.shape) if wanted.shape == (1,) else _rows_of(2)(wanted)


def _kept(wanted: Wanted) -> npt.ArrayLike:
    """Return a mask that keeps the first word and some others; or how many words are kept."""
    if len(wanted.shape) < 2:
        return np.asarray(1 + wanted.below(wanted.data[1] if len(wanted.data) > 1 else 1))
    mask = wanted.below(2)
    mask[..., 0] = 1
    return np.asarray(mask)


CONTRIB_ROLES: Mapping[tuple[str, int], Role] = {
    ("Attention", 3): _kept,
    ("EmbedLayerNormalization", 0): _rows_of(2),
    ("EmbedLayerNormalization", 1): _rows_of(4),
    ("EmbedLayerNormalization", 7): _kept,
    ("EmbedLayerNormalization", 8): _rows_of(3),
    ("MultiHeadAttention", 4): _kept,
    ("QAttention", 5): _kept,
    ("RotaryEmbedding", 1): _places,
}
"""By operator and position of the input."""
