"""What a model is made for: one TOML file a target, and the record that it becomes."""

from padfix.targets.fact import DECLARED, FUNCTION, PRODUCER, SPARSE, Fact, Outcome
from padfix.targets.target import PADS_STYLES, Target, load, named, names
from padfix.targets.traits import Trait

__all__ = [
    "DECLARED",
    "FUNCTION",
    "PADS_STYLES",
    "PRODUCER",
    "SPARSE",
    "Fact",
    "Outcome",
    "Target",
    "Trait",
    "load",
    "named",
    "names",
]
