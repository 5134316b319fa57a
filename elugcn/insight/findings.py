"""The most important results of a diagnosis, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_FINDINGS = 8
# Groups of fewer nodes than this, or than this share of all nodes, are not mentioned.
_MIN_NODES, _MIN_SHARE = 10, 0.01
# Smaller differences of shares are left to the tables.
_CLASS_GAP, _BAND_GAP, _SPREAD_GAP, _ACCURACY_GAP = 0.05, 0.15, 0.05, 0.03
_MAX_CLASSES = 2  # with a sentence of their own
_MAX_NAMES = 5  # in one sentence

Finding = tuple[float, str]
Result = Mapping[str, Any]


def format_percent(share: float | None, digits: int = 0) -> str:
    """A share as percent; it says 0% or 100% only where that is exact."""
    if share is None:
        return "–"
    text, smallest = f"{100 * share:.{digits}f}", 10.0**-digits
    if share > 0 and float(text) == 0:
        return f"<{smallest:g}%"
    if share < 1 and float(text) == 100:
        return f">{100 - smallest:g}%"
    return f"{text}%"


def findings(result: Result) -> list[str]:
    """At most eight statements about the result of ``diagnose``.

    The summary comes first, then what concerns the most nodes.
    """
    rules = (_unlabelled, _unreachable, _weak, _dominant, _unused, _bands, _graphs)
    found = [one for rule in rules for one in rule(result)]
    found.sort(key=lambda one: -one[0])
    return [*_summary(result), *(text for _, text in found)][:MAX_FINDINGS]


def _summary(result: Result) -> Iterator[str]:
    elu, nelu = result["overall"]["elu"], result["overall"]["nelu"]
    if not elu["nodes"] + nelu["nodes"]:
        return
    share = format_percent(elu["share"])
    text = f"Label propagation and the GCN agree on {share} of the nodes (ELU)."
    if elu["gcn_accuracy"] is not None and nelu["gcn_accuracy"] is not None:
        text += (
            f" The GCN is right on {format_percent(elu['gcn_accuracy'])} of these "
            f"nodes, and on {format_percent(nelu['gcn_accuracy'])} where the two "
            "disagree (NELU)."
        )
    yield text


def _unlabelled(result: Result) -> Iterator[Finding]:
    names = [str(r["name"]) for r in result["classes"] if not r["labels"]]
    if names:
        listed = ", ".join(names[:_MAX_NAMES]) + (", …" if names[_MAX_NAMES:] else "")
        who = f"Class {listed} has" if len(names) == 1 else f"Classes {listed} have"
        what = "it" if len(names) == 1 else "them"
        yield 2.0, f"{who} no training label, so the model cannot learn {what}."


def _unreachable(result: Result) -> Iterator[Finding]:
    row = result["overall"]["unreachable"]
    if row["nodes"]:
        one = row["nodes"] == 1
        nodes = "1 node" if one else f"{row['nodes']:,} nodes"
        text = (
            f"No label reaches {nodes} ({format_percent(row['share'])}). "
            f"{'It is' if one else 'They are'} predicted from features alone"
        )
        if row["gcn_accuracy"] is not None:
            text += f"; the GCN is right on {format_percent(row['gcn_accuracy'])}"
        yield row["share"], f"{text}."


def _weak(result: Result) -> Iterator[Finding]:
    """Classes with clearly more NELU nodes than the graph as a whole."""
    total = sum(r["nodes"] for r in result["classes"])
    least = max(_MIN_NODES, _MIN_SHARE * total)
    usual = result["overall"]["nelu"]["share"]
    weak = [
        r
        for r in result["classes"]
        if r["nodes"] >= least and r["nelu"] >= usual + _CLASS_GAP
    ]
    weak.sort(key=lambda r: -r["nelu"] * r["nodes"])
    for r in weak[:_MAX_CLASSES]:
        labels = "1 label" if r["labels"] == 1 else f"{r['labels']:,} labels"
        text = (
            f"Class {r['name']} has {labels}. Only {format_percent(r['elu'])} of the "
            f"{r['nodes']:,} nodes predicted as this class are ELU; label propagation "
            f"assigns {format_percent(r['pulled_share'])} of its NELU nodes to class "
            f"{r['pulled_to']}."
        )
        yield r["nelu"] * r["nodes"] / total, text


def _dominant(result: Result) -> Iterator[Finding]:
    """The class that label propagation predicts far more often than the GCN."""
    total = sum(r["nodes"] for r in result["classes"])
    r = max(result["classes"], key=lambda r: r["lpa_nodes"] - r["nodes"])
    lpa, gcn = r["lpa_nodes"] / total, r["nodes"] / total
    if lpa - gcn >= _SPREAD_GAP and r["lpa_nodes"] - r["nodes"] >= _MIN_NODES:
        text = (
            f"Labels of class {r['name']} dominate: label propagation assigns it "
            f"{format_percent(lpa)} of the nodes, the GCN {format_percent(gcn)}."
        )
        yield lpa - gcn, text


def _unused(result: Result) -> Iterator[Finding]:
    row = result["overall"]["nelu"]
    lpa, gcn = row["lpa_accuracy"], row["gcn_accuracy"]
    if lpa is not None and gcn is not None and lpa >= gcn + _ACCURACY_GAP:
        text = (
            "Where the two disagree, label propagation is right more often than the "
            f"GCN ({format_percent(lpa)} against {format_percent(gcn)}). The GCN "
            "leaves label information unused."
        )
        yield row["share"] * (lpa - gcn), text


def _bands(result: Result) -> Iterator[Finding]:
    """The degree and the distance to a label at which agreement is lowest."""
    for key, describe in (("distances", _edges_away), ("degrees", _neighbours)):
        total = sum(r["nodes"] for r in result[key])
        least = max(2 * _MIN_NODES, _MIN_SHARE * total)
        # Training nodes say nothing; unreachable ones have a sentence of their own.
        rows = [
            r
            for r in result[key]
            if r["nodes"] >= least and r["name"] != "0" and r["unreachable"] < 0.5
        ]
        if len(rows) < 2:
            continue
        high, low = (pick(rows, key=lambda r: r["elu"]) for pick in (max, min))
        gap = high["elu"] - low["elu"]
        if gap >= _BAND_GAP:
            text = (
                f"{format_percent(high['elu'])} of the nodes {describe(high['name'])} "
                f"are ELU, but only {format_percent(low['elu'])} of the nodes "
                f"{describe(low['name'])}."
            )
            yield gap * low["nodes"] / total, text


def _edges_away(name: str) -> str:
    edges = "1 edge" if name == "1" else f"{name.replace('+', ' or more')} edges"
    return f"{edges} from a label"


def _neighbours(name: str) -> str:
    if name == "1":
        return "with 1 neighbour"
    return f"with {name.replace('–', ' to ').replace('+', ' or more')} neighbours"


def _graphs(result: Result) -> Iterator[Finding]:
    before, after = result["graphs"]["original"], result["graphs"]["elu"]
    if after is None or before["homophily"] is None or after["homophily"] is None:
        return
    text = (
        f"On the original graph, {format_percent(before['homophily'])} of a node's "
        "neighbours have its class; on the ELU graph, "
        f"{format_percent(after['homophily'])} of the weight leads to its class."
    )
    ours, theirs = after["complexity"], before["complexity"]
    if ours is not None and theirs is not None:
        result_of = "better" if ours < theirs else "no better"
        text += (
            f" The ELU graph separates the classes {result_of} (Davies-Bouldin index "
            f"{ours:.2g} against {theirs:.2g}; lower is better)."
        )
    yield 0.0, text  # always worth saying, never first
