"""The numbers in the README are those of results/."""

import csv
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    place = ROOT / "benchmarks" / "readme_table.py"
    spec = importlib.util.spec_from_file_location("readme_table", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_that_of_the_results(script: ModuleType) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert script.filled(readme, ROOT / "results") == readme


def test_the_best_is_bold_and_the_paper_beside_it(
    script: ModuleType, tmp_path: Path
) -> None:
    head = "method,dataset,mean,std,runs,paper_mean,paper_std,seconds,peak_rss_mb\n"
    (tmp_path / "table1.csv").write_text(
        head
        + "elu-gcn,cora,84.55,0.41,10,84.29,0.39,9,400\n"
        + "gcn,cora,83.12,0.52,10,81.61,0.42,2,380\n"
        + "gcn,photo,91.5,1,5,90.44,1.23,2,380\n"
    )
    lines = script.table(script.read(tmp_path)).splitlines()
    assert lines[0].endswith(" 10 seeds or splits (on photo at least 5):")
    assert "| cora | **84.5 ± 0.4** | 83.1 ± 0.5 | 84.29 |" in lines
    assert "| photo | – | **91.5 ± 1.0** | 90.81 |" in lines


def test_few_labels(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "fewlabels.csv").write_text(
        "method,dataset,mean,labels_per_class\n"
        "elu-gcn,cora,62.77,1\ngcn,cora,45.31,1\nlpa,cora,46.1,1\n"
        "elu-gcn,cora,80,20\ngcn,cora,81,20\n"
        "elu-gcn,citeseer,50,1\n"
    )
    lines = script.few_table(script.read(tmp_path, "fewlabels.csv")).splitlines()
    assert lines == [
        "| labels a class | 1 | 20 |",
        "|---|---|---|",
        "| cora | **62.8** (45.3) | 80.0 (81.0) |",
    ]  # nothing to compare on citeseer yet
    (tmp_path / "table1.csv").write_text(
        "method,dataset,mean,std,runs\ngcn,cora,83.12,0.52,10\n"
    )
    bench_files(tmp_path)
    marks = (
        f"{script.START}{script.END} {script.FEW_START}old{script.FEW_END}"
        f"{script.FAST_START}older{script.FAST_END} after"
    )
    text = script.filled(marks, tmp_path)
    assert "old" not in text
    assert "(45.3)" in text
    assert text.endswith(f"2.8 GB.\n{script.FAST_END} after")
    with pytest.raises(SystemExit, match="no <!-- few labels"):
        script.filled(f"{script.START}{script.END}", tmp_path)


def bench_files(folder: Path) -> None:
    (folder / "bench").mkdir()
    head = "suite,dataset,n,metric,value,unit\n"
    (folder / "bench" / "step.csv").write_text(
        head
        + "step,cora,2708,ratio_gcn,0.104,ratio\nstep,cora,2708,ratio_gat,0.09,ratio\n"
        + "step,photo,7487,ratio_gcn,0.2,ratio\nstep,photo,7487,ratio_gat,0.07,ratio\n"
    )
    (folder / "bench" / "scale.csv").write_text(
        head
        + "scale,sbm,10000,total_s,1,s\nscale,sbm,1000000,total_s,240.2,s\n"
        + "scale,sbm,1000000,epochs,25,epochs\n"
        + "scale,sbm,1000000,peak_rss_mb,2842.1,MB\n"
    )


def test_speed_is_the_range_over_datasets_and_the_largest_graph(
    script: ModuleType, tmp_path: Path
) -> None:
    bench_files(tmp_path)
    text = " ".join(script.speed(tmp_path / "bench").split())
    assert "takes 0.10 to 0.20 of the time" in text
    assert "0.07 to 0.09 of its GAT's (2 datasets, one thread)" in text
    assert "1,000,000 nodes of degree 10 takes 240 seconds of one core" in text


def test_differences_to_grand_are_those_of_the_page() -> None:
    page = (ROOT / "results" / "draws.md").read_text(encoding="utf-8")
    # The first row of ELU-GCN has accuracies, the second the differences.
    _, row, *_ = [line for line in page.splitlines() if line.startswith("| elu-gcn")]
    found = re.findall(r"([+-]\d+\.\d+) (\[[^]]*\])", row)
    assert len(found) == 3
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for mean, interval in found:
        for number in (mean.lstrip("+"), interval):
            assert number.replace("-", "−") in readme


def test_which_leads_over_the_gcn_are_clear() -> None:
    """Those whose paired test holds among so many (Holm's correction, 5 %)."""
    found, means = {}, {}
    for name in ("table1.csv", "social.csv"):
        page = (ROOT / "results" / name).with_suffix(".md").read_text(encoding="utf-8")
        lines = page[page.index("Difference to gcn") :].splitlines()
        head, row = (
            next(line for line in lines if line.startswith(f"| {start} |"))
            for start in ("method", "elu-gcn")
        )
        cells = zip(head.split("|")[2:], row.split("|")[2:], strict=True)
        for dataset, cell in cells:
            parts = re.search(r"([+-]\d+\.\d+) \[.*p [=<] (\d\.\d+)", cell)
            if parts:
                name = dataset.strip().capitalize()
                means[name], found[name] = float(parts[1]), float(parts[2])
    clear: set[str] = set()
    behind: set[str] = set()
    for i, name in enumerate(sorted(found, key=lambda name: found[name])):
        if found[name] * (len(found) - i) > 0.05:
            break
        (clear if means[name] > 0 else behind).add(name)
    unsure = [n for n, p in found.items() if p < 0.05 and n not in clear | behind]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    said = re.search(r"clearly ahead on (\w+) of the (\w+) \(([^)]*)\)", text)
    assert said
    assert set(said[3].split(", ")) == clear
    numbers = (
        *("four", "five", "six", "seven", "eight"),
        *("nine", "ten", "eleven", "twelve", "thirteen"),
    )
    assert numbers.index(said[1]) + 4 == len(clear)
    assert numbers.index(said[2]) + 4 == len(found)
    (worse,) = behind
    assert f"clearly behind on one ({worse}, by {-means[worse]:.2f} points" in text
    assert unsure == ["Tulane29"]
    tulane = f"{means['Tulane29']:.2f} points, which p = {found['Tulane29']:.3f}"
    assert f"On Tulane29 it leads by {tulane} in one of thirteen tests" in text


def test_who_is_best_where_elu_gcn_is_not(script: ModuleType) -> None:
    best: dict[str, dict[str, str]] = {}
    for row in script.read(ROOT / "results"):
        leader = best.setdefault(row["dataset"], row)
        if float(row["mean"]) > float(leader["mean"]):
            best[row["dataset"]] = row
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    (said,) = re.findall(r"not a significant lead\. On (.*?), all tuned", text)
    groups = re.findall(r"(.*?)(?: that is)? (GRAND|the GCN|CoGSL)(?:, on |.*)", said)
    found = {
        re.sub(r"^filtered (.*)", r"\1_filtered", name).lower(): method.split()[-1]
        for names, method in groups
        for name in re.split(", | and ", names)
    }
    leads = {d: row["method"] for d, row in best.items() if row["method"] != "elu-gcn"}
    assert {d: method.lower() for d, method in found.items()} == leads
    cogsl = f"CoGSL ({float(best['computers']['mean']):.1f})"
    assert said.endswith(cogsl)


def test_where_the_papers_number_is_not_reached(script: ModuleType) -> None:
    below = {
        row["dataset"].capitalize(): f"{float(row['mean']):.1f} of "
        f"{float(row['paper_mean']):.1f}"
        for row in script.read(ROOT / "results")
        if row["method"] == "elu-gcn"
        and row["paper_mean"]
        and float(row["mean"]) < float(row["paper_mean"])
    }
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    (said,) = re.findall(
        r"The paper's number is reached on .*? but two: (.*?)\. On", text
    )
    found = re.findall(r"([A-Z]\w+), (\d+\.\d of \d+\.\d)", said)
    assert dict(found) == below
    assert len(found) == 2


@pytest.mark.parametrize("place", ["README.md", "docs/methods.md"])
def test_how_much_longer_a_fit_takes_than_a_gcn(script: ModuleType, place: str) -> None:
    seconds = {
        (row["method"], row["dataset"]): float(row["seconds"])
        for row in script.read(ROOT / "results", "runtime.csv")
    }
    times = [
        value / seconds["gcn", dataset]
        for (method, dataset), value in seconds.items()
        if method == "elu-gcn"
    ]
    text = " ".join((ROOT / place).read_text(encoding="utf-8").split())
    assert f"{min(times):.0f} to {max(times):.0f} times" in text


def test_gains_on_nelu_nodes(script: ModuleType) -> None:
    found = {
        (row["nodes"], row["dataset"].capitalize()): row
        for row in script.read(ROOT / "results", "nelu.csv")
    }
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    (said,) = re.findall(r"from another seed: (.*?) nothing; on ELU nodes", text)
    gains = {
        name: (gain, second)
        for name, gain, second in re.findall(r"(\w+) (\d+\.\d) \((\d+\.\d)\)", said)
    }
    nothing = re.findall(r"[A-Z]\w+", said.rpartition("),")[2])
    for (nodes, name), row in found.items():
        if nodes == "nelu" and name in nothing:
            assert float(row["gain_low"]) < 0 < float(row["gain_high"])
            assert abs(float(row["gain"])) < 0.5
        elif nodes == "nelu":
            pair = f"{float(row['gain']):.1f}", f"{float(row['second_gcn_gain']):.1f}"
            assert gains.pop(name) == pair
    assert not gains
    elu = [float(row["gain"]) for (nodes, _), row in found.items() if nodes == "elu"]
    low, high = (
        f"{round(value, 1) + 0.0:.1f}".replace("-", "−")
        for value in (min(elu), max(elu))
    )
    assert f"on ELU nodes between {low} and {high}." in text
    far = [float(found["unreachable", d]["gain"]) for d in ("Cora", "Citeseer")]
    assert f"too, {far[0]:.1f} and {far[1]:.1f} points on Cora and Citeseer" in text


def test_the_forest_of_caltech36_is_the_one_printed() -> None:
    printed = (ROOT / "benchmarks" / "caltech36.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"columns and friends \| (\d+\.\d)", printed)
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert re.search(rf"random forest [^.]* has {re.escape(found)}", text)


def test_the_copies_of_wikipedia_pages_are_those_printed(script: ModuleType) -> None:
    printed = (ROOT / "benchmarks" / "copies.md").read_text(encoding="utf-8")
    found = dict(re.findall(r"\| (\w+) \| (\S+ \| \S+) ±", printed))
    copies, right = zip(
        *(found[name].split(" | ") for name in ("chameleon", "squirrel")), strict=True
    )
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    shares = [f"{float(share):.0f}" for share in copies]
    assert f"{shares[0]} and {shares[1]} % of their test pages" in text
    assert f"right for {right[0]} and {right[1]} % of them" in text
    gcn = {
        row["dataset"]: f"{float(row['mean']):.1f}"
        for row in script.read(ROOT / "results", "table1.csv")
        if row["method"] == "gcn"
    }
    beside = f"the GCN is right for {gcn['chameleon']} and {gcn['squirrel']}"
    assert f"where {beside} (" in text


def test_few_labels_beside_others_are_those_printed(script: ModuleType) -> None:
    printed = (ROOT / "benchmarks" / "few_labels.md").read_text(encoding="utf-8")
    (row,) = [line for line in printed.splitlines() if line.startswith("| cora")]
    ours, gcn, spreading = re.findall(r"\d+\.\d(?= ±)", row)
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    spread = f"scikit-learn's LabelSpreading {spreading}"
    assert f"it has {ours} there, the GCN {gcn} and {spread}" in text
    three = {
        row["method"]: float(row["mean"])
        for row in script.read(ROOT / "results", "fewlabels.csv")
        if (row["dataset"], row["labels_per_class"]) == ("cora", "3")
    }
    paper, plain = three["elu-gcn-paper"], three["gcn"]
    assert f"three a class on Cora it has {paper:.1f}, the GCN {plain:.1f}" in text


def test_leads_with_few_labels_over_the_best_other() -> None:
    page = (ROOT / "results" / "fewlabels.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (\w+) \| (\d+) \| (\S+) \| \S+ \\\[(-?\d+\.\d+), ", page, re.MULTILINE
    )
    assert len(rows) == 24
    appnp = sum(best == "appnp" for _, _, best, _ in rows)
    clear = [(dataset, int(n)) for dataset, n, _, low in rows if float(low) > 0]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"APPNP in {appnp} of the 24 cells" in text
    assert f"elu-gcn is clearly ahead in {len(clear)}: in all of Cora" in text
    assert {n for dataset, n in clear if dataset == "cora"} == {1, 2, 3, 5, 10, 20}
    rest = [pair for pair in clear if pair[0] != "cora"]
    assert rest == [("citeseer", 10), ("pubmed", 1), ("pubmed", 5)]
    assert "on Citeseer with 10 labels, on Pubmed with 1 and 5" in text


def test_how_much_of_the_second_view_is_best() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    with (ROOT / "results/sensitivity.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["sweep"] == "eta"]
    shown = {}
    for dataset in ("cora", "citeseer"):
        mean = {
            float(r["eta"]): float(r["mean"]) for r in rows if r["dataset"] == dataset
        }
        best = max(mean, key=lambda eta: mean[eta])
        shown[dataset] = best, mean[best], mean[1.0]
    (a, b, c), (d, e, f) = shown["cora"], shown["citeseer"]
    assert (
        f"a share η of {a:g} of that view on Cora ({b:.1f}, with the view alone "
        f"{c:.1f}) and of {d:g} on Citeseer ({e:.1f}, {f:.1f})"
    ) in readme
