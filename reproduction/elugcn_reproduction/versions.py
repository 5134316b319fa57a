"""The accuracy of this version beside that of the stored runs of version 0.1.

``python -m elugcn_reproduction.versions STORE`` reads a store of ``elugcn compare``.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

from elugcn.evaluation import Store, paired_difference, summarize
from elugcn.evaluation.statistics import Pair
from elugcn_reproduction.commands import RESULTS
from elugcn_reproduction.page import Page

COMMAND = (
    "elugcn compare --methods gcn,appnp,grand,elu-gcn,auto --datasets "
    "cora,citeseer,photo,chameleon --seeds 10 --store runs/versions\n"
    "python -m elugcn_reproduction.versions runs/versions"
)
# Dataset, method and options as JSON.
Setting = tuple[str, str, str]


def accuracies(store: Store) -> dict[Setting, dict[Pair, float]]:
    """Test accuracy by setting, then by split and seed."""
    found: dict[Setting, dict[Pair, float]] = defaultdict(dict)
    for run in store.records():
        plain = not run.get("measure") and run.get("labels_per_class") is None
        if plain and run.get("test_accuracy") is not None:
            options = json.dumps(run["options"], sort_keys=True)
            setting = run["dataset"], run["method"], options
            found[setting][run["split"], run["seed"]] = run["test_accuracy"]
    return found


def holm(pvalues: list[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979)."""
    order = sorted(range(len(pvalues)), key=lambda i: pvalues[i])
    corrected, largest = [0.0] * len(pvalues), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(pvalues) - rank) * pvalues[i]))
        corrected[i] = largest
    return corrected


def write(old: Store, new: Store, folder: Path) -> list[Path]:
    """The page ``versions``: means, paired differences, corrected p-values."""
    before, after = accuracies(old), accuracies(new)
    rows = []
    for setting, runs in sorted(after.items()):
        common = runs.keys() & before[setting].keys()
        ours = {pair: runs[pair] for pair in common}
        theirs = {pair: before[setting][pair] for pair in common}
        difference = paired_difference(ours, theirs)
        if difference is not None:
            sides = summarize([*theirs.values()]), summarize([*ours.values()])
            rows.append((*setting[:2], *sides, difference))
    corrected = holm([d.t_pvalue if d.t_pvalue is not None else 1.0 for *_, d in rows])
    page = Page(
        "versions",
        "Versions 0.1 and 0.2",
        "Are the accuracies of version 0.1 those of version 0.2?",
        COMMAND,
        records=list(new.records()),
    )
    page.text(
        "Test accuracy in percent, mean ± standard deviation over the same splits and "
        "seeds, with the same options. Random numbers differ between the versions. The "
        "difference has a 95 % confidence interval; the p-value of its paired t-test "
        "is corrected for the number of rows (Holm)."
    )
    shown, data = [], []
    for (dataset, method, was, now, d), p in zip(rows, corrected, strict=True):
        shown.append(
            (
                f"{dataset}, {method}",
                f"{was.mean:.2f} ± {was.std:.2f}",
                f"{now.mean:.2f} ± {now.std:.2f}",
                f"{d.mean:+.2f} [{d.low:.2f}, {d.high:.2f}]",
                f"{p:.2f}",
            )
        )
        data.append(
            (dataset, method, d.pairs, was.mean, was.std, now.mean, now.std, d.mean, p)
        )
    page.table(["dataset and method", "0.1", "0.2", "difference", "p"], shown)
    page.csv(
        ["dataset", "method", "runs", "mean_01", "std_01", "mean_02", "std_02",
         "difference", "p_corrected"],
        data,
    )  # fmt: skip
    return page.save(folder)


if __name__ == "__main__":
    for path in write(Store(RESULTS), Store(sys.argv[1]), RESULTS):
        print(path)
