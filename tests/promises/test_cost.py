"""What many models and long graphs cost, in processor time: whatever else the machine does plays no part in it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from tests.benchmarks import measure_fleet
from tests.benchmarks.bench_check_many import write_models
from tests.support.long_graphs import IMPLICIT_EVERY, write_long_graph


def test_a_graph_of_five_times_the_nodes_takes_about_five_times_as_long(tmp_path: Path) -> None:
    path, seconds = tmp_path / "long.onnx", []
    for nodes in (2_000, 10_000):
        write_long_graph(path, nodes)
        begun = time.process_time()
        assert len(padfix.check(path).findings) == nodes // IMPLICIT_EVERY
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 10 * seconds[0]


@pytest.mark.parametrize("step", ["Add (P, Q)", "Max (P, Q)", "Where (B, P, Q)"])
def test_a_chain_that_forks_at_every_step_is_looked_through_once(step: str, tmp_path: Path) -> None:
    names = [f"x{place}" for place in range(100)]
    read = zip(names, names[1:], names[2:], strict=False)
    nodes = [f"{each} = {step}".replace("P", p).replace("Q", q) for q, p, each in read]
    given = "(float[2,3] x0, float[2,3] x1) => (float[2,3] Y)"
    text = f"g {given} {{ B = Less (x0, x1) {' '.join(nodes)} y = Neg (x99) Y = Where (B, y, x0) }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), tmp_path / "fork.onnx")
    report = padfix.check(tmp_path / "fork.onnx", target="opencv")
    assert not report.findings


def test_many_pieces_of_open_lengths_are_compared_one_after_the_other(tmp_path: Path) -> None:
    pieces = [f"x{place}" for place in range(60)]
    nodes = [f"{each} = Sin (X)" for each in pieces]
    joined = f"Y = Concat <axis = 0> ({', '.join(pieces)})"
    text = f"g (float[A,B,C] X) => (float[D,B,C] Y) {{ {' '.join(nodes)} {joined} }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), tmp_path / "many.onnx")
    report = padfix.check(tmp_path / "many.onnx", target="onnx2tf")
    assert {each.op_type for each in report.findings} <= {"Concat", "Sin"}


@pytest.mark.slow
def test_a_million_nodes(tmp_path: Path) -> None:
    found = []
    for nodes in (100_000, 1_000_000):
        size = write_long_graph(tmp_path / "long.onnx", nodes)
        found.append(measure_fleet.check(tmp_path, tmp_path / "long.onnx", "--no-cache"))
    assert found[1]["processor"] < 11 * found[0]["processor"]
    assert found[1]["mebibytes"] * 2**20 < 40 * size


@pytest.mark.slow
def test_five_thousand_models(tmp_path: Path) -> None:
    many = tmp_path / "models"
    many.mkdir()
    for path in write_models(many, 5000):
        os.utime(path, (0, 0))
    time.sleep(3)
    alone = measure_fleet.check(tmp_path, many, "--no-cache")
    several = measure_fleet.check(tmp_path, many, "--no-cache", "--jobs", 2)
    first = measure_fleet.check(tmp_path, many, "--jobs", 2, "--format", "jsonl", "--output", tmp_path / "lines")
    again = measure_fleet.check(tmp_path, many)
    assert several["processor"] < 1.1 * alone["processor"]
    assert again["processor"] < 0.06 * first["processor"]  # 0.05 where nothing else takes part of the caches
    sources = [json.loads(line)["source"] for line in (tmp_path / "lines").read_text().splitlines()]
    assert sources == sorted(set(sources))
    assert len(sources) == 5000
