"""The pages of what was measured on runtimes are those that the data yields."""

from __future__ import annotations

import json

import pytest

from padfix import targets
from padfix.errors import ProofUnavailableError
from padfix.runtimes import open_runtime
from tests.benchmarks.measure_runtimes import of_case
from tests.benchmarks.runtime_battery import cases
from tests.support import runtime_pages


def test_the_pages_are_fresh() -> None:
    there = {
        path.name: path.read_text(encoding="utf-8") for path in runtime_pages.FOLDER.iterdir() if path.suffix != ".json"
    }
    assert there == runtime_pages.files(), "run: python -m tests.support.runtime_pages"


def test_all_models_were_measured_on_every_runtime() -> None:
    names = {case.name: case.family for case in cases()}
    for each in runtime_pages.measured():
        assert each.runtime in targets.names()
        assert {name: result.family for name, result in each.results.items()} == names, each.label
        assert {result.before for result in each.results.values()} <= {"right", "wrong", "refused"}
        assert {result.after for result in each.results.values()} <= set(runtime_pages.STATES)


def test_a_page_says_what_the_data_says() -> None:
    each = runtime_pages.measured()[0]
    page = runtime_pages.files()[f"{each.runtime}.md"]
    for name, result in each.results.items():
        assert (f"| {name} |" in page) == (result.before != "right"), name
    assert json.loads(runtime_pages.DATA.read_text())["runtimes"].keys() == {
        each.label for each in runtime_pages.measured()
    }


@pytest.mark.parametrize("family", ["Conv auto_pad SAME_LOWER", "Pad wrap", "Resize cubic of TensorFlow"])
def test_a_measurement(family: str) -> None:
    runtime = open_runtime("onnxruntime")
    case = next(case for case in cases() if case.family == family)
    found = of_case(runtime, case, "onnxruntime")
    assert (found["before"], found["after"]) == ("right", "right")
    runtime.close()


@pytest.mark.parametrize(("name", "one_of"), [("openvino", 9), ("opencv", 9), ("mnn", 9), ("tract", 9), ("ncnn", 40)])
def test_converted_models_are_right_on_what_is_installed(name: str, one_of: int) -> None:
    """pnnx takes seconds for a model, so that ncnn is asked fewer."""
    try:
        runtime = open_runtime(name)
    except ProofUnavailableError as error:
        pytest.skip(error.message)
    for case in cases()[::one_of]:
        assert of_case(runtime, case, name)["after"] in ("right", "declined"), case.name
    runtime.close()


@pytest.mark.slow
@pytest.mark.parametrize("label", [each.label for each in runtime_pages.measured()])
def test_what_was_measured_is_so_still(label: str) -> None:
    """Run the battery again on the runtimes that are installed in the version that was measured."""
    (each,) = (each for each in runtime_pages.measured() if each.label == label)
    try:
        runtime = open_runtime(each.runtime)
    except ProofUnavailableError as error:
        pytest.skip(error.message)
    if runtime.label != label:
        pytest.skip(f"{runtime.label} is installed")
    for case in cases():
        found = of_case(runtime, case, each.target)
        assert found["after"] != "wrong", case.name
        assert found["before"] == each.results[case.name].before, case.name
    runtime.close()
