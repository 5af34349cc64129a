"""The README: its commands do what it shows, its table of rules is fresh, and it covers the command line."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click import Context

import padfix
from padfix import api, config, targets
from padfix.cli.group import COMMANDS, cli
from padfix.reports import catalogue, pages
from padfix.rules.registry import RULES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"-?\d+(\.\d+)*(e-?\d+)?")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def setup_command(name: str) -> str:
    match = re.search(rf"<!-- setup:{name} -->\n```sh\n(.*)\n```", README)
    assert match, name
    return match.group(1)


def without_measurements(text: str) -> str:
    """Blank the numbers that differ from one machine or version to the next: differences and versions."""
    text = re.sub(r"values: .*(?=\.$)", "values: #", text, flags=re.MULTILINE)
    text = re.sub(r"limit: \S+ of \S+ allowed \(output '([^']*)', probe '[^']*'\)", r"limit: # (output '\1')", text)
    text = re.sub(r"(?<=largest difference: )[^\s;]+", "#", text)
    return re.sub(r"(ONNX Runtime) \d+(\.\d+)+", r"\1 #", text)


def environment(folder: Path) -> Path:
    (folder / "fixtures").symlink_to(ROOT / "fixtures")
    return folder


@pytest.mark.tensorflow
def test_every_command_prints_what_the_readme_shows(tmp_path: Path) -> None:
    folder = environment(tmp_path)
    shown = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            shown.append((command, output))
    assert len(shown) >= 7
    for command, output in shown:
        program, *arguments = shlex.split(command)
        assert program == "padfix"
        done = subprocess.run(
            [sys.executable, "-m", "padfix", *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        assert without_measurements(done.stdout) == without_measurements(output), f"{command}\n{done.stderr}"
        assert done.returncode == (1 if "same_cnn" in command else 0), command


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = blocks("python")
    monkeypatch.chdir(environment(tmp_path))
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    report, verdict = names["report"], names["verdict"]
    assert isinstance(report, padfix.ConvertReport)
    assert isinstance(verdict, padfix.Verdict)
    assert len(report.rewrites) == 4
    assert verdict.equivalent
    assert padfix.check("explicit.onnx").findings == []


def test_the_configuration_example_is_right(tmp_path: Path) -> None:
    (example,) = blocks("toml")
    file = tmp_path / "padfix.toml"
    file.write_text(example)
    settings = config.load(file)
    api.check_rule_words(settings.rule_words())
    assert settings.target in targets.names()
    assert set(config.KEYS) == set(re.findall(r"^\[?([a-z-]+)", example, re.MULTILINE)) | {"select"}


def test_the_table_of_rules_is_fresh() -> None:
    match = re.search(r"<!-- rules:begin.*?-->\n(.*?)<!-- rules:end -->", README, re.DOTALL)
    assert match
    assert match.group(1) == catalogue.markdown(RULES), "replace it by the output of: padfix rules --format markdown"


def test_the_pages_of_the_rules_are_fresh() -> None:
    folder = ROOT / "padfix" / "docs" / "rules"
    there = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert there == pages.files(RULES), "run: padfix rules --write-pages padfix/docs/rules"


def test_setup_commands_are_one_line_each_and_name_what_exists() -> None:
    convert, test = setup_command("convert"), setup_command("test")
    assert all(command.startswith("python3 -m venv .venv && ") for command in (convert, test))
    (source,) = re.findall(r"padfix convert (\S+)", convert)
    assert (ROOT / source).is_file()
    assert test.endswith("python -m pytest -n 2 --dist loadfile")


def test_the_readme_names_every_command_and_every_option_it_names_exists() -> None:
    with Context(cli) as context:
        commands = {name: cli.get_command(context, name) for name in COMMANDS}
    known = {option for command in commands.values() if command for each in command.params for option in each.opts}
    for name in ("convert", "check", "verify", "inspect", "explain", "rules"):
        assert f"padfix {name}" in README
    ours = "\n".join(line for line in README.splitlines() if "pip " not in line)
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", ours)) - {"--help", "--slow"}
    assert mentioned <= known


def test_documents_name_no_machine_and_link_to_what_exists() -> None:
    for document in (ROOT / "README.md", *(ROOT / "padfix").rglob("*.md")):
        text = document.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.])/(work|opt|home|root|tmp)/", text), document
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (document.parent / target).exists(), target


def test_ci_runs_the_readmes_test_command() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    done = subprocess.run(
        ["sed", "-n", "/^<!-- setup:test -->$/{n;n;p;q}", "README.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == setup_command("test")
    assert "/^<!-- setup:test -->$/{n;n;p;q}" in script.read_text(encoding="utf-8")
