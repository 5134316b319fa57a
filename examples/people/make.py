"""Draws ``nodes.csv``, ``edges.csv`` and ``truth.csv``: 400 people and their friends.

Cyclists are younger than drivers on average, and friends tend to travel alike. Most
friends live in the same city. Height says nothing. 60 people told how they travel;
``truth.csv`` has the answer for everyone, to check predictions with.

    python examples/people/make.py
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

PEOPLE, FRIENDSHIPS, LABELLED = 400, 900, 60
CITIES = np.array(["Lyon", "Porto", "Ghent", "Turin"])
FOLDER = Path(__file__).resolve().parent


def main() -> None:
    draw = np.random.default_rng(5)
    drives = draw.random(PEOPLE) < 0.5
    age = np.clip(np.where(drives, 47, 35) + draw.normal(0, 11, PEOPLE), 18, 80)
    city = draw.integers(len(CITIES), size=PEOPLE)
    height = draw.normal(171, 9, PEOPLE)
    labelled = draw.permutation(PEOPLE) < LABELLED

    friends: set[tuple[int, int]] = set()
    while len(friends) < FRIENDSHIPS:
        one, other = sorted(int(i) for i in draw.integers(PEOPLE, size=2))
        chance = 1.0 if drives[one] == drives[other] else 0.25
        chance *= 1.0 if city[one] == city[other] else 0.15
        if one != other and draw.random() < chance:
            friends.add((one, other))

    ids = [f"p{i:03d}" for i in range(PEOPLE)]
    travel = np.where(drives, "driver", "cyclist")
    known = np.where(labelled, travel, "")
    columns = (ids, age.round().astype(int), CITIES[city], height.round(1), known)
    header = ["id", "age", "city", "height", "label"]
    write("nodes.csv", header, zip(*columns, strict=True))
    write("truth.csv", ["id", "label"], zip(ids, travel, strict=True))
    pairs = sorted(friends)
    write("edges.csv", ["source", "target"], ((ids[a], ids[b]) for a, b in pairs))


def write(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with (FOLDER / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
