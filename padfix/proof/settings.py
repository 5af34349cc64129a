"""How a proof is to go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from padfix.proof.probes import KINDS, Ranges


@dataclass(frozen=True)
class Settings:
    """How a proof is to go.

    Attributes:
        rtol: The user's relative tolerance; None for what rounding explains.
        atol: The user's absolute tolerance likewise.
        seed: Seed of the generated data.
        output_names: The candidate's name for an output of the reference, where names and positions don't tell.
        rewritten: Whether the candidate is the reference rewritten node by node, so that every tensor whose name is in
            both must hold the same numbers.
        kinds: Which of :data:`padfix.proof.probes.KINDS` to generate.
        probes_only: Whether the user's probes are all the data there is.
        layers: Whether the verdict is to list every stretch that was compared.
        ranges: What the data that is made for an input lies within, by its name.
        usual_ranges: The same for inputs that there may be.
        known_bodies: Outputs of nodes whose bodies are judged elsewhere.
        search: Seconds to look for a size that a model accepts, when it took none of the usual ones.
        patience: Seconds that the first run on data that was made may take.
        rows: Rows of a table for each that a batch has.
    """

    rtol: float | None = None
    atol: float | None = None
    seed: int = 0
    output_names: Mapping[str, str] = field(default_factory=dict)
    rewritten: bool = False
    kinds: Sequence[str] = KINDS
    probes_only: bool = False
    layers: bool = False
    ranges: Ranges = field(default_factory=dict)
    usual_ranges: Ranges = field(default_factory=dict)
    known_bodies: frozenset[str] = frozenset()
    search: float = 10.0
    patience: float = 60.0
    rows: int = 1
