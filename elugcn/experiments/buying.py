"""Buying labels in rounds: choose nodes, learn their labels, train again, measure.

A run starts from a few random labels a class. Before each budget the strategy sees the
model trained so far and names the nodes whose labels are bought next; with these the
same method is trained anew, with the same seed. Labels come from the pool: the nodes of
known class that neither validate nor test nor train. Where a split leaves fewer than
ten of them for each label to buy, half of its test nodes, drawn with the run's seed,
are moved to the pool before anything is trained, for every strategy alike.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.core.sparse import normalized_adjacency
from elugcn.data.checks import CheckedGraph
from elugcn.fitting import Fitted, accuracy, fit_graph
from elugcn.suggest import suggest_labels

BUDGETS = (0, 5, 10, 20, 40)
OURS = "suggested"
PREFIX = "labelling-"
_POOL = 10  # nodes to choose from for each label to buy
_DAMPING, _ROUNDS = 0.85, 100  # of PageRank

# The next nodes: fitted model, pool, how many, random numbers.
Strategy = Callable[[Fitted, Tensor, int, np.random.Generator], Tensor]


def buy(strategy: str, fitted: Fitted) -> dict[str, Any]:
    """The accuracy after each budget, as JSON holds it.

    Accuracies are on the test nodes that are left; ``nodes`` are those bought, in
    order; ``seconds`` the time spent on choosing them. A budget beyond the pool is left
    out.
    """
    shop = open_shop(fitted.data, fitted.seed)
    pool, data = shop.pool.clone(), shop.data
    rng = np.random.default_rng([fitted.seed, 1])
    budgets = [b for b in BUDGETS if b <= int(pool.sum())]
    model = fitted
    scores = [accuracy(model.prediction.logits, data.y, data.test_mask)]
    bought: list[int] = []
    spent = 0.0
    for before, budget in pairwise(budgets):
        start = time.perf_counter()
        # On the data of the shop: what was moved to the pool is no test node now.
        seen = _with_data(model, data)
        nodes = STRATEGIES[strategy](seen, pool, budget - before, rng)
        spent += time.perf_counter() - start
        bought += nodes.tolist()
        pool[nodes] = False
        data = copy.copy(data)
        data.train_mask = data.train_mask.clone()
        data.train_mask[nodes] = True
        model = _refit(fitted, data)
        scores.append(accuracy(model.prediction.logits, data.y, data.test_mask))
    return {
        "strategy": strategy,
        "start": int(fitted.data.train_mask.sum()),
        "pool": int(shop.pool.sum()),
        "test_nodes": int((data.test_mask & (data.y >= 0)).sum()),
        "budgets": budgets,
        "accuracy": scores,
        "nodes": bought,
        "seconds": spent,
    }


@dataclass(frozen=True)
class Shop:
    """Where labels are bought.

    Attributes:
        data: the graph, without the test nodes that went to the pool.
        pool: mask of the nodes whose labels can be had.
    """

    data: Data
    pool: Tensor


def open_shop(data: Data, seed: int) -> Shop:
    """The pool of a graph, made from half of its test nodes if it must be."""
    pool = (data.y >= 0) & ~(data.train_mask | data.val_mask | data.test_mask)
    if int(pool.sum()) >= _POOL * BUDGETS[-1]:
        return Shop(data, pool)
    data = copy.copy(data)
    test = data.test_mask.nonzero().squeeze(1).numpy()
    order = np.random.default_rng([seed, 0]).permutation(test)
    moved = torch.from_numpy(order[: len(order) // 2])
    data.test_mask = data.test_mask.clone()
    data.test_mask[moved] = False
    pool[moved] = data.y[moved] >= 0
    return Shop(data, pool)


def pagerank(data: Data) -> Tensor:
    """PageRank with damping 0.85, O(100·nnz); nodes without out-edges jump anywhere."""
    n = int(data.num_nodes)
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
    terms: Tensor = torch.special.entr(fitted.prediction.proba)
    return terms.sum(dim=1)


def degree(data: Data) -> Tensor:
    """Neighbours of each node, (n,)."""
    return torch.bincount(data.edge_index[1], minlength=int(data.num_nodes)).float()


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
    """Of equal scores the first node."""
    nodes = pool.nonzero().squeeze(1)
    order = torch.argsort(score[nodes], descending=True, stable=True)
    return nodes[order[:count]]


STRATEGIES: dict[str, Strategy] = {
    OURS: _suggested,
    "random": _random,
    "entropy": lambda f, pool, k, rng: _largest(entropy(f), pool, k),
    "degree": lambda f, pool, k, rng: _largest(degree(f.data), pool, k),
    "pagerank": lambda f, pool, k, rng: _largest(pagerank(f.data), pool, k),
}

# What a job may name to be measured.
MEASURES: dict[str, Callable[[Fitted], dict[str, Any]]] = {
    PREFIX + name: partial(buy, name) for name in STRATEGIES
}


def _with_data(fitted: Fitted, data: Data) -> Fitted:
    seen = copy.copy(fitted)
    seen.data = data
    return seen


def _refit(fitted: Fitted, data: Data) -> Fitted:
    return fit_graph(
        CheckedGraph(data, ()),
        fitted.method,
        fitted.config,
        seed=fitted.seed,
        device=fitted.device,
        n_threads=fitted.threads,
    )
