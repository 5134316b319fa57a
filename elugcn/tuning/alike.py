"""Variants of elu-gcn that begin at the tuned values of another method.

``{name: near, like: grand, pseudo_weight: 0.3}`` is a member with the network and the
training of ``grand`` as tuned for the dataset, and what else the line says. Options of
a network that the other method does not have (residuals, jumping knowledge) are at
their defaults there, whatever the method around the variant says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from elugcn.config import as_plain, make_config
from elugcn.errors import InputError
from elugcn.methods.elu_config import VARIANT_KEYS
from elugcn.methods.network_config import GCNConfig
from elugcn.methods.registry import METHODS

LIKE = "like"
Presets = Callable[[str], Mapping[str, Any]]


def named(values: Mapping[str, Any]) -> list[str]:
    """The methods whose tuned values the variants of a space start from."""
    likes = [variant[LIKE] for variant in _variants(values) if LIKE in variant]
    for like in likes:
        if like not in METHODS:
            raise InputError(f"like must be a method; got {like!r}")
    return list(dict.fromkeys(likes))


def resolved(
    values: Mapping[str, Any], around: Mapping[str, Any], tuned: Presets
) -> dict[str, Any]:
    """The values of a space with every variant's ``like`` written out.

    Args:
        values: Per key what is searched; ``variants`` may have ``options``.
        around: All options of the method that has the variants.
        tuned: What a method has for the dataset, beside its defaults.
    """
    if not named(values):
        return dict(values)
    options = {
        name: [_written_out(variant, around, tuned) for variant in listed]
        for name, listed in values["variants"]["options"].items()
    }
    return dict(values) | {"variants": {"options": options}}


def _written_out(
    variant: Mapping[str, Any], around: Mapping[str, Any], tuned: Presets
) -> dict[str, Any]:
    if LIKE not in variant:
        return dict(variant)
    like = variant[LIKE]
    network = as_plain(GCNConfig()) | as_plain(make_config(like, tuned(like)))
    own = {k: v for k, v in variant.items() if k != LIKE}
    differs = {k: v for k, v in network.items() if k in VARIANT_KEYS and v != around[k]}
    return {"name": own.pop("name", like)} | differs | own


def _variants(values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    variants = values.get("variants")
    options = variants.get("options") if isinstance(variants, Mapping) else None
    for listed in (options or {}).values():
        if isinstance(listed, list):
            yield from (v for v in listed if isinstance(v, Mapping))
