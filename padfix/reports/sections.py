"""What a report is made of, whatever it is written in: the HTML and Markdown reports are two renderings of one page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from padfix.reports.pictures.svg import Picture


class Tone(Enum):
    """How words are meant; a reader who sees no colours has the words themselves."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class Words:
    """A paragraph; ``strong`` where it is the one to read first."""

    text: str
    tone: Tone = Tone.PLAIN
    strong: bool = False


@dataclass(frozen=True)
class Facts:
    """Names with their values: which files, which versions, when."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head, each as long as it."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Command:
    """Something to paste into a shell, and what it does."""

    purpose: str
    line: str


@dataclass(frozen=True)
class Pictures:
    """Pictures with their captions."""

    pictures: tuple[tuple[str, Picture], ...]
    left_out: int = 0


@dataclass(frozen=True)
class Section:
    """Blocks under a title of their own; ``folded`` where few readers need them."""

    title: str
    blocks: tuple[Block, ...]
    folded: bool = False


Block = Words | Facts | Table | Bullets | Command | Pictures | Section


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    blocks: tuple[Block, ...]
