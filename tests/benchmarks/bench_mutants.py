"""Counts how many damaged models ``padfix verify`` catches and locates, and how often it is wrong about sound ones.

Run ``python -m tests.benchmarks.bench_mutants [--most N] [--only NAME] [--keras]`` from the root of the repository.
Each network is converted by padfix; then

- damaged in every way of ``tests/support/mutants.py``, ``--most`` of these for each kind of damage and network, and
  compared with its sound self: every damage is to be caught, and 95 % of them located at the damaged node;
- compared with its source, with itself in another opset, and with ONNX Runtime's optimised copies of itself: none of
  these is to be called different.

``--keras`` adds Keras applications, made at a small size and without trained weights (needs the extra ``tf``).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

import padfix
from tests.support import networks
from tests.support.mutants import mutants, named

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


MADE: dict[str, Callable[[], onnx.ModelProto]] = {
    "u_net": networks.u_net,
    "u_net_dynamic": lambda: networks.u_net(("N", 3, "H", "W")),
    "u_net_float16": lambda: networks.u_net(dtype=np.float16),
    "residual": networks.residual,
    "residual_float16": lambda: networks.residual(dtype=np.float16),
    "residual_half": lambda: networks.residual(blocks=20),
    "residual_deep": lambda: networks.residual(blocks=60),
    "residual_dynamic": lambda: networks.residual(("N", 3, "H", "W")),
}
QUANTIZED = {"residual_qdq": False, "residual_qoperator": True}
APPLICATIONS = ("MobileNetV2", "EfficientNetB0", "DenseNet121")


def make(name: str, folder: Path) -> Path:
    """Write the network of this name, one of :data:`MADE`, :data:`QUANTIZED` or :data:`APPLICATIONS`."""
    path = folder / f"{name}.onnx"
    if name in MADE:
        onnx.save(MADE[name](), path)
    elif name in QUANTIZED:
        onnx.save(networks.residual(), folder / "floats.onnx")
        padfix.convert(folder / "floats.onnx", folder / "plain.onnx")
        networks.quantized(folder / "plain.onnx", path, operators=QUANTIZED[name])
    else:
        from keras import applications, utils

        utils.set_random_seed(0)
        path = folder / f"{name}.keras"
        getattr(applications, name)(weights=None, input_shape=(96, 96, 3)).save(path)
    return path


def convert(source: Path, folder: Path) -> Path:
    """Convert a network and give every node of the result a name."""
    padfix.convert(source, folder / "converted.onnx", opset=13)
    sound = folder / "sound.onnx"
    onnx.save(named(onnx.load(folder / "converted.onnx")), sound)
    return sound


def located(verdict: padfix.Verdict, nodes: frozenset[str]) -> bool:
    """Whether the report names a node that was damaged."""
    place = verdict.first_difference
    return place is not None and bool({place.candidate_node, *place.candidate_nodes} & nodes)


def hunt(sound: Path, folder: Path, most: int, reference: Path) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Return how many mutants of each kind there were, were caught, and were located."""
    every: dict[str, list[int]] = {}
    model = onnx.load(sound)
    for index, mutant in enumerate(mutants(model)):
        every.setdefault(mutant.kind, []).append(index)
    chosen = {
        index for indices in every.values() for index in random.Random(0).sample(indices, min(most, len(indices)))
    }
    tried, caught, found = Counter[str](), Counter[str](), Counter[str]()
    for index, mutant in enumerate(mutants(model)):
        if index not in chosen:
            continue
        damaged = folder / "damaged.onnx"
        onnx.save(mutant.model, damaged)
        verdict = padfix.verify(reference, damaged, locate=True)
        right = not verdict.equivalent and located(verdict, mutant.nodes)
        tried[mutant.kind] += 1
        caught[mutant.kind] += not verdict.equivalent
        found[mutant.kind] += right
        if not right:
            place = verdict.first_difference
            where = "nowhere" if place is None else f"{place.candidate_node} ({', '.join(place.candidate_nodes)})"
            said = "located at " + where if not verdict.equivalent else "NOT CAUGHT"
            print(f"    {mutant.kind} at {', '.join(sorted(mutant.nodes))}: {said}", flush=True)
    return tried, caught, found


def false_alarms(source: Path, sound: Path, folder: Path) -> tuple[int, int]:
    """Return how many sound pairs were compared, and how many were called different."""
    pairs: list[tuple[Path, Path]] = [(source, sound), (sound, sound)]
    newer = folder / "newer.onnx"
    try:
        padfix.convert(sound, newer, opset=18)
        pairs += [(sound, newer), (newer, sound)]
    except padfix.PadfixError as error:
        print(f"    no copy in opset 18: {error}")
    for everything in (False, True):
        copy = folder / f"optimised_{everything}.onnx"
        networks.optimised(sound, copy, everything=everything)
        pairs += [(sound, copy), (copy, sound)]
    wrong = 0
    for first, second in pairs:
        try:
            verdict = padfix.verify(first, second, locate=True)
        except padfix.PadfixError as error:
            print(f"    {first.name} and {second.name}: {error}")
            continue
        if not verdict.equivalent:
            wrong += 1
            bad = next(output for output in verdict.outputs if not output.equivalent)
            print(f"    FALSE ALARM: {first.name} and {second.name}: {bad}", flush=True)
    return len(pairs), wrong


def main() -> int:
    """Measure, print, and return 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=5, help="mutants of each kind and network")
    parser.add_argument("--only", default="", help="networks whose name holds this")
    parser.add_argument("--keras", action="store_true")
    parser.add_argument("--from-source", action="store_true", help="compare mutants with the unconverted source")
    arguments = parser.parse_args()
    totals = Counter[str](), Counter[str](), Counter[str]()
    pairs = alarms = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        light = {path.stem: path for path in sorted(LIGHT.glob("*.onnx"))}
        for network in [*MADE, *QUANTIZED, *light, *(APPLICATIONS if arguments.keras else ())]:
            if arguments.only not in network:
                continue
            start = time.monotonic()
            source = light.get(network) or make(network, folder)
            sound = convert(source, folder)
            compared, wrong = false_alarms(source, sound, folder)
            counts = hunt(sound, folder, arguments.most, source if arguments.from_source else sound)
            for total, count in zip(totals, counts, strict=True):
                total.update(count)
            pairs, alarms = pairs + compared, alarms + wrong
            tried, caught, found = (sum(count.values()) for count in counts)
            print(
                f"{network}: {tried} mutants, {caught} caught, {found} located; {compared} sound pairs, {wrong} false "
                f"alarms; {time.monotonic() - start:.0f} s",
                flush=True,
            )
    tried, caught, found = totals
    for kind in sorted(tried):
        print(f"  {kind}: {tried[kind]} tried, {caught[kind]} caught, {found[kind]} located")
    number, hits, places = tried.total(), caught.total(), found.total()
    print(f"All: {hits} of {number} caught, {places} located ({100 * places / max(1, number):.1f} %).")
    print(f"{alarms} false alarms on {pairs} sound pairs.")
    return 0 if hits == number and places >= 0.95 * number and alarms == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
