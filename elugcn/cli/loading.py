"""From options to what is fitted or looked at: a graph, a method, a saved run."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError
from torch_geometric.data import Data

from elugcn.api import (
    MAX_SEED,
    Fitted,
    attach_graph,
    fit,
    load,
    parse_assignments,
    read_config_file,
    resolve_config,
    with_effort,
)
from elugcn.api.fitting import check_selection
from elugcn.api.runs import CONFIG
from elugcn.cli.options import (
    DATASET,
    PANELS,
    TABLES,
    FitOptions,
    GraphOptions,
    flag_of,
)
from elugcn.data.datasets import dataset_info, load_dataset
from elugcn.data.tables import load_tables
from elugcn.data.validation import CheckedGraph, check_data
from elugcn.errors import InputError, first_problem
from elugcn.methods.options import MethodConfig, unknown_option
from elugcn.methods.registry import (
    DEFAULT_METHOD,
    GRAPH_ONLY,
    METHOD_NAMES,
    resolve_name,
)


class Asked(BaseModel):
    """What is asked for, here or by the ``config.yaml`` of a run, but for options."""

    graph: GraphOptions = GraphOptions()
    seed: int = Field(default=0, ge=0, le=MAX_SEED, strict=True)
    method: str = DEFAULT_METHOD
    metric: str = "accuracy"
    class_weight: str | None = None


@dataclass(frozen=True)
class Task:
    """A graph, the method to fit to it and its configuration."""

    asked: Asked
    graph: CheckedGraph
    method: str
    config: MethodConfig

    @property
    def name(self) -> str:
        """Name of the graph."""
        return str(self.graph.data.name)

    def fit(self, how: FitOptions, with_baselines: bool = False) -> Fitted:
        """Fit the method."""
        return fit(
            self.graph,
            self.method,
            self.config,
            seed=self.asked.seed,
            device=how.device,
            n_threads=how.threads,
            progress=how.progress(),
            with_baselines=with_baselines,
            # The features of another graph are made in the same way.
            metadata={"features": self.asked.graph.features},
            metric=self.asked.metric,
            class_weight=self.asked.class_weight,
        )

    def recorded(self) -> dict[str, Any]:
        """What ``config.yaml`` records about the graph."""
        given = self.asked.graph.given()
        if self.asked.graph.nodes is None:
            given["dataset"] = self.name
        for key in {"nodes", "edges"} & given.keys():
            # A run may be looked at from another folder.
            given[key] = str(given[key].absolute())
        return given


def prepare(
    graph: GraphOptions,
    how: FitOptions,
    method: str | None = None,
    graph_only: bool = False,
) -> Task:
    """Load and check what is to be fitted: a method, or the ELU graph only."""
    asked = complete(graph, how)
    graph = asked.graph
    method = GRAPH_ONLY if graph_only else resolve_name(method or asked.method)
    if not graph_only and method not in METHOD_NAMES:
        raise InputError(f"{method} is not a classifier; use `elugcn graph`")
    check_selection(method, asked.metric, asked.class_weight)
    checked = load_graph(graph, asked.seed)
    given = parse_assignments(how.set_ or [], "--set")
    if how.graph_mode is not None:
        given["graph_mode"] = how.graph_mode
    if not graph_only:
        given = with_effort(method, given, how.effort, how.time_limit)
    # Presets are tuned for a dataset as published, with its own labels.
    published = graph.nodes is None and graph.labels_per_class is None
    preset = str(checked.data.name) if published else None
    config = resolve_config(method, preset, how.config, given)
    return Task(asked, checked, method, config)


def complete(graph: GraphOptions, how: FitOptions) -> Asked:
    """What the command line asks for, completed by the ``config.yaml`` of a run.

    The graph of the file is used only if the command line names none.
    """
    recorded = Asked() if how.config is None else _read_run(how.config)
    if not {"dataset", "nodes", "edges"} & graph.given().keys():
        changed = graph.given() | {"data_dir": graph.data_dir}
        graph = recorded.graph.model_copy(update=changed)
    given = how.model_dump(
        include={"seed", "metric", "class_weight"}, exclude_none=True
    )
    return recorded.model_copy(update=given | {"graph": graph})


def _read_run(file: Path) -> Asked:
    run = read_config_file(file)
    if "options" not in run:
        return Asked()  # a flat file of method options says nothing else
    graph: dict[str, Any] = dict(run["graph"])
    for key in ("dataset", "split") if "nodes" not in graph else ():
        top = run.get(key)
        if top and graph.setdefault(key, top) != top:
            under = f"{top!r} at the top but {graph[key]!r} under graph"
            raise InputError(f"{file}: {key} is {under}")
    for key in graph.keys() - PANELS.keys():
        raise InputError(unknown_option(str(key), PANELS, f"graph in {file}"))
    try:
        return Asked(**run | {"graph": graph})
    except ValidationError as error:
        raise InputError(f"{file}: {first_problem(error)}") from None


def load_graph(options: GraphOptions, seed: int) -> CheckedGraph:
    """The dataset or the tables that the options name, checked."""
    check_options(options)
    data = read_graph(options)
    if options.nodes is None:
        return check_data(data, features=options.features, seed=seed)
    val, test = options.val_fraction, options.test_fraction
    try:
        return check_data(data, seed=seed, val_fraction=val, test_fraction=test)
    except InputError as error:
        raise InputError(f"{options.nodes}: {error}") from None


def check_options(options: GraphOptions) -> None:
    """Refuse options of tables for a dataset, and the other way round."""
    tables = options.nodes is not None or options.edges is not None
    if tables and options.dataset is not None:
        raise InputError("give --dataset, or --nodes and --edges, not both")
    missing = [n for n in ("nodes", "edges") if getattr(options, n) is None]
    for name, value in options.given().items():
        if tables and PANELS[name] == DATASET and value != 0:
            raise InputError(f"{flag_of(name)} requires --dataset")
        if missing and PANELS[name] == TABLES:
            flags = " and ".join(map(flag_of, missing))
            raise InputError(f"{flag_of(name)} requires {flags}")


def read_graph(options: GraphOptions, schema: Any = None) -> Data:
    """The dataset or the tables that the options name."""
    if options.nodes is not None and options.edges is not None:
        columns = {name for name in PANELS if name.endswith("_column")}
        return load_tables(
            options.nodes,
            options.edges,
            **options.model_dump(include=columns),
            directed=options.directed or None,
            features=options.features,
            schema=schema,
        )
    info = dataset_info("digits" if options.dataset is None else options.dataset)
    extra = parse_assignments(options.data_option or [], "--data-option")
    for key in extra.keys() - set(info.options):
        raise InputError(unknown_option(key, info.options, f"dataset {info.name}"))
    return load_dataset(
        info.name,
        options.split or 0,
        options.data_dir,
        labels_per_class=options.labels_per_class,
        directed=options.directed,
        **extra,
    )


def fitted_graph(
    graph: GraphOptions,
    how: FitOptions,
    run: Path | None,
    check: Callable[[Data], Any] = bool,
) -> tuple[str, Fitted]:
    """The name of a graph, and its fit: that of a saved run, or one made now.

    ``check`` looks at the graph before anything is trained.
    """
    if run is None:
        task = prepare(graph, how, graph_only=True)
        check(task.graph.data)
        return task.name, task.fit(how)
    for name in graph.given():
        raise InputError(f"{flag_of(name)} does not go with --run")
    fitted = load(run)
    if problem := read_graph_again(fitted, run, graph.data_dir):
        raise InputError(f"--run {run}: {problem}")
    if fitted.result.label_utilization is None:
        reason = f"method {fitted.method} has no label utilization"
        raise InputError(f"--run {run}: {reason}; use a run of auto or elu-gcn")
    check(fitted.data)
    return str(getattr(fitted.data, "name", None) or run.name), fitted


def read_graph_again(
    fitted: Fitted, run: Path, data_dir: Path | None = None
) -> str | None:
    """Read the graph of a loaded run, which keeps only its model, again.

    The answer says why that was not possible.
    """
    graph, how = GraphOptions(data_dir=data_dir), FitOptions(config=run / CONFIG)
    try:
        with warnings.catch_warnings():
            # The run's first reading gave the same warnings.
            warnings.simplefilter("ignore")
            asked = complete(graph, how)
            data = load_graph(asked.graph, asked.seed).data
        reason = "" if attach_graph(fitted, data) else "it has changed since the run"
    except InputError as error:
        reason = str(error)
    return f"parts that need the graph are left out: {reason}" if reason else None


def refuse_input(
    out: Path, options: GraphOptions, run: Path | None = None, own: str = ""
) -> None:
    """Refuse to write over tables that are read, or files of a run except ``own``."""
    inputs = [options.nodes, options.edges]
    if run is not None and run.is_dir():
        inputs += [path for path in run.iterdir() if path.name != own]
        with suppress(InputError):  # reported by what needs the file
            graph = complete(GraphOptions(), FitOptions(config=run / CONFIG)).graph
            inputs += [graph.nodes, graph.edges]
    for path in filter(None, inputs):
        if out.exists() and path.exists() and out.samefile(path):
            raise InputError(f"--out {out}: would replace an input of this command")
