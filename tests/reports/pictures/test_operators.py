"""Pictures: what they say is what the operators do, and a browser shows them whole, in light and in dark."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import parser

import padfix
from padfix.cli.exits import run
from padfix.cli.group import cli
from padfix.reports import html, markdown
from padfix.reports.items import MOST_PICTURES, Listing, Told
from padfix.reports.pictures import layers, operators
from padfix.reports.sections import Items
from padfix.results import CheckReport, Finding, LayerDifference, OutputDifference, Severity
from padfix.results.illustration import Samples, WindowAxis, Windows

SVG = "{http://www.w3.org/2000/svg}"

MODELS = {
    "same": """17 main (float[1,3,32,8] X) => (float[1,3,16,4] Y) {
        Y = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [3, 3], strides = [2, 2]> (X) }""",
    "one": """17 main (float[1,3,40] X, float[3,3,3] W) => (float[1,3,40] Y) {
        Y = Conv <auto_pad = "SAME_LOWER", dilations = [4]> (X, W) }""",
    "three": """17 main (float[1,3,9,9,30] X) => (float[1,3,A,B,C] Y) {
        Y = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [3, 3, 3], strides = [2, 2, 2]> (X) }""",
    "dynamic": """17 main (float[1,3,H,W] X, float[2,3,3,3] K) => (float[1,2,A,B] Y) {
        Y = Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (X, K) }""",
    "transposed": """17 main (float[1,4,5,6] X, float[4,2,3,3] K) => (float[1,2,A,B] Y) {
        Y = ConvTranspose <auto_pad = "SAME_UPPER", strides = [2, 2]> (X, K) }""",
    "shrink": """10 main (float[1,3,224,9] X) => (float[1,3,A,B] Y) <float[4] s = {1, 1, 0.1, 2}> {
        Y = Resize <mode = "nearest"> (X, s) }""",
    "grow": """9 main (float[1,3,5,H] X) => (float[1,3,A,B] Y) <float[4] s = {1, 1, 1, 3}> {
        Y = Upsample <mode = "nearest"> (X, s) }""",
    "linear": """10 main (float[1,3,12,12] X) => (float[1,3,A,B] Y) <float[4] s = {1, 1, 0.5, 0.5}> {
        Y = Resize <mode = "linear"> (X, s) }""",
}
"""Opset and graph."""


def save(path: Path, text: str) -> Path:
    opset, _, graph = text.partition(" ")
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{graph}'), path)
    return path


def write(name: str, folder: Path) -> Path:
    return save(folder / f"{name}.onnx", MODELS[name])


def illustration_of(name: str, folder: Path) -> Any:
    (finding,) = padfix.check(write(name, folder)).findings
    return finding.illustration


lengths = st.integers(1, 9)


@given(lengths, st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(0, 3), lengths)
def test_what_is_read_is_what_the_taps_touch(
    size: int, kernel: int, stride: int, dilation: int, begin: int, end: int, windows: int
) -> None:
    axis = WindowAxis(size, kernel, stride, dilation, begin, end, windows)
    touched = {window * stride + tap * dilation for window in range(windows) for tap in range(kernel)}
    for position in range(begin + size + end):
        assert axis.reads(position) == (position in touched)


def test_the_windows_are_those_of_the_node(tmp_path: Path) -> None:
    assert illustration_of("same", tmp_path) == Windows(
        "MaxPool", (WindowAxis(32, 3, 2, 1, 0, 1, 16), WindowAxis(8, 3, 2, 1, 0, 1, 4))
    )
    assert [axis.is_example for axis in illustration_of("dynamic", tmp_path).axes] == [True, True]
    assert illustration_of("transposed", tmp_path) == Windows(
        "ConvTranspose", (WindowAxis(10, 3, 2, 1, 0, 1, 5), WindowAxis(12, 3, 2, 1, 0, 1, 6)), transposed=True
    )


def test_the_grid_has_each_cell_once() -> None:
    axes = (WindowAxis(4, 2, 3, 1, 1, 2, 2), WindowAxis(5, 3, 2, 1, 1, 1, 3))
    root = ElementTree.fromstring(operators.picture(Windows("MaxPool", axes)).file())
    counts = {
        name: len([each for each in root.iter(f"{SVG}rect") if each.get("class") == name]) - 1  # one in the legend
        for name in ("in", "un", "pr", "pu", "first", "last")
    }
    rows, columns = ([axis.reads(place) for place in range(axis.begin + axis.size + axis.end)] for axis in axes)
    expected = dict.fromkeys(("in", "un", "pr", "pu"), 0)
    for row, row_read in enumerate(rows):
        for column, column_read in enumerate(columns):
            inside = 1 <= row < 5 and 1 <= column < 6
            read = row_read and column_read
            expected[("in" if read else "un") if inside else ("pr" if read else "pu")] += 1
    assert counts == {**expected, "first": 1, "last": 1}


@pytest.mark.parametrize("name", ["shrink", "grow", "linear"])
def test_a_resize_samples_the_same_before_and_after(name: str, tmp_path: Path) -> None:
    report = padfix.convert(write(name, tmp_path), tmp_path / "out.onnx", reference="spec")
    illustration = report.rewrites[0].finding.illustration
    assert isinstance(illustration, Samples)
    assert illustration.rewritten is not None
    assert illustration.default is not None
    assert illustration.rewritten.reads == illustration.written.reads[: len(illustration.rewritten.reads)]
    assert illustration.axis == {"shrink": 2, "grow": 3, "linear": 2}[name]
    if name != "grow":
        assert illustration.default.reads != illustration.written.reads
    if name == "shrink":
        assert illustration.written.reads[:3] == ((0,), (10,), (20,))


def test_nonsense_has_no_picture(tmp_path: Path) -> None:
    text = '17 main (float[1,1,8,8] X) => (float[1,1,A,B] Y) { Y = MaxPool <auto_pad = "SAME_UPPER", ATTRIBUTES> (X) }'
    for attributes in (
        "kernel_shape = [0, 3]",
        "kernel_shape = [3, 3], strides = [0, 1]",
        "kernel_shape = [3, 3], strides = [-1, 1]",
        "kernel_shape = [3, 3], dilations = [0, 1]",
        "kernel_shape = [3]",
    ):
        path = save(tmp_path / "odd.onnx", text.replace("ATTRIBUTES", attributes))
        for finding in padfix.check(path).findings:
            assert not isinstance(finding.illustration, Windows) or all(
                axis.size > 0 for axis in finding.illustration.axes
            )
            html.findings([CheckReport("m", "onnx", [finding])])


def layer(name: str, difference: float, tolerance: float = 1e-3) -> LayerDifference:
    found = OutputDifference(name, difference, 0.0, tolerance, bool(difference <= tolerance))
    return LayerDifference(name, "Conv", found)


def test_the_error_by_layer() -> None:
    picture = layers.picture([layer("a", 0.0), layer("b", 1e-5), layer("c", 1.0), layer("d", float("inf"), 0.0)])
    root = ElementTree.fromstring(picture.file())
    bars = [(each.get("class"), float(each.get("width") or 0)) for each in root.iter(f"{SVG}rect")]
    assert [name for name, _ in bars] == ["good", "bad", "bad"]
    assert bars[0][1] < bars[1][1] <= bars[2][1]
    words = [each.text for each in root.iter(f"{SVG}text")]
    assert {"equal", "1e-05", "1, NOT equal", "inf, NOT equal", "allowed"} <= set(words)
    assert "2 are outside their tolerance" in picture.words


def test_a_proof_says_how_far_each_layer_is(tmp_path: Path) -> None:
    weights = ", ".join(map(str, np.linspace(-1, 1, 81).round(3)))
    text = f"""17 main (float[1,3,8,8] X) => (float[1,3,A,B] Y) <float[3,3,3,3] W = {{{weights}}}> {{
        pooled = AveragePool <auto_pad = "SAME_UPPER", kernel_shape = [3, 3]> (X)
        mixed = Conv <auto_pad = "SAME_UPPER", kernel_shape = [3, 3]> (pooled, W)
        Y = Relu (mixed)
    }}"""
    save(tmp_path / "a.onnx", text)
    report = padfix.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", layers=True)
    assert report.verdict is not None
    assert [each.difference.name for each in report.verdict.layers] == ["pooled", "mixed"]
    assert [each.op_type for each in report.verdict.layers] == ["AveragePool", "Conv"]
    assert all(each.difference.equivalent for each in report.verdict.layers)
    assert padfix.convert(tmp_path / "a.onnx", tmp_path / "b.onnx").verdict.layers == ()  # type: ignore[union-attr]
    wrong = onnx.load(tmp_path / "b.onnx")
    (conv,) = [node for node in wrong.graph.node if node.op_type == "Conv"]
    (pads,) = [each for each in conv.attribute if each.name == "pads"]
    pads.ints[:] = [2, 1, 0, 1]
    onnx.save(wrong, tmp_path / "c.onnx")
    verdict = padfix.verify(tmp_path / "a.onnx", tmp_path / "c.onnx", layers=True)
    assert [each.difference.equivalent for each in verdict.layers] == [True, False]
    for name in ("r.html", "r.md"):
        assert (
            run(
                cli,
                ["verify", str(tmp_path / "a.onnx"), str(tmp_path / "c.onnx"), "-q", "--report", str(tmp_path / name)],
            )
            == 1
        )
        assert "Error by layer" in (tmp_path / name).read_text(encoding="utf-8")


def found(node: str, size: int, kernel: int = 3, message: str = "m") -> Finding:
    pad = kernel // 2
    illustration = Windows("Conv", (WindowAxis(size, kernel, 1, 1, pad, pad, 8),))
    return Finding("PF101", "n", Severity.WARNING, "main", node, "Conv", message, illustration=illustration)


def test_one_item_for_nodes_that_do_the_same() -> None:
    alike = [found(f"n{place}", 8) for place in range(9)]
    others = [found("other", 8, message="another"), *(found(f"o{place}", 9 + place) for place in range(30))]
    listing = Listing()
    (section,) = listing.by_rule([Told.of(each) for each in (*alike[:5], *others, *alike[5:])])
    (items,) = [block for block in section.blocks if isinstance(block, Items)]
    first, other, *rest = items.items
    assert (first.place, first.alike) == ("main/n0", tuple(f"main/n{place}" for place in range(1, 9)))
    assert first.picture is not None
    assert (other.picture, other.as_at) == (None, ("main/n0", first.anchor)), "the windows are the same"
    assert sum(each.picture is not None for each in rest) == MOST_PICTURES - 1
    assert listing.left_out == 30 - (MOST_PICTURES - 1)
    page = html.findings([CheckReport("m", "onnx", [*alike, *others])])
    assert f"{listing.left_out} more pictures left out" in page
    assert len({each.anchor for each in items.items}) == len(items.items)


def test_windows_of_one_element_have_no_picture(tmp_path: Path) -> None:
    text = """17 main (float[1,3,8,8] X, float[3,3,1,1] W) => (float[1,3,A,B] Y) {
        Y = Conv <auto_pad = "SAME_UPPER", kernel_shape = [1, 1]> (X, W) }"""
    (finding,) = padfix.check(save(tmp_path / "one.onnx", text)).findings
    assert finding.illustration is None
    assert "<svg" not in html.findings([CheckReport("m", "onnx", [finding])])


@given(st.integers(1, 2000), st.integers(1, 9))
def test_numbers_below_cells_do_not_touch(size: int, kernel: int) -> None:
    axis = WindowAxis(size, kernel, 1, 1, kernel // 2, kernel // 2, size)
    for axes in ((axis,), (axis, axis)):
        root = ElementTree.fromstring(operators.picture(Windows("MaxPool", axes)).file())
        rows: dict[str, list[tuple[float, float]]] = {}
        for text in root.iter(f"{SVG}text"):
            if text.get("class") == "faint" and text.get("text-anchor") == "middle":
                half = 6.2 * len(text.text or "") / 2
                middle = float(text.get("x") or 0)
                rows.setdefault(text.get("y") or "", []).append((middle - half, middle + half))
        assert rows
        for spans in rows.values():
            assert all(before[1] < after[0] for before, after in itertools.pairwise(spans))


def test_very_many_layers_are_folded() -> None:
    names = [f"t{place}" for place in range(300)]
    calm = layers.picture([layer(name, 1e-6 if place != 150 else 1.0) for place, name in enumerate(names)])
    wild = layers.picture([layer(name, 1.0 if place % 2 else 1e-6) for place, name in enumerate(names)])
    for picture, outside in ((calm, 1), (wild, 150)):
        assert picture.words.startswith(f"Differences of 300 inner tensors in the order of the nodes; {outside} are")
        words = [each.text or "" for each in ElementTree.fromstring(picture.file()).iter(f"{SVG}text")]
        shared = [int(each.split()[0]) for each in words if re.fullmatch(r"\d+ layers", each)]
        alone = [each for each in words if re.fullmatch(r"Conv t\d+", each)]
        assert sum(shared) + len(alone) == 300
        assert len(shared) + len(alone) <= layers.MOST_ROWS
    assert "Conv t150" in [each.text for each in ElementTree.fromstring(calm.file()).iter(f"{SVG}text")]


@pytest.mark.parametrize("difference", [1e-9, 1.0, 1e12, 1e30])
def test_ticks_do_not_touch(difference: float) -> None:
    root = ElementTree.fromstring(layers.picture([layer("a", difference), layer("b", 1e-5)]).file())
    ticks = [
        (float(each.get("x") or 0), 6.2 * len(each.text or "") / 2)
        for each in root.iter(f"{SVG}text")
        if each.get("class") == "faint"
    ]
    assert "1" in [each.text for each in root.iter(f"{SVG}text")]
    assert all(a + half < b - other for (a, half), (b, other) in itertools.pairwise(ticks))


def test_markdown_holds_words_and_no_images(tmp_path: Path) -> None:
    text = markdown.findings([padfix.check(write("same", tmp_path))])
    assert "16 × 4 windows on an input of 32 × 8 with pads of 0, 0 before and 1, 1 behind it" in text
    assert "<img" not in text and "base64" not in text and "<svg" not in text


@pytest.fixture(scope="module")
def browser() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("no Chromium is installed")


# Runs in the page: what is drawn, whether every text lies in its picture, and the contrast of text to what is behind.
MEASURE = """<script>
const rgb = c => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
const light = c => rgb(c).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
};
window.addEventListener("load", () => {
    const page = getComputedStyle(document.body).backgroundColor;
    const ground = page === "rgba(0, 0, 0, 0)" ? "rgb(255, 255, 255)" : page;
    for (const each of document.querySelectorAll("details")) each.open = true;
    const found = { pictures: 0, cut: [], contrast: 99, wide: document.documentElement.scrollWidth, ground };
    for (const svg of document.querySelectorAll("svg")) {
        const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
        found.pictures += box.width > 50 && box.height > 30;
        for (const text of svg.querySelectorAll("text")) {
            const b = text.getBBox();
            if (b.x < -1 || b.y < -1 || b.x + b.width > view.width + 1 || b.y + b.height > view.height + 1)
                found.cut.push(text.textContent);
            found.contrast = Math.min(found.contrast, contrast(getComputedStyle(text).fill, ground));
        }
        for (const cell of svg.querySelectorAll(".in")) {
            const inside = getComputedStyle(cell).fill;
            const words = getComputedStyle(svg.querySelector("text")).fill;
            found.contrast = Math.min(found.contrast, contrast(inside, words));
        }
    }
    const out = document.createElement("pre");
    out.id = "measured";
    out.textContent = JSON.stringify(found);
    document.body.append(out);
});
</script>"""


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), pytest.param("dark", 1100, marks=pytest.mark.slow)])
def test_a_browser_shows_all_of_it(browser: str, scheme: str, width: int, tmp_path: Path) -> None:
    for name in MODELS:
        write(name, tmp_path)
    run(cli, ["check", str(tmp_path), "--report", f"html={tmp_path / 'check.html'}", "--output", str(tmp_path / "x")])
    text = (tmp_path / "check.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=(?!\"#)|url\(|@import|<script", text)
    page = tmp_path / "measured.html"
    page.write_text(text.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    common = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={width},1400",
        f"--blink-settings=preferredColorScheme={'0' if scheme == 'dark' else '1'}",
    ]
    done = subprocess.run([*common, "--dump-dom", str(page)], capture_output=True, text=True, check=False, timeout=120)
    match = re.search(r'<pre id="measured">(.*?)</pre>', done.stdout)
    assert match, done.stderr[-2000:]
    measured = json.loads(match.group(1))
    assert measured["pictures"] == 2 * len(MODELS), "of each model the map of its graph and the operator"
    assert measured["cut"] == []
    assert measured["wide"] <= max(width, 500), "a browser without a head may be no narrower"
    assert measured["contrast"] >= 4.5
    assert (measured["ground"] == "rgb(255, 255, 255)") == (scheme == "light")
    shot = tmp_path / f"{scheme}.png"
    subprocess.run([*common, f"--screenshot={shot}", str(page)], capture_output=True, check=False, timeout=120)
    assert shot.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert shot.stat().st_size > 20_000
