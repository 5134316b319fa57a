"""PyTorch's Adam without what it does around its kernel.

Its ``step`` looks up, groups and checks the state of every parameter and calls hooks of
a profiler: for a small model that takes longer than the kernel. Between two steps of a
training loop nothing of it changes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Parameters; means, squares and counts of their gradients; options of the kernel.
_Group = tuple[list[Tensor], list[list[Tensor]], dict[str, Any]]


class Adam(torch.optim.Adam):
    """The fused kernel of ``torch.optim.Adam``, the same numbers.

    One kernel for all parameters of a group: many small ones cost more in calls than
    in sums.

    Args:
        groups: As ``torch.optim.Adam`` takes them. They are not to change once
            ``advance`` has been called.
        lr: Learning rate of the groups that have none of their own.
    """

    def __init__(self, groups: list[dict[str, Any]], lr: float) -> None:
        super().__init__(groups, lr=lr, fused=True)
        self._ready: list[_Group] = []

    def forget(self) -> None:
        """The gradients of the last step."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @torch.no_grad()
    def advance(self) -> None:
        """A step."""
        grads = [
            [p.grad for p in parameters if p.grad is not None]
            for parameters, _, _ in self._ready
        ]
        all_there = [len(g) for g in grads] == [len(p) for p, _, _ in self._ready]
        if not self._ready or not all_there:
            self.step()  # makes the state, and knows what to leave out
            self._ready = self._prepared()
            return
        for group, (parameters, lists, options) in zip(grads, self._ready, strict=True):
            means, squares, steps = lists
            torch._foreach_add_(steps, 1)
            torch._fused_adam_(parameters, group, means, squares, [], steps, **options)

    def _prepared(self) -> list[_Group]:
        """Parameters, state and options of every group; none if some have no state.

        A parameter has none as long as it has had no gradient.
        """
        out = []
        for group in self.param_groups:
            states = [self.state[p] for p in group["params"]]
            if not all(states):
                return []
            names = ("exp_avg", "exp_avg_sq", "step")
            options = {
                "lr": group["lr"],
                "beta1": group["betas"][0],
                "beta2": group["betas"][1],
                "weight_decay": group["weight_decay"],
                "eps": group["eps"],
                "amsgrad": False,
                "maximize": False,
            }
            lists = [[s[name] for s in states] for name in names]
            out.append((group["params"], lists, options))
        return out
