"""Findings as a report lists them: by rule, in the order of the graph, those that say the very same as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from padfix.reports import catalogue, sentences
from padfix.reports.pictures import operators
from padfix.reports.pictures.svg import Picture
from padfix.reports.sections import Item, Items, Section, Tone, Words
from padfix.results import Finding, LocalProof, Refused, Rewritten
from padfix.results.illustration import Illustration
from padfix.rules.registry import RULES

MOST_PICTURES = 24
"""Pictures of operators of one model; where more are wanted, the words say what they would show."""


@dataclass(frozen=True)
class Told:
    """A finding and what is to be said of it.

    Attributes:
        finding: The finding.
        remark: What became of it.
        proof: Of its rewrite on its own.
        before: The nodes that were there.
        after: Those that took their place.
    """

    finding: Finding
    remark: str = ""
    proof: LocalProof | None = None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @classmethod
    def of(cls, what: Finding | Rewritten | Refused) -> Told:
        """Return what is to be told of a finding, open, rewritten or refused."""
        match what:
            case Rewritten():
                return cls(
                    what.finding,
                    "Not proven on its own." if what.proof is None else "",
                    what.proof,
                    what.before,
                    what.after,
                )
            case Refused():
                return cls(what.finding, f"Refused: {what.reason}")
            case Finding():
                return cls(what, what.hint)

    @property
    def kind(self) -> tuple[object, ...]:
        """What is the same of findings that are told as one."""
        finding, proof = self.finding, self.proof
        proven = (proof.cases, proof.witnesses) if proof else None
        own = (finding.severity, finding.op_type, finding.message, finding.illustration)
        return (*own, self.remark, proven, self.before, self.after)


class Listing:
    """The findings of one model, with a picture of each kind of operator and an anchor for each place.

    Attributes:
        anchors: Where the page speaks of a rule's finding at a node: by graph, node and rule.
        left_out: How many kinds of operators are not drawn, for the length of the page.
    """

    def __init__(self, prefix: str = "") -> None:
        self.anchors: dict[tuple[str, str, str], str] = {}
        self.left_out = 0
        self._prefix = prefix
        self._number = 0
        self._drawn: dict[Illustration, tuple[str, str] | None] = {}

    def by_rule(self, told: Sequence[Told]) -> Iterator[Section]:
        """Yield a section for each rule."""
        groups: dict[str, list[Told]] = {}
        for each in told:
            groups.setdefault(f"{each.finding.rule} {each.finding.name}", []).append(each)
        for title, group in groups.items():
            yield Section(title, (*_what_it_finds(group), self._items(group)))

    def _items(self, told: Sequence[Told]) -> Items:
        groups: dict[tuple[object, ...], list[Told]] = {}
        for each in told:
            groups.setdefault(each.kind, []).append(each)
        return Items(tuple(self._item(group) for group in groups.values()))

    def _item(self, group: Sequence[Told]) -> Item:
        first, *others = group
        finding = first.finding
        place = sentences.place(finding)
        self._number += 1
        anchor = f"{self._prefix}n{self._number}"
        for each in group:
            self.anchors.setdefault((each.finding.graph, each.finding.node, finding.rule), anchor)
        picture, as_at = self._picture(finding.illustration, (place, anchor))
        proofs = [each.proof for each in group if each.proof is not None]
        return Item(
            place,
            finding.op_type,
            Tone(finding.severity.value),
            finding.message,
            f"Proof on its own: {sentences.local_proof(*proofs)}." if proofs else first.remark,
            first.before,
            first.after,
            tuple(sentences.place(each.finding) for each in others),
            picture,
            as_at,
            anchor,
        )

    def _picture(
        self, illustration: Illustration | None, here: tuple[str, str]
    ) -> tuple[Picture | None, tuple[str, str] | None]:
        """Return the picture of a kind of operator, or the place and the anchor where it is already."""
        if illustration is None or illustration in self._drawn:
            return None, self._drawn[illustration] if illustration is not None else None
        if len(self._drawn) - self.left_out >= MOST_PICTURES:
            self.left_out += 1
            self._drawn[illustration] = None
            return None, None
        self._drawn[illustration] = here
        return operators.picture(illustration), None


def _what_it_finds(group: Sequence[Told]) -> Iterator[Words]:
    code = group[0].finding.rule
    nodes = sentences.count(len(group), "finding")
    for rule in RULES:
        if rule.code == code:
            yield Words(f"{nodes}. {catalogue.summary(rule).replace('`', '')} padfix explain {code} says more.")
