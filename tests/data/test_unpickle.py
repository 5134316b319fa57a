"""The unpickler reads Planetoid files and runs nothing else."""

import contextlib
import pickle
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from elugcn.data.unpickle import load_pickle
from elugcn.errors import InputError


def call(module: str, name: str, *arguments: str) -> bytes:
    """A protocol-0 pickle that calls module.name(*arguments) when loaded."""
    strings = "".join(f"S'{argument}'\n" for argument in arguments)
    return f"c{module}\n{name}\n({strings}tR.".encode()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("subprocess", "Popen"),
        ("builtins", "eval"),
        ("__builtin__", "eval"),
        ("builtins", "getattr"),
        ("__builtin__", "list.append"),
        ("numpy", "load"),
        ("numpy", "fromfile"),
        ("numpy.core.multiarray", "scalar"),
        ("numpy.testing._private.utils", "runstring"),
        ("scipy.sparse.csr", "np"),
        ("scipy.sparse", "load_npz"),
        ("collections", "namedtuple"),
        ("elugcn.data.unpickle", "pickle"),
    ],
)
def test_other_names_are_refused_without_running(
    module: str, name: str, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    path = tmp_path / "ind.cora.x"
    path.write_bytes(call(module, name, f"touch {proof}"))
    with pytest.raises(InputError) as caught:
        load_pickle(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: refused")
    assert f"{module}.{name}" in message
    assert "\n" not in message
    assert not proof.exists()


def test_modern_pickles_cannot_reach_further(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[object, tuple[str, ...]]:
            return eval, (f"open({str(tmp_path / 'proof')!r}, 'w')",)

    path = tmp_path / "ind.cora.graph"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps({0: [Hostile()]}, protocol=protocol))
        with pytest.raises(InputError, match=r"refused, the pickle asks for .*eval"):
            load_pickle(path)
    assert not (tmp_path / "proof").exists()


def test_the_class_of_sparse_matrices_cannot_be_altered(tmp_path: Path) -> None:
    path = tmp_path / "ind.cora.x"
    # BUILD on the class itself: would set csr_matrix.toarray = 'x' if restored plainly.
    state = b"(N(dS'toarray'\nS'x'\nst"
    path.write_bytes(b"cscipy.sparse.csr\ncsr_matrix\n" + state + b"b.")
    with pytest.raises(InputError, match="not a complete pickle"):
        load_pickle(path)
    assert csr_matrix(np.eye(2)).toarray().tolist() == [[1, 0], [0, 1]]


def test_inconsistent_sparse_matrix_is_refused(tmp_path: Path, data_dir: Path) -> None:
    raw = (data_dir / "planetoid/ind.cora.x").read_bytes()
    path = tmp_path / "ind.cora.x"
    for word in (b"indices", b"_shape"):
        path.write_bytes(raw.replace(word, word[::-1]))
        with pytest.raises(InputError, match="not a complete pickle"):
            load_pickle(path)


def test_real_files_load_without_a_warning(data_dir: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = load_pickle(data_dir / "planetoid/ind.cora.x")
        y = load_pickle(data_dir / "planetoid/ind.cora.y")
        graph = load_pickle(data_dir / "planetoid/ind.cora.graph")
    assert isinstance(x, csr_matrix)
    assert x.shape == (140, 1433)
    assert set(x.data) == {1.0}
    assert y.shape == (140, 7)
    assert (y.sum(axis=1) == 1).all()
    assert type(graph) is defaultdict
    assert graph[0] == [633, 1862, 2582]


@pytest.mark.parametrize("part", ["x", "y", "graph"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.999])
def test_truncated_files_are_named(
    part: str, share: float, data_dir: Path, tmp_path: Path
) -> None:
    raw = (data_dir / f"planetoid/ind.cora.{part}").read_bytes()
    path = tmp_path / f"ind.cora.{part}"
    path.write_bytes(raw[: int(share * len(raw))])
    with pytest.raises(InputError) as caught:
        load_pickle(path)
    assert str(caught.value).startswith(f"{path}: not a complete pickle")
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_any_bytes_load_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.pickle"
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        load_pickle(path)
