"""What a diagnosis says, in sentences: the most important first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MOST = 8
# A class or band is spoken of from this many nodes on, and this share of all.
_FEW, _SHARE = 10, 0.01
# Differences of shares below these are left to the tables.
_CLASS_GAP, _BAND_GAP, _SPREAD_GAP, _ACCURACY_GAP = 0.05, 0.15, 0.05, 0.03
_CLASSES = 2  # classes that get a sentence of their own
_LISTED = 5  # names in one sentence

Weighted = tuple[float, str]
Result = Mapping[str, Any]


def findings(result: Result) -> list[str]:
    """At most eight sentences on the result of ``diagnose_fitted``.

    The summary comes first, then whatever concerns the most nodes. A rule that has
    nothing to say says nothing.
    """
    rules = (_unlabelled, _unreachable, _weak, _spreading, _disagreement, _bands)
    said = [one for rule in (*rules, _graphs) for one in rule(result)]
    said.sort(key=lambda one: -one[0])
    return [*_summary(result), *(text for _, text in said)][:MOST]


def people(value: float) -> str:
    """A share as people say it: whole percent, never a false 0 or 100."""
    if 0 < value < 0.01:
        return "under 1 %"
    if 0.99 < value < 1:
        return "over 99 %"
    return f"{100 * value:.0f} %"


def _summary(result: Result) -> Iterator[str]:
    elu, nelu = (result["overall"][k] for k in ("elu", "nelu"))
    if not elu["nodes"] + nelu["nodes"]:
        return
    text = f"Labels and GCN agree on {people(elu['share'])} of the nodes (ELU)"
    ours, theirs = elu["gcn_accuracy"], nelu["gcn_accuracy"]
    if ours is not None and theirs is not None:
        text += (
            f"; there the GCN is right on {people(ours)}, and on {people(theirs)} "
            "where they disagree (NELU)"
        )
    yield f"{text}."


def _unlabelled(result: Result) -> Iterator[Weighted]:
    names = [str(r["name"]) for r in result["classes"] if not r["labels"]]
    if names:
        more = ", …" if len(names) > _LISTED else ""
        which = ", ".join(names[:_LISTED]) + more
        one = len(names) == 1
        who = f"Class {which} has" if one else f"Classes {which} have"
        what = "it" if one else "them"
        yield 2.0, f"{who} no training label: nothing tells the model about {what}."


def _unreachable(result: Result) -> Iterator[Weighted]:
    row = result["overall"]["unreachable"]
    if row["nodes"]:
        nodes = "1 node" if row["nodes"] == 1 else f"{row['nodes']:,} nodes"
        text = f"No label reaches {nodes} ({people(row['share'])}): only features speak"
        if row["gcn_accuracy"] is not None:
            text += f", and the GCN is right on {people(row['gcn_accuracy'])}"
        yield row["share"], f"{text}."


def _weak(result: Result) -> Iterator[Weighted]:
    """Classes with clearly more NELU nodes than the graph as a whole."""
    total = sum(r["nodes"] for r in result["classes"])
    least = max(_FEW, _SHARE * total)
    usual = result["overall"]["nelu"]["share"]
    weak = [
        r
        for r in result["classes"]
        if r["nodes"] >= least and r["nelu"] >= usual + _CLASS_GAP
    ]
    weak.sort(key=lambda r: -r["nelu"] * r["nodes"])
    for r in weak[:_CLASSES]:
        labels = f"{r['labels']:,} label{'' if r['labels'] == 1 else 's'}"
        text = (
            f"Class {r['name']} has {labels} and reaches {people(r['elu'])} of the "
            f"{r['nodes']:,} nodes the GCN puts in it; {people(r['pulled_share'])} of "
            f"its NELU nodes are pulled to class {r['pulled_to']}."
        )
        yield r["nelu"] * r["nodes"] / total, text


def _spreading(result: Result) -> Iterator[Weighted]:
    """The class whose labels are heard by far more nodes than the GCN gives it."""
    total = sum(r["nodes"] for r in result["classes"])
    r = max(result["classes"], key=lambda r: r["lpa_nodes"] - r["nodes"])
    heard, given = r["lpa_nodes"] / total, r["nodes"] / total
    if heard - given >= _SPREAD_GAP and r["lpa_nodes"] - r["nodes"] >= _FEW:
        text = (
            f"Labels of class {r['name']} drown others: they are the strongest on "
            f"{people(heard)} of the nodes, and the GCN gives it {people(given)}."
        )
        yield heard - given, text


def _disagreement(result: Result) -> Iterator[Weighted]:
    row = result["overall"]["nelu"]
    lpa, gcn = row["lpa_accuracy"], row["gcn_accuracy"]
    if lpa is not None and gcn is not None and lpa >= gcn + _ACCURACY_GAP:
        text = (
            "Where they disagree the labels are right more often than the GCN "
            f"({people(lpa)} against {people(gcn)}): it leaves information unused."
        )
        yield row["share"] * (lpa - gcn), text


def _bands(result: Result) -> Iterator[Weighted]:
    """Far from labels, or with few neighbours: where agreement gets lost."""
    places = {"distances": _edges_away, "degrees": _neighbours}
    for key, place in places.items():
        total = sum(r["nodes"] for r in result[key])
        least = max(2 * _FEW, _SHARE * total)
        # Labelled nodes agree with themselves, and what is cut off has its sentence.
        rows = [
            r
            for r in result[key]
            if r["nodes"] >= least and r["name"] not in ("0", "none")
        ]
        if len(rows) < 2:
            continue
        high, low = (pick(rows, key=lambda r: r["elu"]) for pick in (max, min))
        gap = high["elu"] - low["elu"]
        if gap >= _BAND_GAP:
            text = (
                f"{people(high['elu'])} of the nodes {place(high['name'])} are ELU, "
                f"and {people(low['elu'])} of those {place(low['name'])}."
            )
            yield gap * low["nodes"] / total, text


def _edges_away(name: str) -> str:
    edges = "1 edge" if name == "1" else f"{name.replace('+', ' or more')} edges"
    return f"{edges} from a label"


def _neighbours(name: str) -> str:
    if name == "1":
        return "with 1 neighbour"
    return f"with {name.replace('–', ' to ').replace('+', ' or more')} neighbours"


def _graphs(result: Result) -> Iterator[Weighted]:
    before, after = (result["graphs"][k] for k in ("original", "elu"))
    if after is None or before["homophily"] is None or after["homophily"] is None:
        return
    text = (
        f"{people(before['homophily'])} of a node's neighbours are of its own class; "
        f"in the ELU graph it has {people(after['homophily'])} of the weight, summed "
        "by class"
    )
    ours, theirs = after["complexity"], before["complexity"]
    if ours is not None and theirs is not None:
        better = "lower" if ours < theirs else "no lower"
        text += (
            f", and the complexity of the classes is {better} ({ours:.2g} against "
            f"{theirs:.2g})"
        )
    # Always worth knowing, never the first thing.
    yield 0.0, f"{text}."
