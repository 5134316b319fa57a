"""Choosing the next labels in rounds: name nodes, learn their labels, train again.

A run starts from a few random labels per class. Before each budget the strategy sees
the model trained so far and names the nodes whose labels are added next; with these the
same method is trained again, with the same seed. Labels come from the pool: nodes of
known class outside training, validation and test. Where a split leaves fewer than ten
of them for each label to add, half of its test nodes, drawn with the run's seed, are
moved to the pool before anything is trained, for every strategy alike.

A job names a strategy of this module as its measure.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import Fitted, fit
from elugcn.api.fitting import accuracy
from elugcn.data.validation import CheckedGraph
from elugcn.engine import normalized_adjacency
from elugcn.insight import suggest_labels

BUDGETS = (0, 5, 10, 20, 40)
OURS = "suggested"
_POOL = 10  # nodes to choose from for each label
_DAMPING, _ROUNDS = 0.85, 100  # of PageRank

# The next nodes: fitted model, pool, how many, random numbers.
Strategy = Callable[[Fitted, Tensor, int, np.random.Generator], Tensor]


def learn(strategy: str, fitted: Fitted) -> dict[str, Any]:
    """The accuracy after each budget, as JSON holds it.

    Accuracies are on the remaining test nodes; ``nodes`` are those added, in order;
    ``seconds`` is the time spent on choosing them. Budgets beyond the pool are left
    out.
    """
    data, pool = open_pool(fitted.data, fitted.seed)
    out: dict[str, Any] = {
        "strategy": strategy,
        "start": int(data.train_mask.sum()),
        "pool": int(pool.sum()),
        "test_nodes": int((data.test_mask & (data.y >= 0)).sum()),
        "budgets": [b for b in BUDGETS if b <= int(pool.sum())],
    }
    rng = np.random.default_rng([fitted.seed, 1])
    model = fitted
    scores = [_test_accuracy(model, data)]
    added: list[int] = []
    spent = 0.0
    for before, budget in pairwise(out["budgets"]):
        start = time.perf_counter()
        # With the data of the pool: what was moved there is not a test node now.
        seen = copy.copy(model)
        seen.data = data
        nodes = STRATEGIES[strategy](seen, pool, budget - before, rng)
        spent += time.perf_counter() - start
        added += nodes.tolist()
        pool[nodes] = False
        data = copy.copy(data)
        data.train_mask = data.train_mask.clone()
        data.train_mask[nodes] = True
        model = fit(
            CheckedGraph(data, ()),
            fitted.method,
            fitted.config,
            seed=fitted.seed,
            device=fitted.device,
            n_threads=fitted.threads,
        )
        scores.append(_test_accuracy(model, data))
    return out | {"accuracy": scores, "nodes": added, "seconds": spent}


def open_pool(data: Data, seed: int) -> tuple[Data, Tensor]:
    """The graph and the mask of nodes whose labels can be had.

    The pool gets half of the test nodes if it would be too small.
    """
    pool = (data.y >= 0) & ~(data.train_mask | data.val_mask | data.test_mask)
    if int(pool.sum()) >= _POOL * BUDGETS[-1]:
        return data, pool
    data = copy.copy(data)
    test = data.test_mask.nonzero().squeeze(1).numpy()
    order = np.random.default_rng([seed, 0]).permutation(test)
    moved = torch.from_numpy(order[: len(order) // 2])
    data.test_mask = data.test_mask.clone()
    data.test_mask[moved] = False
    pool[moved] = data.y[moved] >= 0
    return data, pool


def pagerank(data: Data) -> Tensor:
    """PageRank with damping 0.85, O(100·nnz); nodes without out-edges jump anywhere."""
    n = int(data.num_nodes or 0)
    walk = normalized_adjacency(data.edge_index.flip(0), n, None, False, "row")
    out = torch.bincount(data.edge_index[0], minlength=n)
    rank = torch.full((n, 1), 1.0 / n)
    back = walk.T
    for _ in range(_ROUNDS):
        stuck = rank[out == 0].sum()
        rank = (1 - _DAMPING) / n + _DAMPING * (back @ rank + stuck / n)
    return rank.squeeze(1)


def entropy(fitted: Fitted) -> Tensor:
    """Entropy of the prediction at each node, (n,)."""
    terms: Tensor = torch.special.entr(fitted.proba)
    return terms.sum(dim=1)


def degree(data: Data) -> Tensor:
    """Neighbours of each node, (n,)."""
    return torch.bincount(
        data.edge_index[1], minlength=int(data.num_nodes or 0)
    ).float()


def _suggested(
    fitted: Fitted, pool: Tensor, count: int, rng: np.random.Generator
) -> Tensor:
    chosen = suggest_labels(fitted, count, pool, seed=fitted.seed)
    return torch.tensor([s.index for s in chosen])


def _random(
    fitted: Fitted, pool: Tensor, count: int, rng: np.random.Generator
) -> Tensor:
    nodes = pool.nonzero().squeeze(1).numpy()
    return torch.from_numpy(rng.choice(nodes, count, replace=False))


def _largest(score: Tensor, pool: Tensor, count: int) -> Tensor:
    """The nodes with the highest scores; of equal scores the first."""
    nodes = pool.nonzero().squeeze(1)
    order = torch.argsort(score[nodes], descending=True, stable=True)
    return nodes[order[:count]]


def _test_accuracy(fitted: Fitted, data: Data) -> float | None:
    return accuracy(fitted.result.logits.argmax(dim=1), data.y, data.test_mask)


STRATEGIES: dict[str, Strategy] = {
    OURS: _suggested,
    "random": _random,
    "entropy": lambda f, pool, k, rng: _largest(entropy(f), pool, k),
    "degree": lambda f, pool, k, rng: _largest(degree(f.data), pool, k),
    "pagerank": lambda f, pool, k, rng: _largest(pagerank(f.data), pool, k),
}
# What jobs name as their measure: ``learn_random`` and so on.
learn_suggested = partial(learn, OURS)
learn_random = partial(learn, "random")
learn_entropy = partial(learn, "entropy")
learn_degree = partial(learn, "degree")
learn_pagerank = partial(learn, "pagerank")
