"""The compiled loops of a training step; everything else is in pyproject.toml.

They are optional: without a C compiler the package installs all the same, and PyTorch
does what they do, in more steps.
"""

import sys

from setuptools import Extension, setup

# The selects of hidden.h become vector instructions only without traps and errno.
FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]
FOLDER = "elugcn/compiled"
HEADERS = ("hidden", "loops", "random", "sparse", "template", "two_views")
FILES = ("any", "module", "wide_256", "wide_512")

setup(
    ext_modules=[
        Extension(
            "elugcn.compiled._loops",
            [f"{FOLDER}/{name}.c" for name in FILES],
            depends=[f"{FOLDER}/{name}.h" for name in HEADERS],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=FLAGS,
            libraries=[] if sys.platform == "win32" else ["m"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
