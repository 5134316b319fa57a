"""Put the main tables of ``results/`` into the README: nobody types a number.

Run it after `elugcn reproduce`: `python benchmarks/readme_table.py`.
"""

from __future__ import annotations

import csv
import textwrap
from pathlib import Path

from elugcn.evaluation.paper import published

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- results -->", "<!-- end of results -->"
FEW_START, FEW_END = "<!-- few labels -->", "<!-- end of few labels -->"
FAST_START, FAST_END = "<!-- speed -->", "<!-- end of speed -->"
FILES = ("table1.csv", "social.csv")
FEW = "fewlabels.csv"
# A README is narrow: the page has every method.
SHOWN = ("elu-gcn", "elu-gcn-paper", "gcn", "grand")


def read(folder: Path, *names: str) -> list[dict[str, str]]:
    """The rows of some tables, the two main ones else, as far as there are any."""
    rows: list[dict[str, str]] = []
    for name in names or FILES:
        path = folder / name
        if path.is_file():
            rows += csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return rows


def table(rows: list[dict[str, str]]) -> str:
    """Methods as columns; in bold what no method of the pages beats."""
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    ran = {row["method"] for row in rows}
    methods = [m for m in SHOWN if m in ran]
    cells = {(row["method"], row["dataset"]): row for row in rows}
    lines = [
        "| | " + " | ".join([*methods, "paper's ELU-GCN"]) + " |",
        "|---" * (len(methods) + 2) + "|",
    ]
    for dataset in datasets:
        here = {m: cells[m, dataset] for m in methods if (m, dataset) in cells}
        means = {m: float(row["mean"]) for m, row in here.items()}
        highest = max(float(r["mean"]) for r in rows if r["dataset"] == dataset)
        texts = []
        for method in methods:
            if method not in here:
                texts.append("–")
                continue
            spread = float(here[method]["std"] or 0)
            text = f"{means[method]:.1f} ± {spread:.1f}"
            best = means[method] == highest
            texts.append(f"**{text}**" if best else text)
        found = published("elu-gcn", dataset)
        paper = "–" if found is None else f"{found.mean:.2f}"
        lines.append(f"| {dataset} | " + " | ".join([*texts, paper]) + " |")
    return "\n".join([_runs(rows, methods), "", *lines])


def _runs(rows: list[dict[str, str]], methods: list[str]) -> str:
    """What the numbers are, and over how many runs."""
    runs: dict[str, int] = {}
    for row in rows:
        if row["method"] in methods:
            least = runs.get(row["dataset"], int(row["runs"]))
            runs[row["dataset"]] = min(least, int(row["runs"]))
    most = max(runs.values())
    fewer = ", ".join(f"on {d} at least {n}" for d, n in runs.items() if n < most)
    span = f"{most} seeds or splits" + (f" ({fewer})" if fewer else "")
    return f"Test accuracy in percent, mean ± std over {span}:"


def few_table(rows: list[dict[str, str]]) -> str:
    """ELU-GCN (GCN) by dataset and labels a class; bold where no method is better."""
    cells = {(r["method"], r["dataset"], int(r["labels_per_class"])): r for r in rows}
    datasets = list(dict.fromkeys(dataset for _, dataset, _ in cells))
    numbers = sorted({number for _, _, number in cells})
    lines = [
        "| labels a class | " + " | ".join(map(str, numbers)) + " |",
        "|---" * (len(numbers) + 1) + "|",
    ]
    for dataset in datasets:
        texts = []
        for number in numbers:
            here = {
                m: r for (m, d, k), r in cells.items() if (d, k) == (dataset, number)
            }
            if not {"elu-gcn", "gcn"} <= here.keys():
                texts.append("–")
                continue
            means = {m: float(row["mean"]) for m, row in here.items()}
            own = f"{means['elu-gcn']:.1f}"
            best = means["elu-gcn"] == max(means.values())
            texts.append(f"{f'**{own}**' if best else own} ({means['gcn']:.1f})")
        if set(texts) != {"–"}:
            lines.append(f"| {dataset} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def speed(folder: Path) -> str:
    """What `elugcn bench step` and `scale` found, in a sentence each."""
    step, scale = read(folder, "step.csv"), read(folder, "scale.csv")

    def span(metric: str) -> str:
        found = [float(row["value"]) for row in step if row["metric"] == metric]
        return f"{min(found):.2f} to {max(found):.2f}"

    datasets = len({row["dataset"] for row in step})
    largest = max(int(row["n"]) for row in scale)
    of = {r["metric"]: float(r["value"]) for r in scale if int(r["n"]) == largest}
    text = (
        "An epoch of ELU-GCN, both views, contrast and validation, takes "
        f"{span('ratio_gcn')} of the time of an epoch of PyG's GCN (dense "
        "features, as in PyG's example) and "
        f"{span('ratio_gat')} of its GAT's ({datasets} datasets, one thread). A drawn "
        f"graph of {largest:,} nodes of degree 10 takes {of['total_s']:.0f} seconds of "
        f"one core for {of['epochs']:.0f} epochs of every stage, and "
        f"{of['peak_rss_mb'] / 1000:.1f} GB."
    )
    return textwrap.fill(text, 95)


def between(readme: str, start: str, end: str, text: str) -> str:
    """The README with a text between two of its marks."""
    before, found, rest = readme.partition(start)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"README.md has no {start} … {end}")
    return f"{before}{start}\n{text}\n{end}{after}"


def filled(readme: str, results: Path) -> str:
    """The README with the tables of a folder of results between its marks."""
    readme = between(readme, START, END, table(read(results)))
    readme = between(readme, FEW_START, FEW_END, few_table(read(results, FEW)))
    return between(readme, FAST_START, FAST_END, speed(results / "bench"))


def main() -> None:
    path = ROOT / "README.md"
    text = filled(path.read_text(encoding="utf-8"), ROOT / "results")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
