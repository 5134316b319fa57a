"""The comparison with version 0.1: correction of p-values, and what is compared."""

import pytest
from elugcn_reproduction.versions import accuracies, holm

from elugcn.evaluation import Store


def test_holm_by_hand() -> None:
    # Sorted: .01·4, .02·3, .03·2, .5·1; a later value is never below an earlier one.
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_runs_with_the_same_options_are_compared(tmp_path: object) -> None:
    store = Store(str(tmp_path))
    run = {"status": "done", "method": "gcn", "dataset": "cora", "measure": None}
    for key, options, seed in (("a", {}, 0), ("b", {}, 1), ("c", {"lr": 0.1}, 0)):
        given = {"key": key, "options": options, "split": 0, "seed": seed}
        store.add(run | given | {"labels_per_class": None, "test_accuracy": 0.5})
    store.add(
        run
        | {"key": "d", "options": {}, "split": 0, "seed": 2, "labels_per_class": 3}
        | {"test_accuracy": 0.1}
    )
    found = accuracies(store)
    assert found["cora", "gcn", "{}"] == {(0, 0): 0.5, (0, 1): 0.5}
    assert found["cora", "gcn", '{"lr": 0.1}'] == {(0, 0): 0.5}
