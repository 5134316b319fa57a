"""Search of options on validation, and the tuned options of known datasets."""

from elugcn.methods.presets import preset
from elugcn.tuning.search import Search, Trial
from elugcn.tuning.trials import publish_trials, read_trials
from elugcn.tuning.tune import tune, write_presets

__all__ = [
    "Search",
    "Trial",
    "preset",
    "publish_trials",
    "read_trials",
    "tune",
    "write_presets",
]
