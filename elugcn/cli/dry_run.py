"""``elugcn train --dry-run``: what would be trained, and the memory it would take."""

from __future__ import annotations

from typing import Any

import psutil
from rich.markup import escape
from rich.table import Table

from elugcn.cli.common import LoadedGraph, console
from elugcn.core.sparsify import check_mode
from elugcn.memory import FITTED, PARTS, estimate_memory, trained_members
from elugcn.methods.base import BaseConfig
from elugcn.methods.elu_config import ELUGCNConfig


def plan(loaded: LoadedGraph, method: str, config: BaseConfig) -> dict[str, Any]:
    """What a fit would do, without doing it."""
    data = loaded.graph.data
    members: list[str] = []
    left_out: list[str] = []
    if isinstance(config, ELUGCNConfig):
        chosen, left_out = trained_members(data, config)
        members = [name for name, _ in chosen]
        for _, member in chosen:
            check_mode(int(data.num_nodes), member.graph_mode, member.topk, member.keep)
    return {
        "dataset": loaded.name,
        "method": method,
        "n_nodes": int(data.num_nodes),
        "n_edges": data.edge_index.size(1) // (1 if data.directed else 2),
        "n_features": data.x.size(1),
        "members": members,
        "left_out": left_out,
        "memory_mb": estimate_memory(data, config).megabytes(),
        "available_mb": round(psutil.virtual_memory().available / 2**20, 1),
    }


def show(result: dict[str, Any]) -> None:
    """For people."""
    screen = console()
    memory = result["memory_mb"]
    name = escape(result["dataset"])
    screen.print(f"[bold]{result['method']}[/bold] on {name}: nothing is trained")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(style="dim")
    table.add_column()
    table.add_row(
        "graph",
        f"{result['n_nodes']:,} nodes, {result['n_edges']:,} edges, "
        f"{result['n_features']:,} features",
    )
    if result["members"]:
        table.add_row("members", escape(", ".join(result["members"])))
    if result["left_out"]:
        names = escape(", ".join(result["left_out"]))
        table.add_row("left out", f"{names}: too slow on a graph of this size")
    table.add_row(
        "peak memory",
        f"about {memory['total']:,.0f} MB; {result['available_mb']:,.0f} MB are free",
    )
    if result["method"] not in FITTED:
        table.add_row("", f"rough: the estimate was fitted to {', '.join(FITTED)}")
    spent = ", ".join(f"{part} {memory[part]:,.0f}" for part in PARTS)
    table.add_row("of which", spent)
    screen.print(table)
    if memory["total"] > result["available_mb"]:
        screen.print("  this will not fit: try fewer hidden_channels", style="bold")
