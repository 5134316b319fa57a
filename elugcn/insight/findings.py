"""The most important results of a diagnosis, in sentences."""

from collections.abc import Iterator, Mapping
from typing import Any

MAX_FINDINGS = 8
# Groups of fewer nodes than this, or than this share of all nodes, are not mentioned.
_MIN_NODES, _MIN_SHARE = 10, 0.01
# Smaller differences of shares are left to the tables.
_CLASS_GAP, _BAND_GAP, _SPREAD_GAP, _ACCURACY_GAP = 0.05, 0.15, 0.05, 0.03
_MAX_CLASSES, _MAX_NAMES = 2, 5  # with a sentence of their own; in one sentence

Finding = tuple[float, str]  # how many nodes it concerns and how much, as a share
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


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 node, 2,000 nodes."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def recall_text(recall: Mapping[str, float], digits: int = 1, most: int = 6) -> str:
    """A sentence with the recall of each class; of many classes, the lowest."""
    title, shown = "Recall", list(recall.items())
    if len(shown) > most:
        title = "Lowest recall"
        shown = sorted(shown, key=lambda one: one[1])[:most]
    parts = (f"{name} {format_percent(share, digits)}" for name, share in shown)
    return f"{title}: {', '.join(parts)}."


def findings(result: Result) -> list[str]:
    """At most eight statements about the result of ``diagnose``.

    The summary comes first, then what concerns the most nodes.
    """
    rules = (_unlabelled, _unreachable, _weak, _dominant, _unused, _bands, _graphs)
    found = [one for rule in rules for one in rule(result)]
    found.sort(key=lambda one: -one[0])
    return [*_summary(result), *(text for _, text in found)][:MAX_FINDINGS]


def _model(result: Result) -> str:
    """What is compared with label propagation."""
    return str(result.get("model", "GCN"))


def _summary(result: Result) -> Iterator[str]:
    model = _model(result)
    elu, nelu = result["overall"]["elu"], result["overall"]["nelu"]
    if not elu["nodes"] + nelu["nodes"]:
        return
    share = format_percent(elu["share"])
    text = f"Label propagation and the {model} agree on {share} of the nodes (ELU)."
    right, wrong = elu["gcn_accuracy"], nelu["gcn_accuracy"]
    if right is not None and wrong is not None:
        text += (
            f" The {model} is right on {format_percent(right)} of these nodes, and on "
            f"{format_percent(wrong)} where the two disagree (NELU)."
        )
    yield text


def _unlabelled(result: Result) -> Iterator[Finding]:
    names = [r["name"] for r in result["classes"] if not r["labels"]]
    listed = ", ".join(names[:_MAX_NAMES]) + (", …" if names[_MAX_NAMES:] else "")
    who, what = f"Classes {listed} have", "them"
    if len(names) == 1:
        who, what = f"Class {listed} has", "it"
    if names:
        yield 2.0, f"{who} no training label, so the model cannot learn {what}."


def _unreachable(result: Result) -> Iterator[Finding]:
    row = result["overall"]["unreachable"]
    if row["nodes"]:
        nodes, share = counted(row["nodes"], "node"), format_percent(row["share"])
        who = "It is" if row["nodes"] == 1 else "They are"
        text = (
            f"No label reaches {nodes} ({share}). {who} predicted from features alone"
        )
        if row["gcn_accuracy"] is not None:
            right = format_percent(row["gcn_accuracy"])
            text += f"; the {_model(result)} is right on {right}"
        yield row["share"], f"{text}."


def _weak(result: Result) -> Iterator[Finding]:
    """Classes with clearly more NELU nodes than the graph as a whole."""
    usual = result["overall"]["nelu"]["share"] + _CLASS_GAP
    total, rows = _large(result["classes"], _MIN_NODES)
    weak = [r for r in rows if r["nelu"] >= usual]
    weak.sort(key=lambda r: -r["nelu"] * r["nodes"])
    for r in weak[:_MAX_CLASSES]:
        text = (
            f"Class {r['name']} has {counted(r['labels'], 'label')}. Only "
            f"{format_percent(r['elu'])} of the {r['nodes']:,} nodes predicted as this "
            "class are ELU; label propagation assigns "
            f"{format_percent(r['pulled_share'])} of its NELU nodes to class "
            f"{r['pulled_to']}."
        )
        yield r["nelu"] * r["nodes"] / total, text


