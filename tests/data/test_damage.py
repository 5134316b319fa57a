"""Files that change after they were checked: the sum was right, the contents are not."""

import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from elugcn.data.datasets import dataset_info, load_dataset
from elugcn.data.files import reading
from elugcn.errors import InputError

pytestmark = pytest.mark.usefixtures("cache")

AMAZON = "amazon_electronics_photo.npz: expected adj_"
WIKIPEDIA = "chameleon_directed.npz: expected node_features"


def overwrite(path: Path) -> None:
    path.write_bytes(b"x" * path.stat().st_size)


def rot(path: Path) -> None:
    """Zeros within: still an archive, of arrays that cannot be unpacked."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 4)
        file.write(bytes(size // 4))


def other_arrays(path: Path) -> None:
    """A sound archive of the same size, with none of the arrays that are needed."""
    size = path.stat().st_size
    np.savez(path, filler=np.zeros(size - 1000, dtype=np.uint8))
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b" " * (size - path.stat().st_size)


@pytest.mark.parametrize(
    ("name", "part", "damage", "message"),
    [
        ("cora", "test.index", overwrite, "test.index: expected one number a line"),
        ("cora", ".graph", overwrite, "ind.cora.graph: not a complete pickle"),
        ("photo", ".npz", overwrite, AMAZON),
        ("photo", ".npz", rot, AMAZON),
        ("photo", ".npz", other_arrays, AMAZON),
        ("chameleon", ".npz", overwrite, WIKIPEDIA),
        ("chameleon", ".npz", rot, WIKIPEDIA),
        ("chameleon", ".npz", other_arrays, WIKIPEDIA),
        ("caltech36", ".mat", overwrite, "Caltech36.mat: not a Facebook100"),
    ],
)
def test_damage_behind_a_right_sum_is_named(
    name: str,
    part: str,
    damage: Callable[[Path], None],
    message: str,
    data_dir: Path,
    tmp_path: Path,
) -> None:
    for relative in dataset_info(name).files:
        shutil.copyfile(data_dir / relative, tmp_path / Path(relative).name)
    load_dataset(name, data_dir=tmp_path, download=False)
    (path,) = tmp_path.glob(f"*{part}")
    before = path.stat()
    damage(path)
    # Same size, same time: the sum taken by the first load still counts.
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    with pytest.raises(InputError) as caught:
        load_dataset(name, data_dir=tmp_path, download=False)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_an_interrupt_is_not_damage(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), reading(tmp_path, "expected anything"):
        raise KeyboardInterrupt
