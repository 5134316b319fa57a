"""What the published files must contain: SHA-256 sums, and how to compute them.

Most files are checked byte by byte. The two Amazon archives are checked by the arrays
inside them, because copies compressed differently circulate with the same arrays.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

# Keys are folder/file, the layout of a data directory.
FILE_SHA256: Mapping[str, str] = MappingProxyType(
    {
        "facebook100/Caltech36.mat": (
            "597d8307f9aaaaf50343e12a22893c203c52b92e1dd5b3fb35e13f19871d6ffa"
        ),
        "facebook100/Hamilton46.mat": (
            "0ecf04e8f149fd98bcca55d4e13c22cdc24085a488a83730a9555f05355788b4"
        ),
        "facebook100/Northeastern19.mat": (
            "34a6b89dfda1ec1f9d2ebe101c75506cd8e00857f188866852f4589f97e960e8"
        ),
        "facebook100/Tulane29.mat": (
            "cebc8c4a4f7d4ab8b2ba77d90c00c52fc53390565c481d5b94b0e06cba72c633"
        ),
        "planetoid/ind.citeseer.allx": (
            "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668"
        ),
        "planetoid/ind.citeseer.ally": (
            "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95"
        ),
        "planetoid/ind.citeseer.graph": (
            "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7"
        ),
        "planetoid/ind.citeseer.test.index": (
            "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4"
        ),
        "planetoid/ind.citeseer.tx": (
            "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21"
        ),
        "planetoid/ind.citeseer.ty": (
            "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce"
        ),
        "planetoid/ind.citeseer.x": (
            "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6"
        ),
        "planetoid/ind.citeseer.y": (
            "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924"
        ),
        "planetoid/ind.cora.allx": (
            "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"
        ),
        "planetoid/ind.cora.ally": (
            "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"
        ),
        "planetoid/ind.cora.graph": (
            "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"
        ),
        "planetoid/ind.cora.test.index": (
            "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"
        ),
        "planetoid/ind.cora.tx": (
            "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"
        ),
        "planetoid/ind.cora.ty": (
            "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"
        ),
        "planetoid/ind.cora.x": (
            "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab"
        ),
        "planetoid/ind.cora.y": (
            "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"
        ),
        "planetoid/ind.pubmed.allx": (
            "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e"
        ),
        "planetoid/ind.pubmed.ally": (
            "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e"
        ),
        "planetoid/ind.pubmed.graph": (
            "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9"
        ),
        "planetoid/ind.pubmed.test.index": (
            "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5"
        ),
        "planetoid/ind.pubmed.tx": (
            "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d"
        ),
        "planetoid/ind.pubmed.ty": (
            "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd"
        ),
        "planetoid/ind.pubmed.x": (
            "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33"
        ),
        "planetoid/ind.pubmed.y": (
            "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3"
        ),
        "wikipedia/chameleon.npz": (
            "4c640bd2877fc4f9f101531e2f977bc16445a54e09a5cb01178df608e552f3fd"
        ),
        "wikipedia/chameleon_directed.npz": (
            "34aea6b6888063544232100d53d4aa7e87e37953ec8dd3a7092afb25bb2f0328"
        ),
        "wikipedia/chameleon_filtered.npz": (
            "bf46f07e1fb5249280447e5fe3100f3e82fc4b93ad1e13ffcfdec924b6ac0bb5"
        ),
        "wikipedia/chameleon_filtered_directed.npz": (
            "5a2d40701407188f1661d37a326484b49cc15251e0dedaa7bd380873dac80f21"
        ),
        "wikipedia/squirrel.npz": (
            "d436e3b42c0546b105241c0ab0766097074e68e55f67b133eeb9b0162e55cbd9"
        ),
        "wikipedia/squirrel_directed.npz": (
            "3f0436486716cf77b651c372e54f6b4c2cc52262e7faeeab584a34b41bae2616"
        ),
        "wikipedia/squirrel_filtered.npz": (
            "f06370ffb3116c5de8b7a600005400b2293c025e0ce2f6916d8201a825505ac7"
        ),
        "wikipedia/squirrel_filtered_directed.npz": (
            "0526e53252f0b052124f7390829c32e923d432acaf64206191a1144a07b39620"
        ),
    }
)

ARRAYS_SHA256: Mapping[str, str] = MappingProxyType(
    {
        "amazon/amazon_electronics_computers.npz": (
            "be83840f51dc5b5409ce4976e3334a79a797eae4d15705cf005df01c8c4fe76d"
        ),
        "amazon/amazon_electronics_photo.npz": (
            "d9ceb6e7947b7377cbed0bb8728278f3ca806769eb44ce748b31ffc64b09528e"
        ),
    }
)

_CHUNK = 1 << 20


def file_sha256(path: Path) -> str:
    """SHA-256 of the bytes of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def arrays_sha256(path: Path) -> str:
    """SHA-256 over the arrays of an .npz archive, however it is compressed.

    For each array in the order of the sorted names: name, dtype and shape as one line
    of text, then the bytes in C order. Pickled arrays are refused.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not an archive of plain arrays.
    """
    digest = hashlib.sha256()
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in sorted(archive.files):
                array = archive[name]
                head = f"{name} {array.dtype.str} {array.shape}\n"
                digest.update(head.encode())
                digest.update(np.ascontiguousarray(array).tobytes())
    except OSError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each raise their own
        raise ValueError(f"not an archive of arrays: {error}") from error
    return digest.hexdigest()


def sha256_of(relative: str, path: Path) -> str:
    """The sum to compare with `expected_sha256(relative)`, for the file at `path`."""
    return arrays_sha256(path) if relative in ARRAYS_SHA256 else file_sha256(path)


def expected_sha256(relative: str) -> str | None:
    """The sum the file must have; None if nobody has published one."""
    return ARRAYS_SHA256.get(relative) or FILE_SHA256.get(relative)
