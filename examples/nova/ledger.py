"""The ledger: what all processes noted, held against what was promised."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

SHOWN = 5
"""Names that are shown of what is wrong; all of them are counted."""

LATE = ("build late", "select late", "cast late", "computes that do not answer")
NEVER = ("calls that hung", "computes that did not end", "fanouts reached again")
ALWAYS = ("build returned", "select returned", "fanouts reached")


@dataclass
class Ledger:
    """What happened, and what of it must not have.

    Attributes:
        counts: By what it is.
        wrong: What is not as promised; empty where all is.
        call_ms: How long calls took, as percentiles.
    """

    counts: Counter[str]
    wrong: list[str] = field(default_factory=list)
    call_ms: dict[str, float] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether everything is as promised."""
        return not self.wrong

    def as_json(self) -> dict[str, object]:
        """Return it as one object."""
        return {
            "good": self.is_good,
            "wrong": self.wrong,
            "call_ms": self.call_ms,
            "counts": dict(sorted(self.counts.items())),
        }

    def text(self) -> str:
        """Return it for people."""
        lines = [f"{count:>10,}  {what}" for what, count in sorted(self.counts.items())]
        lines += [f"{value:>10,.1f}  ms, {name} of calls" for name, value in self.call_ms.items()]
        lines += [f"     WRONG  {what}" for what in self.wrong]
        lines.append("all is as promised" if self.is_good else "not all is as promised")
        return "\n".join(lines)


def draw_up(files: list[Path], facts: Counter[str], left: list[str], computes: int) -> Ledger:
    """Draw up the ledger.

    Args:
        files: What each process noted.
        facts: What else was counted: kills, containers started again.
        left: What is left of clients in the containers.
        computes: How many there are.
    """
    counts, names, wrong = _gather(files)
    counts.update(facts)
    ledger = Ledger(counts, wrong, _percentiles(sorted(names.pop("call seconds", []))))
    taken = names.get("notifications taken", [])
    counts["notifications taken again"] = len(taken) - len(set(taken))
    for what in ("computes", "call seconds"):
        counts.pop(what, None)
    wrong += _lost("cast", names.get("casts accepted"), names.get("casts run"))
    wrong += _lost("notification", names.get("notifications accepted"), taken)
    wrong += _late(names)
    wrong += [f"{counts[what]} {what}" for what in NEVER if counts[what]]
    wrong += [f"no {what}" for what in ALWAYS if not counts[what]]
    if counts["computes that answer"] != computes:
        wrong.append(f"{counts['computes that answer']} of {computes} computes answer")
    wrong += [f"left behind: {each}" for each in left]
    return ledger


def _gather(files: list[Path]) -> tuple[Counter[str], dict[str, list[object]], list[str]]:
    """Put the notes of all processes together; say which of them left none."""
    counts: Counter[str] = Counter()
    names: dict[str, list[object]] = {}
    for file in files:
        if file.exists():
            notes = json.loads(file.read_text())
            counts.update(notes["counts"])
            for what, found in notes["names"].items():
                names.setdefault(what, []).extend(found)
    return counts, names, [f"{each.stem} did not end well" for each in files if not each.exists()]


def _late(names: dict[str, list[object]]) -> list[str]:
    found = {what: names[what] for what in LATE if what in names}
    return [
        f"{what}: {len(of)}, as {', '.join(map(str, of[:SHOWN]))}" for what, of in found.items()
    ]


def _lost(what: str, accepted: list[object] | None, arrived: list[object] | None) -> list[str]:
    """Return what was accepted and never arrived; nothing accepted is wrong, too."""
    if not accepted:
        return [f"no {what} was accepted"]
    lost = set(accepted) - set(arrived or [])
    shown = ", ".join(map(str, sorted(lost, key=str)[:SHOWN]))
    return [f"{len(lost)} accepted {what}s were lost, as {shown}"] if lost else []


def _percentiles(seconds: list[float]) -> dict[str, float]:
    if not seconds:
        return {}
    at = {"p50": 0.5, "p99": 0.99}
    found = {name: seconds[int(len(seconds) * share)] * 1000 for name, share in at.items()}
    return {**found, "the longest": seconds[-1] * 1000}
