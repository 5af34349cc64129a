"""The README and the pages: commands do what is shown, generated parts are fresh, and the command line is covered."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click import Context

import padfix
from padfix import targets
from padfix.cli.exits import run
from padfix.cli.group import COMMANDS, cli
from padfix.config import settings as config
from padfix.reports import catalogue, pages, target_facts
from padfix.reports.pictures import operators
from padfix.rules.registry import RULES, require_known
from tests.benchmarks import measure_fleet
from tests.support.warm_commands import WarmCommands

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    path.name: path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "padfix" / "docs").glob("*.md")))
}
"""Everything that people wrote; the rules' pages come from docstrings."""


def blocks(language: str, text: str = "\n".join(PAGES.values())) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def only(language: str) -> str:
    (block,) = blocks(language)
    return block


def setup_command(name: str) -> str:
    match = re.search(rf"<!-- setup:{name} -->\n```sh\n(.*)\n```", README)
    assert match, name
    return match.group(1)


def without_measurements(text: str) -> str:
    """Blank the numbers that differ from one machine or version to the next: differences and versions."""
    text = re.sub(r"\d+ stretches", "# stretches", text)
    text = re.sub(r"values: .*$", "values: #", text, flags=re.MULTILINE)
    text = re.sub(r"limit: \S+ of \S+ allowed \(output '[^']*', probe '[^']*'\)", "limit: #", text)
    text = re.sub(r"(?<=largest difference: )[^\s;]+", "#", text)
    return re.sub(r"(ONNX Runtime) \d+(\.\d+)+", r"\1 #", text)


def environment(folder: Path) -> Path:
    (folder / "fixtures").symlink_to(ROOT / "fixtures")
    return folder


WARM = {"guide.md", "README.md"}
"""Pages whose commands load TensorFlow, which is done once for all of them."""


class Reader:
    """Somebody who types what the pages say, in one folder, and nothing twice."""

    def __init__(self, folder: Path, warm: WarmCommands) -> None:
        self.folder = environment(folder)
        self._warm = warm
        (folder / "padfix").symlink_to(ROOT / "padfix")
        self._seen: dict[str, subprocess.CompletedProcess[str]] = {}

    def run(self, page: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run Python with arguments."""
        key = shlex.join(arguments)
        if key not in self._seen:
            if page in WARM:
                self._seen[key] = self._warm.run(arguments, self.folder)
            else:
                command = [sys.executable, *arguments]
                self._seen[key] = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        return self._seen[key]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, warm: WarmCommands) -> Reader:
    return Reader(tmp_path_factory.mktemp("reader"), warm)


def shown(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each command of a page in its order, with the output that the page shows; None where it shows none."""
    for language, block in re.findall(r"^```(console|sh)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if language == "sh":
            yield block, None
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] if language == "console" else ():
            command, _, output = part.partition("\n")
            yield command, output


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "name", ["README.md", pytest.param("guide.md", marks=pytest.mark.long), "linter.md", "runtimes.md"]
)
def test_every_command_prints_what_the_page_shows(name: str, reader: Reader) -> None:
    commands = list(shown(PAGES[name]))
    assert any(output for _, output in commands)
    for command, output in commands:
        program, *arguments = shlex.split(command)
        if output is None and program == "python":
            done = reader.run(name, arguments)
            assert done.returncode == 0, done.stderr
        if output is not None:
            assert program == "padfix"
            done = reader.run(name, ["-m", "padfix", *arguments])
            assert without_measurements(done.stdout) == without_measurements(output), f"{command}\n{done.stderr}"
            assert done.returncode == (1 if command == "padfix check fixtures/onnx/same_cnn.onnx" else 0), command


def test_only_these_pages_show_output() -> None:
    assert {name for name, text in PAGES.items() if blocks("console", text)} == {
        "README.md",
        "guide.md",
        "linter.md",
        "runtimes.md",
    }


