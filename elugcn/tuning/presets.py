"""Tuned values into ``configs/<dataset>.yaml``: one section, nothing else touched."""

from __future__ import annotations

import textwrap
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from elugcn.atomic import whole_file
from elugcn.config import SCHEMA, as_plain, make_config, preset_parts
from elugcn.errors import InputError
from elugcn.tuning.paths import Options
from elugcn.tuning.results import dump


def package_presets() -> Path:
    """Where the package keeps its own."""
    return Path(str(resources.files("elugcn") / "configs"))


def check_presets(folder: Path) -> None:
    """Refuse a directory that is not there, before any work is done."""
    if not folder.is_dir():
        raise InputError(f"--presets {folder}: not an existing directory")


def preset_source(dataset: str, folder: Path) -> Path:
    """The directory whose file counts: ``folder``, or the package's if it has none."""
    return folder if (folder / f"{dataset}.yaml").is_file() else package_presets()


def write_preset(
    method: str, dataset: str, config: Options, folder: Path, note: str = ""
) -> None:
    """Make ``config`` what ``resolve_config(method, dataset)`` gives.

    Only what differs from the method's defaults and the file's ``common`` is written.
    The rest of the file stays as it is, character by character.

    Args:
        method: whose section it is.
        dataset: whose file it is; made, after the package's, if there is none.
        config: every option.
        folder: directory of the files.
        note: a comment beside the section's name.

    Raises:
        InputError: the file is not laid out in sections.
    """
    source = preset_source(dataset, folder)
    common, _ = preset_parts(dataset, method, source)
    default = as_plain(make_config(method, common))
    own = {key: value for key, value in config.items() if value != default[key]}
    path = source / f"{dataset}.yaml"
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    target = folder / path.name
    after = replace_section(before or f"schema: {SCHEMA}\n", method, own, note, target)
    if after == before and target.is_file():
        return
    with whole_file(target) as file:
        file.write(after)


def replace_section(
    text: str, name: str, content: Options, note: str, path: Path
) -> str:
    """The text with another section of that name, or one more at its end."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    start, end = _span(text, lines, name, path)
    new = [*lines[:start], _section(name, content, note), *lines[end:]]
    result = "".join(new)
    try:
        same = yaml.safe_load(result) == _loaded(text, path) | {name: content}
    except yaml.YAMLError:  # other sections refer to this one
        same = False
    if not same:
        raise InputError(f"--presets {path}: {name} can't be replaced; edit it by hand")
    return result


def _section(name: str, content: Options, note: str) -> str:
    comment = f"  # {note}" if note else ""
    if not content:
        return f"{name}: {{}}{comment}\n"
    return f"{name}:{comment}\n" + textwrap.indent(dump(content), "  ")


def _span(text: str, lines: list[str], name: str, path: Path) -> tuple[int, int]:
    """First line of a section and the one after its last; where to add it if new."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise InputError(f"--presets {path}: expected one section below the other")
    starts = {key.value: key.start_mark.line for key, _ in root.value}
    if name not in starts:
        return len(lines), len(lines)
    later = [line for line in starts.values() if line > starts[name]]
    end = min(later, default=len(lines))
    # Comments at the margin belong to what follows them.
    while end > starts[name] + 1 and _between(lines[end - 1]):
        end -= 1
    return starts[name], end


def _between(line: str) -> bool:
    return not line.strip() or line.startswith("#")


def _loaded(text: str, path: Path) -> dict[str, Any]:
    content = yaml.safe_load(text)
    assert isinstance(content, dict), path
    return content
