"""The compiled loops of the engine; everything else is in pyproject.toml.

They are optional: without a C compiler the package installs all the same, and the
reference engine does what they do, in more steps. ``make sanitize`` compiles them
with the address and undefined-behaviour sanitizers (``ELUGCN_SANITIZE=1``) and runs the
engine's tests.
"""

import os

from setuptools import Extension, setup

# The selects in the loops become vector instructions only without traps and errno.
FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]
LINK = ["-pthread"]
if os.environ.get("ELUGCN_SANITIZE") == "1":
    FLAGS = [*FLAGS, "-O1", "-g", "-fsanitize=address,undefined"]
    LINK = [*LINK, "-fsanitize=address,undefined"]
FOLDER = "elugcn/engine/loops"
HEADERS = ("hidden", "loops", "random", "sparse", "template", "two_views")
FILES = ("any", "module", "wide_256", "wide_512")

setup(
    ext_modules=[
        Extension(
            "elugcn.engine._compiled",
            [f"{FOLDER}/{name}.c" for name in FILES],
            depends=[f"{FOLDER}/{name}.h" for name in HEADERS],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=FLAGS,
            extra_link_args=LINK,
            libraries=["m"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
