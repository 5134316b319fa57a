"""``sbm``: a contextual stochastic block model, generated to order.

Classes of equal size, a chosen share of edges inside them (Deshpande et al. 2018), and
features that are the mean of the class plus noise. It serves to study how a method
depends on homophily, and to get graphs of any size: a million nodes take seconds.

Pairs of nodes are drawn directly, so the cost is O(n·mean_degree + n·n_features), not
O(n²). Pairs drawn twice are drawn again, so the number of edges and the share inside
classes are exact, up to rounding.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch_geometric.data import Data

from elugcn.data.datasets.readers import dataset
from elugcn.data.splits import generator, per_class_split
from elugcn.errors import InputError, first_problem

Ints = NDArray[np.int64]

# At most this share of all pairs of a kind may be edges. Above it, drawing pairs and
# dropping repeats would be slow.
_MAX_DENSITY = 0.5


class SBMOptions(BaseModel):
    """The options of ``load_dataset("sbm", ...)``."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False
    )

    n: int = Field(1000, ge=1)  # at least 3 per class
    n_classes: int = Field(5, ge=2)
    mean_degree: float = Field(10.0, gt=0)
    homophily: float = Field(0.8, ge=0, le=1)  # share of the edges inside a class
    n_features: int = Field(64, ge=1)
    # Standard deviation around the mean of the class, which is itself drawn with 1.
    feature_noise: float = Field(1.0, ge=0)
    # Share of each class that trains, and that validates; at least one node each.
    label_rate: float = Field(0.05, gt=0, lt=0.5)

    @classmethod
    def checked(cls, **options: Any) -> "SBMOptions":
        """The options, or an InputError that names the wrong one."""
        plain = {k: getattr(v, "item", lambda v=v: v)() for k, v in options.items()}
        try:
            o = cls(**plain)
        except ValidationError as error:
            raise InputError(f"sbm option {first_problem(error)}") from None
        if o.n < 3 * o.n_classes:
            raise InputError(
                f"sbm option n={o.n}: expected at least {3 * o.n_classes}, 3 per class"
            )
        sizes = np.bincount(np.arange(o.n) % o.n_classes)
        inside = int((sizes * (sizes - 1)).sum()) // 2
        outside = o.n * (o.n - 1) // 2 - inside
        limits = [
            pairs / share
            for pairs, share in ((inside, o.homophily), (outside, 1 - o.homophily))
            if share
        ]
        highest = 2 * _MAX_DENSITY * min(limits) / o.n
        if o.mean_degree > highest:
            raise InputError(
                f"sbm option mean_degree={o.mean_degree}: expected at most "
                f"{highest:.6g} with these n and homophily"
            )
        return o


def draw_sbm(split: int, **options: Any) -> Data:
    """Draw a graph, its features and its split with seed ``split``."""
    o = SBMOptions.checked(**options)
    rng = generator(split, "graph")
    # Equal sizes; the members of a class are scattered over the node numbers.
    order = rng.permutation(o.n)
    y = np.empty(o.n, dtype=np.int64)
    y[order] = np.arange(o.n) % o.n_classes

    n_edges = round(o.n * o.mean_degree / 2)
    n_inside = round(o.homophily * n_edges)
    inside = _distinct_pairs(n_inside, True, o, rng)
    outside = _distinct_pairs(n_edges - n_inside, False, o, rng)
    # The position of a node is (class) + n_classes·(rank within the class).
    low, high = np.divmod(np.concatenate([inside, outside]), o.n)
    source, target = order[low], order[high]

    means = rng.standard_normal((o.n_classes, o.n_features), dtype=np.float32)
    x = rng.standard_normal((o.n, o.n_features), dtype=np.float32)
    x *= np.float32(o.feature_noise)
    x += means[y]

    names = [str(label) for label in range(o.n_classes)]
    size = o.n // o.n_classes
    n_labels = min(max(1, round(o.label_rate * o.n / o.n_classes)), (size - 1) // 2)
    masks = per_class_split(y, n_labels, n_labels, split, names)
    return dataset(x, (source, target), y, masks, names)


def _distinct_pairs(
    count: int, inside: bool, o: SBMOptions, rng: np.random.Generator
) -> Ints:
    """``count`` different pairs inside or outside classes, as low·n + high.

    Each round draws only what is missing: drawing more and cutting the sorted result
    would favour the first nodes.
    """
    keys = np.empty(0, dtype=np.int64)
    while keys.size < count:
        a = rng.integers(o.n, size=count - keys.size)
        rank, label = np.divmod(a, o.n_classes)
        if not inside:
            step = rng.integers(1, o.n_classes, size=a.size)
            label = (label + step) % o.n_classes
        # A node of that class, other than a itself: no self-loops.
        size = (o.n - label - 1) // o.n_classes + 1
        other = rng.integers(size - inside)
        other += inside & (other >= rank)
        b = label + o.n_classes * other
        new = np.minimum(a, b) * o.n + np.maximum(a, b)
        # Sorted. torch is several times faster here than numpy, which hashes.
        keys = torch.unique(torch.from_numpy(np.concatenate([keys, new]))).numpy()
    return keys
