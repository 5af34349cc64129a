"""What is there for builds: the hooks, the action and the documented snippets. Their commands are run for real."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml

import padfix
from padfix import errors
from padfix.cli.group import COMMANDS

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "padfix" / "docs" / "builds.md").read_text(encoding="utf-8")
ACTION = ROOT / ".github" / "actions" / "padfix" / "action.yml"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a folder of models, and a ``padfix`` on the path that is the one under test."""
    (tmp_path / "models" / "old ones").mkdir(parents=True)
    for name in ("same_cnn", "explicit_cnn"):
        shutil.copy(ROOT / "fixtures" / "onnx" / f"{name}.onnx", tmp_path / "models" / "old ones")
    program = tmp_path / "bin" / "padfix"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m padfix "$@"\n')
    program.chmod(0o755)
    return tmp_path


def environment(folder: Path, **more: str) -> dict[str, str]:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **more}


def snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def run_checks(script: str, folder: Path) -> None:
    """Run the ``padfix`` commands of a script; each of them finds something."""
    commands = [line for line in script.splitlines() if re.match(r"(\S+/)?padfix check", line)]
    assert commands
    for command in commands:
        words = shlex.split(command)
        words[0] = "padfix"
        done = subprocess.run(words, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)
        assert done.returncode == errors.EXIT_NO, done.stderr
        assert done.stderr == ""


# The hooks.


def test_the_hooks_do_what_they_say(checkout: Path) -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert set(hooks) == {"padfix-check", "padfix-convert"}
    model = checkout / "models" / "old ones" / "same_cnn.onnx"
    outcomes = {}
    for name in ("padfix-check", "padfix-convert", "padfix-check"):
        hook = hooks[name]
        assert {"id", "name", "entry", "language", "files"} <= set(hook)
        assert re.search(hook["files"], str(model))
        assert not re.search(hook["files"], "model.onnx.bak")
        command = [*shlex.split(hook["entry"]), str(model)]
        done = subprocess.run(command, cwd=checkout, env=environment(checkout), capture_output=True, check=False)
        outcomes.setdefault(name, []).append(done.returncode)
    assert outcomes == {"padfix-check": [1, 0], "padfix-convert": [0]}
    assert [path.name for path in model.parent.iterdir() if path.suffix == ".bak"] == []


def test_the_manifest_is_one_of_pre_commit() -> None:
    clientlib = pytest.importorskip("pre_commit.clientlib", reason="pre-commit is not installed")
    assert len(clientlib.load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))) == 2


# The action.


def action() -> dict[str, Any]:
    content = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