def _dominant(result: Result) -> Iterator[Finding]:
    """The class that label propagation predicts far more often than the GCN."""
    total = sum(r["nodes"] for r in result["classes"])
    r = max(result["classes"], key=lambda r: r["lpa_nodes"] - r["nodes"])
    more, model = r["lpa_nodes"] - r["nodes"], _model(result)
    if more >= max(_MIN_NODES, _SPREAD_GAP * total):
        text = (
            f"Labels of class {r['name']} dominate: label propagation assigns it "
            f"{format_percent(r['lpa_nodes'] / total)} of the nodes, the {model} "
            f"{format_percent(r['nodes'] / total)}."
        )
        yield more / total, text


def _unused(result: Result) -> Iterator[Finding]:
    row = result["overall"]["nelu"]
    lpa, gcn = row["lpa_accuracy"], row["gcn_accuracy"]
    model = _model(result)
    if lpa is not None and gcn is not None and lpa >= gcn + _ACCURACY_GAP:
        text = (
            "Where the two disagree, label propagation is right more often than the "
            f"{model} ({format_percent(lpa)} against {format_percent(gcn)}). The "
            f"{model} leaves label information unused."
        )
        yield row["share"] * (lpa - gcn), text


def _bands(result: Result) -> Iterator[Finding]:
    """The degree and the distance to a label at which agreement is lowest."""
    for key, noun, words in (
        ("distances", "edge", "{} from a label"),
        ("degrees", "neighbour", "with {}"),
    ):
        total, rows = _large(result[key], 2 * _MIN_NODES)
        # Training nodes say nothing; unreachable ones have a sentence of their own.
        rows = [r for r in rows if r["name"] != "0" and r["unreachable"] < 0.5]
        if len(rows) < 2:
            continue
        high, low = (pick(rows, key=lambda r: r["elu"]) for pick in (max, min))
        gap = high["elu"] - low["elu"]
        if gap >= _BAND_GAP:
            there, here = (words.format(_band(r["name"], noun)) for r in (high, low))
            text = (
                f"{format_percent(high['elu'])} of the nodes {there} are ELU, but only "
                f"{format_percent(low['elu'])} of the nodes {here}."
            )
            yield gap * low["nodes"] / total, text


def _large(rows: list[dict[str, Any]], least: int) -> tuple[int, list[dict[str, Any]]]:
    """The number of nodes, and the groups that are large enough to be mentioned."""
    total = sum(r["nodes"] for r in rows)
    return total, [r for r in rows if r["nodes"] >= max(least, _MIN_SHARE * total)]


def _band(name: str, noun: str) -> str:
    """A band in words: 1 edge, 4 to 7 edges, 5 or more edges."""
    words = name.replace("–", " to ").replace("+", " or more")
    return f"{words} {noun}{'' if name == '1' else 's'}"


def _graphs(result: Result) -> Iterator[Finding]:
    before, after = result["graphs"]["original"], result["graphs"]["elu"]
    if after is None or before["homophily"] is None or after["homophily"] is None:
        return
    text = (
        f"On the original graph, {format_percent(before['homophily'])} of a node's "
        "neighbours have its class; on the ELU graph, "
        f"{format_percent(after['homophily'])} of the weight leads to its class."
    )
    if after["complexity"] is not None and before["complexity"] is not None:
        ours, theirs = (round(g["complexity"], 1) for g in (after, before))
        text += (
            " The ELU graph separates the classes "
            f"{'better' if ours < theirs else 'no better'} (Davies-Bouldin index "
            f"{ours} against {theirs}; lower is better)."
        )
    yield 0.0, text  # always worth saying, never first