def test_the_page_on_fleets_is_fresh_and_its_commands_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file, text in measure_fleet.pages().items():
        assert file.read_text(encoding="utf-8") == text, "run: python -m tests.benchmarks.measure_fleet --write"
    (environment(tmp_path) / "models").symlink_to(ROOT / "fixtures" / "onnx")
    monkeypatch.chdir(tmp_path)
    commands = [line for block in blocks("sh", PAGES["fleet.md"]) for line in block.splitlines()]
    ran = [line.split()[1:] for line in commands if line.startswith("padfix check models ")]
    assert [run(cli, arguments) for arguments in ran] == [1, 1, 1]
    assert (tmp_path / "models.jsonl").read_text().count("\n") == len(list((ROOT / "fixtures" / "onnx").glob("*.onnx")))


def test_the_picture_is_fresh() -> None:
    illustration = padfix.check(ROOT / "fixtures/onnx/same_cnn.onnx").findings[0].illustration
    assert illustration is not None
    file = ROOT / "padfix/docs/pictures/same.svg"
    assert file.read_text(encoding="utf-8") == operators.picture(illustration).file() + "\n"


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_every_page_is_in_the_site() -> None:
    listed = re.findall(r"^ +- ([\w/-]+\.md)$", (ROOT / ".mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    folder = ROOT / "padfix" / "docs"
    assert sorted(listed) == sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = only("python")
    monkeypatch.chdir(environment(tmp_path))
    names: dict[str, object] = {}
    exec(compile(example, "python.md", "exec"), names)
    report, verdict = names["report"], names["verdict"]
    assert isinstance(report, padfix.ConvertReport)
    assert isinstance(verdict, padfix.Verdict)
    assert len(report.rewrites) == 4
    assert verdict.equivalent
    assert padfix.check("explicit.onnx").findings == []


def test_the_configuration_example_is_right(tmp_path: Path) -> None:
    example = only("toml")
    file = tmp_path / "padfix.toml"
    file.write_text(example)
    settings = config.load(file)
    require_known(settings.rule_words())
    assert settings.target in targets.names()
    assert set(config.KEYS) == set(re.findall(r"^\[?([a-z-]+)", example, re.MULTILINE)) | {"select", "probes-only"}


def test_the_table_of_rules_is_fresh() -> None:
    match = re.search(r"<!-- rules:begin.*?-->\n(.*?)<!-- rules:end -->", README, re.DOTALL)
    assert match
    assert match.group(1) == catalogue.markdown(RULES), "replace it by the output of: padfix rules --format markdown"


def test_the_page_of_the_targets_is_fresh() -> None:
    there = (ROOT / "padfix" / "docs" / "targets.md").read_text(encoding="utf-8")
    fresh = target_facts.page([targets.named(name) for name in targets.names()])
    assert there == fresh, "run: padfix targets --format markdown > padfix/docs/targets.md"


def test_the_pages_of_the_rules_are_fresh() -> None:
    folder = ROOT / "padfix" / "docs" / "rules"
    there = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert there == pages.files(RULES), "run: padfix rules --write-pages padfix/docs/rules"


def test_setup_commands_are_one_line_each_and_name_what_exists() -> None:
    convert, test = setup_command("convert"), setup_command("test")
    assert all(command.startswith("python3 -m venv .venv && ") for command in (convert, test))
    (source,) = re.findall(r"padfix convert (\S+)", convert)
    assert (ROOT / source).is_file()
    assert test.endswith("python -m pytest -n 2 --dist worksteal")


def test_the_pages_name_every_command_and_every_option_they_name_exists() -> None:
    with Context(cli) as context:
        commands = {name: cli.get_command(context, name) for name in COMMANDS}
    known = {option for command in commands.values() if command for each in command.params for option in each.opts}
    for name in ("convert", "check", "verify", "inspect", "explain", "rules"):
        assert any(f"padfix {name}" in text for text in PAGES.values()), name
    lines = [line for text in PAGES.values() for line in text.splitlines()]
    ours = "\n".join(line for line in lines if not re.search(r"\bpip |mkdocs |pytest |docker |dask ", line))
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
