"""What a report is made of, whatever it is written in: the HTML and Markdown reports are two renderings of one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from padfix.reports.pictures.svg import Picture


class Tone(Enum):
    """How words are meant; a reader who sees no colours has the words themselves."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    SILENT = "silent"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @classmethod
    def of(cls, good: bool) -> Tone:
        """Return the tone of what is as it should be, or is not."""
        return cls.GOOD if good else cls.BAD


@dataclass(frozen=True)
class Words:
    """A paragraph; ``strong`` where it is the one to read first."""

    text: str
    tone: Tone = Tone.PLAIN
    strong: bool = False


@dataclass(frozen=True)
class Counts:
    """How many of what, at a glance: ``"27 warnings"``."""

    parts: tuple[tuple[str, Tone], ...]


@dataclass(frozen=True)
class Facts:
    """Names with their values: which files, which versions, when."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head, each as long as it.

    Attributes:
        head: What the columns hold.
        rows: The cells.
        links: The anchor that the first cell of each row leads to; empty where none does.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    links: tuple[str, ...] = ()


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
class Item:
    """What was found of one node, and what became of it; one for all nodes of which the very same is to be said.

    Attributes:
        place: Where it is: the path of scopes and the node.
        op_type: The node's operator.
        severity: Of the finding.
        text: What was found.
        remark: What became of it: its proof, or the reason why it stays.
        before: The nodes that were there.
        after: Those that took their place.
        alike: The places of the other nodes.
        picture: What the node does.
        as_at: The place whose picture is the same, where there is one already, and its anchor.
        anchor: What links lead to.
    """

    place: str
    op_type: str
    severity: Tone
    text: str
    remark: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    picture: Picture | None = None
    as_at: tuple[str, str] | None = None
    anchor: str = ""


@dataclass(frozen=True)
class Items:
    """Findings, in the order of the graph."""

    items: tuple[Item, ...]


@dataclass(frozen=True)
class Pictures:
    """Pictures with their captions."""

    pictures: tuple[tuple[str, Picture], ...]


@dataclass(frozen=True)
class Section:
    """Blocks under a title of their own; ``folded`` where few readers need them."""

    title: str
    blocks: tuple[Block, ...]
    folded: bool = False
    anchor: str = ""


Block = Words | Counts | Facts | Table | Bullets | Command | Items | Pictures | Section


@dataclass(frozen=True)
class Page:
    """A whole report: what is to be read first, and the rest."""

    title: str
    head: tuple[Block, ...]
    blocks: tuple[Block, ...]


def shortened(blocks: Sequence[Block], most: int) -> tuple[Block, ...]:
    """Return ``blocks`` with at most ``most`` of everything that can be many, each list saying what it leaves out."""
    found: list[Block] = []
    for block in blocks:
        match block:
            case Section():
                found.append(replace(block, blocks=shortened(block.blocks, most)))
            case Table() if len(block.rows) > most:
                found += [replace(block, rows=block.rows[:most], links=block.links[:most]), _rest(block.rows, most)]
            case Bullets() if len(block.items) > most:
                found += [replace(block, items=block.items[:most]), _rest(block.items, most)]
            case Items():
                items = tuple(replace(each, alike=_names(each.alike, most)) for each in block.items[:most])
                found.append(Items(items))
                if len(block.items) > most:
                    found.append(_rest(block.items, most))
            case _:
                found.append(block)
    sections = [place for place, block in enumerate(found) if isinstance(block, Section)]
    if len(sections) > most:
        return (*found[: sections[most]], _rest(sections, most, "sections"))
    return tuple(found)


def _rest(everything: Sequence[object], most: int, noun: str = "lines") -> Words:
    return Words(f"Left out here, for the length of the page: {len(everything) - most} more {noun}.")


def _names(names: tuple[str, ...], most: int) -> tuple[str, ...]:
    return names if len(names) <= most else (*names[:most], f"and {len(names) - most} more")