def run_step(
    name: str, folder: Path, inputs: dict[str, str], *, path: Path = ACTION.parent, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run one step of the action as a runner does: expressions filled in, files for output, summary and environment."""
    content = action()
    (step,) = [step for step in content["runs"]["steps"] if step["name"] == name]  # the others are actions of theirs
    assert step["shell"] == "bash"
    assert "${{" not in step["run"], "inputs go through the environment, never into the script"
    values = {key: str(value.get("default", "")) for key, value in content["inputs"].items()} | inputs
    variables = {}
    for key, value in step["env"].items():
        filled = re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: values[match.group(1)], str(value))
        filled = filled.replace("${{ github.action_path }}", str(path))
        variables[key] = filled.replace("${{ steps.install.outputs.padfix }}", str(folder / "bin" / "padfix"))
        assert "${{" not in variables[key]
    files = {variable: str(folder / variable.lower()) for variable in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        Path(file).touch()
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env=environment(folder, RUNNER_TEMP=str(folder), **variables, **files, **more),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_action_is_well_formed() -> None:
    content = action()
    assert {"models", "target", "fail-on", "changed-since"} <= set(content["inputs"])
    assert all(each["description"].endswith(".") for each in content["inputs"].values())
    assert content["runs"]["using"] == "composite"
    documented = set(re.findall(r"^\| `([\w-]+)` \|", GUIDE, re.MULTILINE))
    assert documented == set(content["inputs"])


@pytest.mark.parametrize(
    ("inputs", "code", "warnings"),
    [
        ({}, 1, 4),
        ({"models": "models\n\n", "target": "onnx", "fail-on": "error"}, 0, 4),
        ({"models": "models/old ones/explicit_cnn.onnx"}, 0, 0),
        ({"models": "models/*/same_*.onnx\nmodels/old ones/explicit_cnn.onnx", "sarif": "a b.sarif"}, 1, 4),
    ],
)
def test_the_action_annotates_and_writes_summary_and_sarif(
    checkout: Path, inputs: dict[str, str], code: int, warnings: int
) -> None:
    done = run_step("Check the models", checkout, inputs)
    assert done.returncode == code, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == warnings
    assert all(line.startswith("::warning file=models/old ones/same_cnn.onnx,line=1,title=PF10") for line in lines)
    sarif = inputs.get("sarif", "padfix.sarif")
    assert (checkout / "github_output").read_text() == f"sarif={sarif}\n"
    assert len(json.loads((checkout / sarif).read_text())["runs"][0]["results"]) == warnings
    summary = (checkout / "github_step_summary").read_text()
    assert summary.startswith("## padfix check\n")
    assert summary.count("| warning |") == warnings
    assert ("### models/old ones/same\\_cnn.onnx\n" in summary) is bool(warnings)


def test_no_input_of_the_action_can_run_a_command(checkout: Path) -> None:
    evil = '$(touch "stolen"); touch stolen #'
    inputs = {"models": evil, "target": evil, "fail-on": evil, "sarif": evil}
    done = run_step("Check the models", checkout, inputs)
    assert done.returncode == errors.EXIT_COULD_NOT_TELL
    assert not list(checkout.rglob("stolen"))


def test_the_action_installs_the_version_that_it_is_part_of(checkout: Path) -> None:
    """Really installs, but takes padfix's own requirements from where the tests run."""
    (checkout / "bin" / "python3").symlink_to(sys.executable)
    copy = checkout / "copy"  # a build leaves its traces in the source
    path = copy / ACTION.parent.relative_to(ROOT)
    path.mkdir(parents=True)
    shutil.copytree(ROOT / "padfix", copy / "padfix", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    # To compile all of it for one answer would take longer than all else; pip's variable has to deny its option.
    done = run_step("Install padfix", checkout, {}, path=path, PIP_NO_DEPS="1", PIP_NO_COMPILE="no", PYTHONPATH="")
    if done.returncode and re.search(r"setuptools|network|connect|No matching distribution", done.stderr):
        pytest.skip("pip can't fetch what a build needs")
    assert done.returncode == 0, done.stderr
    name, _, program = (checkout / "github_output").read_text().strip().partition("=")
    assert f"steps.install.outputs.{name}" in ACTION.read_text(encoding="utf-8")
    packages = os.pathsep.join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    shown = subprocess.run(
        [program, "--version"],
        env={**os.environ, "PYTHONPATH": packages},
        capture_output=True,
        text=True,
        check=False,
        cwd=checkout,
    )
    assert shown.stdout == f"padfix {padfix.__version__}\n", shown.stderr
    installed = next((checkout / "padfix").rglob("site-packages/padfix"))
    assert (installed / "docs" / "rules" / "PF101.md").is_file()
    assert (installed / "schemas" / "padfix-1.schema.json").is_file()


def test_the_default_leaves_the_copy_of_padfix_out(checkout: Path) -> None:
    """In the documented layout the action lies in a checkout of padfix beside the models, fixtures and all."""
    path = checkout / "padfix" / ACTION.parent.relative_to(ROOT)
    path.mkdir(parents=True)
    shutil.copytree(ROOT / "fixtures" / "onnx", checkout / "padfix" / "fixtures" / "onnx")
    done = run_step("Check the models", checkout, {}, path=path)
    assert len(done.stdout.splitlines()) == 4, done.stdout
    assert all("file=models/" in line for line in done.stdout.splitlines())


def test_the_action_of_the_repository_itself_checks_all_of_it(checkout: Path) -> None:
    path = checkout / ACTION.parent.relative_to(ROOT)
    path.mkdir(parents=True)
    done = run_step("Check the models", checkout, {}, path=path)
    assert len(done.stdout.splitlines()) == 4


def test_the_action_keeps_what_it_downloads(checkout: Path) -> None:
    named, cache, install, _ = action()["runs"]["steps"]
    assert run_step(named["name"], checkout, {}).returncode == 0
    key, _, value = (checkout / "github_output").read_text().strip().partition("=")
    assert value.isdigit()
    assert f"steps.{named['id']}.outputs.{key}" in cache["with"]["key"]
    assert cache["uses"].startswith("actions/cache@")
    folder = cache["with"]["path"].replace("${{ runner.temp }}", "$RUNNER_TEMP")
    assert f'PIP_CACHE_DIR="{folder}"' in install["run"]


def test_an_old_python_is_named(checkout: Path) -> None:
    stub = checkout / "bin" / "python3"
    stub.write_text("#!/bin/sh\nexit 1\n")
    stub.chmod(0o755)
    done = run_step("Install padfix", checkout, {})
    assert done.returncode == 2
    assert "::error title=padfix::padfix needs Python 3.11" in done.stdout


# The guide.


def test_the_github_workflow() -> None:
    (workflow,) = [text for text in snippets("yaml") if "runs-on" in text]
    (job,) = yaml.safe_load(workflow)["jobs"].values()
    (ours,) = [step for step in job["steps"] if step["uses"].endswith("actions/padfix")]
    assert (ROOT / ours["uses"].removeprefix("./padfix/") / "action.yml").is_file()
    assert set(ours["with"]) <= set(action()["inputs"])
    (upload,) = [step for step in job["steps"] if "upload-sarif" in step["uses"]]
    assert upload["with"]["sarif_file"] == action()["inputs"]["sarif"]["default"]


def test_the_gitlab_job(checkout: Path) -> None:
    (text,) = [text for text in snippets("yaml") if "image:" in text]
    job = yaml.safe_load(text)["padfix"]
    run_checks("\n".join(job["script"]), checkout)
    suites = ElementTree.parse(checkout / job["artifacts"]["reports"]["junit"]).getroot()
    assert suites.get("failures") == "2"
    assert len(json.loads((checkout / job["artifacts"]["reports"]["codequality"]).read_text())) == 4
    for path in job["artifacts"]["paths"]:
        assert (checkout / path).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_jenkins_stage(checkout: Path) -> None:
    (text,) = snippets("groovy")
    run_checks("\n".join(re.findall(r"sh '([^']*)'", text)), checkout)
    for file in re.findall(r"(?:junit '|pattern: ')([^']*)'", text):
        assert (checkout / file).is_file()
    assert text.count("{") == text.count("}")


def test_the_pre_commit_configuration() -> None:
    (text,) = [text for text in snippets("yaml") if "repos:" in text]
    hooks = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    (repository,) = yaml.safe_load(text)["repos"]
    assert {hook["id"] for hook in repository["hooks"]} <= hooks
    assert repository["rev"] == "COMMIT", "there is no release, and so no tag to name"


def test_the_hooks_speak_as_the_command_line_does() -> None:
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()):
        program, command, *_ = shlex.split(hook["entry"])
        assert (program, hook["name"]) == ("padfix", f"padfix {command}")
        assert hook["description"] == COMMANDS[command]
        assert re.search(hook["files"], "models/a.onnx")
        assert not re.search(hook["files"], "models/a.onnx.bak")


def test_a_huge_summary_says_what_it_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from padfix.cli import check
    from padfix.results import CheckReport, Finding, Severity

    found = [
        Finding("PF101", "implicit-same-padding", Severity.WARNING, "main", "n" * 100, "Conv", f"message {number}")
        for number in range(10_000)
    ]
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    check._step_summary([CheckReport("a.onnx", "onnx", found)], [])
    text = (tmp_path / "summary").read_text(encoding="utf-8")
    assert len(text.encode()) < check.LARGEST_SUMMARY < 1 << 20
    shown = text.count("| message ")
    assert shown and f"Left out here, for the length of the page: {10_000 - shown} more lines." in text
    assert "10000 findings" in text
