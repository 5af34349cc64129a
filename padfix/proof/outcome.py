"""What is found of stretches."""

from __future__ import annotations

from dataclasses import dataclass, field

from padfix.proof.stretches import Stretch
from padfix.results import OutputDifference


@dataclass
class Judged:
    """What was found of one stretch.

    Attributes:
        stretch: The stretch.
        difference: How far the candidate's tensor is at most, beside what is allowed.
        data: The probe, or the words for the data, that showed it.
        optimised: Whether it was seen with all optimisations only.
        allowance: Name of the allowance that it is within; empty where rounding explains it.
        unoptimised: The largest difference on the probes without optimisations.
        own: Whether the data was made for the stretch: no probe brought it there.
    """

    stretch: Stretch
    difference: OutputDifference
    data: str
    optimised: bool = False
    allowance: str = ""
    own: bool = False
    unoptimised: float = 0.0


@dataclass
class Outcome:
    """What the proof by stretches says.

    Attributes:
        same: Number of stretches that are the same in both models.
        judged: Every other one that was compared.
        wrong: Those that disagree, in the order of the original's nodes.
        unknown: Names of tensors whose stretch no data could judge.
    """

    same: int = 0
    judged: list[Judged] = field(default_factory=list)
    wrong: list[Judged] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
