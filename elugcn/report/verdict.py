"""The summary of a run: how accurate it is, what the labels do, how reliable it is."""

from elugcn.insight import counted, format_percent, recall_text
from elugcn.report.content import Content
from elugcn.report.evaluation import Row

_ENOUGH = 10  # evaluated nodes for a statement about a class or kind of nodes
_ENOUGH_PROBABILITIES = 30
# Expected calibration errors up to which probabilities are reliable, or usable.
_RELIABLE, _USABLE = 0.04, 0.1


def accuracy_percent(share: float | None, nodes: int) -> str:
    """An accuracy with the digits that so many nodes allow."""
    return format_percent(share, 1 if nodes >= 500 else 0)


def verdict(content: Content) -> list[str]:
    """What to know besides the accuracy: up to three short paragraphs."""
    said = (_accuracy(content), _labels(content), _probabilities(content))
    return [paragraph for paragraph in said if paragraph]


def _accuracy(content: Content) -> str:
    evaluation = content.evaluation
    if evaluation is None:
        return "No labels were held out, so the accuracy of this model is unknown."
    m = evaluation.nodes
    own, *others = evaluation.scores
    refit = content.members is not None and content.members.refit
    said = [_difference(own, one, m, refit) for one in others if one["name"] == "gcn"]
    weak = [s for s in evaluation.classes if s["nodes"] >= _ENOUGH]
    if evaluation.uneven:
        constant = accuracy_percent(others[-1]["accuracy"], m)  # the largest class
        recall = {s["name"]: s["recall"] for s in evaluation.classes if s["nodes"]}
        said.append(
            "The classes are uneven: always predicting the largest one has an accuracy "
            f"of {constant}. {recall_text(recall, digits=0)}"
        )
    elif len(weak) > 1:
        weakest = min(weak, key=lambda s: s["recall"])
        said.append(
            f"The weakest class is “{weakest['name']}”: "
            f"{accuracy_percent(weakest['recall'], weakest['nodes'])} of its "
            f"{weakest['nodes']:,} nodes are found."
        )
    return " ".join(said)


def _difference(own: Row, gcn: Row, nodes: int, refit: bool) -> str:
    """The run's model beside a GCN, which never trains on validation nodes."""
    name = f"a plain GCN ({accuracy_percent(gcn['accuracy'], nodes)}"
    name += "; it had fewer labels)" if refit else ")"
    if not gcn["clear"]:
        return f"The difference to {name} is within chance."
    gap = own["accuracy"] - gcn["accuracy"]
    points = f"{100 * abs(gap):.1f}"
    many = "point" if points == "1.0" else "points"
    return f"This is {points} {many} {'more' if gap > 0 else 'less'} than {name}."


def _labels(content: Content) -> str:
    if not content.statuses:
        nodes = counted(content.n_nodes, "node")
        return f"{content.n_labels:,} of {nodes} had a label to learn from."
    elu, nelu, unreachable = content.statuses
    said = f"Labels are used on {format_percent(elu['share'])} of the nodes (ELU)."
    if nelu["nodes"]:
        said += (
            f" On {format_percent(nelu['share'])}, label propagation and the "
            f"{content.model} disagree (NELU)"
        )
        if min(nelu["tested"], elu["tested"]) >= _ENOUGH:
            here = format_percent(nelu["model_accuracy"])
            elsewhere = format_percent(elu["model_accuracy"])
            said += f"; there the model is right on {here} instead of {elsewhere}"
        said += "."
    if unreachable["nodes"]:
        nodes = counted(unreachable["nodes"], "node")
        said += f" No label reaches {nodes} ({format_percent(unreachable['share'])})."
    return said


def _probabilities(content: Content) -> str:
    if content.evaluation is None:
        return "Without held-out labels, its probabilities cannot be verified."
    found = content.evaluation.calibration
    average = (
        f"on average it is {format_percent(found.confidence)} confident and "
        f"{format_percent(found.accuracy)} right"
    )
    if content.evaluation.nodes < _ENOUGH_PROBABILITIES:
        return f"There are too few nodes to judge its probabilities: {average}."
    if found.error <= _RELIABLE:
        return f"Its probabilities are reliable: {average}."
    gap = found.confidence - found.accuracy
    kind = "overconfident" if gap > 0 else "underconfident"
    if abs(gap) < found.error / 2:
        kind = "overconfident on some nodes and underconfident on others"
    advice = "Use its probabilities with caution"
    if found.error > _USABLE:
        advice = "Do not rely on its probabilities"
    return f"{advice}: the model is {kind}; {average}."
