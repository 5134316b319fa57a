"""`sbm`: a contextual stochastic block model, drawn to order.

Classes of equal size, a chosen share of edges inside them (Deshpande et al. 2018), and
features that are the mean of the class plus noise. For studying how a method depends
on homophily, and for graphs of any size: a million nodes take seconds.

Pairs of nodes are drawn directly, so the cost is O(n·mean_degree + n·n_features), not
O(n²). Pairs drawn twice are drawn again, so the number of edges and the share inside
classes are exact, up to rounding.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

from elugcn.data.edges import edge_tensor, sorted_distinct
from elugcn.data.graph import make_data
from elugcn.data.splits import generator, per_class_split
from elugcn.errors import InputError

Ints = npt.NDArray[np.int64]

# Of all pairs of a kind, at most this share may be edges: above it drawing pairs and
# dropping the repeated ones would no longer be quick.
_MAX_DENSITY = 0.5


@dataclass(frozen=True, kw_only=True)
class SBMOptions:
    """The options of `load_dataset("sbm", ...)`.

    Attributes:
        n: number of nodes, at least 3 per class.
        n_classes: at least 2.
        mean_degree: edges per node, above 0.
        homophily: share of the edges that are inside a class, 0 to 1.
        n_features: at least 1.
        feature_noise: standard deviation of the noise around the mean of the class,
            which is itself a draw of standard deviation 1.
        label_rate: share of each class that trains, and that validates; at least one
            node each.
    """

    n: int = 1000
    n_classes: int = 5
    mean_degree: float = 10.0
    homophily: float = 0.8
    n_features: int = 64
    feature_noise: float = 1.0
    label_rate: float = 0.05

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_type(field.name, getattr(self, field.name), field.type is int)
        self._require("n_classes", self.n_classes >= 2, "at least 2")
        least = 3 * self.n_classes
        self._require("n", self.n >= least, f"at least {least}, 3 per class")
        self._require("homophily", 0 <= self.homophily <= 1, "between 0 and 1")
        self._require("n_features", self.n_features >= 1, "at least 1")
        self._require("feature_noise", 0 <= self.feature_noise < np.inf, "0 or more")
        below = "above 0 and below 0.5"
        self._require("label_rate", 0 < self.label_rate < 0.5, below)
        highest = self._highest_degree()
        degrees = f"above 0 and at most {highest:.6g} with these n and homophily"
        self._require("mean_degree", 0 < self.mean_degree <= highest, degrees)

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            value = getattr(self, name)
            raise InputError(f"sbm option {name} must be {expected}, not {value!r}")

    def _highest_degree(self) -> float:
        size, larger = divmod(self.n, self.n_classes)
        inside = (self.n_classes - larger) * size * (size - 1) // 2
        inside += larger * (size + 1) * size // 2
        outside = self.n * (self.n - 1) // 2 - inside
        limits = [np.inf, np.inf]
        if self.homophily > 0:
            limits[0] = inside / self.homophily
        if self.homophily < 1:
            limits[1] = outside / (1 - self.homophily)
        return float(2 * _MAX_DENSITY * min(limits) / self.n)


def load_sbm(split: int, **options: Any) -> Data:
    """Draw a graph, its features and its split.

    Args:
        split: seed of everything that is drawn.
        **options: those of `SBMOptions`.

    Raises:
        InputError: an option is out of its range.
    """
    o = SBMOptions(**options)
    rng = generator(split, "graph")
    # Equal sizes; the members of a class are scattered over the node numbers.
    order = rng.permutation(o.n)
    y = np.empty(o.n, dtype=np.int64)
    y[order] = np.arange(o.n) % o.n_classes

    n_edges = round(o.n * o.mean_degree / 2)
    n_inside = round(o.homophily * n_edges)
    inside = _distinct_pairs(n_inside, o, rng, _pairs_inside)
    outside = _distinct_pairs(n_edges - n_inside, o, rng, _pairs_outside)
    # A node's place, p, is (class) + n_classes·(rank within the class).
    low, high = np.divmod(np.concatenate([inside, outside]), o.n)
    low, high = order[low], order[high]
    keys = np.sort(np.concatenate([low * o.n + high, high * o.n + low]))

    means = rng.standard_normal((o.n_classes, o.n_features), dtype=np.float32)
    x = rng.standard_normal((o.n, o.n_features), dtype=np.float32)
    x *= np.float32(o.feature_noise)
    x += means[y]

    class_names = [str(label) for label in range(o.n_classes)]
    size = o.n // o.n_classes
    n_labels = min(max(1, round(o.label_rate * o.n / o.n_classes)), (size - 1) // 2)
    return make_data(
        x,
        edge_tensor(keys, o.n),
        y,
        masks=per_class_split(y, n_labels, n_labels, split, class_names),
        class_names=class_names,
        directed=False,
    )


def _distinct_pairs(
    count: int,
    o: SBMOptions,
    rng: np.random.Generator,
    draw: Callable[[int, SBMOptions, np.random.Generator], tuple[Ints, Ints]],
) -> Ints:
    """`count` different unordered pairs as low·n + high, drawn until there are enough.

    Each round draws only what is missing: drawing more and cutting the sorted result
    would favour the first nodes.
    """
    keys = np.empty(0, dtype=np.int64)
    while keys.size < count:
        a, b = draw(count - keys.size, o, rng)
        new = np.minimum(a, b) * o.n + np.maximum(a, b)
        keys = sorted_distinct(np.concatenate([keys, new]))
    return keys


def _class_sizes(classes: Ints, o: SBMOptions) -> Ints:
    sizes: Ints = (o.n - classes - 1) // o.n_classes + 1
    return sizes


def _pairs_inside(
    count: int, o: SBMOptions, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """A node, and another of its class."""
    a = rng.integers(o.n, size=count)
    rank, label = np.divmod(a, o.n_classes)
    other = rng.integers(_class_sizes(label, o) - 1)
    other += other >= rank  # skips the node itself: no self-loops
    return a, label + o.n_classes * other


def _pairs_outside(
    count: int, o: SBMOptions, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """A node, and one of another class."""
    a = rng.integers(o.n, size=count)
    label = (a + rng.integers(1, o.n_classes, size=count)) % o.n_classes
    return a, label + o.n_classes * rng.integers(_class_sizes(label, o))


def _check_type(name: str, value: object, whole: bool) -> None:
    kind = Integral if whole else Real
    if isinstance(value, bool) or not isinstance(value, kind):
        expected = "a whole number" if whole else "a number"
        raise InputError(f"sbm option {name} must be {expected}, not {value!r}")
