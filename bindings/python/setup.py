# SPDX-License-Identifier: BSD-3-Clause
"""setup.py: build the extension rank._rank with the librank that pkg-config finds."""

import glob
import os
import shlex
import subprocess
import sys

from setuptools import Extension, setup


def pkg_config(option: str) -> list[str]:
    tool = shlex.split(os.environ.get("PKG_CONFIG", "pkg-config"))
    try:
        out = subprocess.run([*tool, option, "rank"], check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        sys.exit(f"setup.py: {tool[0]} is missing; install the package pkg-config")
    except subprocess.CalledProcessError as error:
        sys.exit(f"setup.py: pkg-config has no package rank ({error.stderr.strip()}); "
                 "install librank, and set PKG_CONFIG_PATH=PREFIX/lib/pkgconfig")
    return shlex.split(out)


setup(
    version=pkg_config("--modversion")[0],
    ext_modules=[
        Extension(
            "rank._rank",
            sources=sorted(glob.glob("src/*.c")),
            depends=["src/py_rank.h"],
            define_macros=[("Py_LIMITED_API", "0x030b0000")],
            extra_compile_args=["-std=gnu11", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-cast-function-type", *pkg_config("--cflags")],
            extra_link_args=pkg_config("--libs"),  # with the rpath
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
