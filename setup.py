"""Builds the Python package for `pip install .`: CMake compiles and installs it, setuptools packs it.

Input: CMakeLists.txt, which says the version, and the environment:
  CMAKE_ARGS                    more arguments for CMake
  GPUMEM_SELF_CONTAINED_WHEEL   1: zlib, yaml-cpp and the C++ library are linked in, and the wheel's tag says which glibc it
                                needs at least (packaging/wheel.sh sets it)
  GPUMEM_OLD_GLIBC              of such a wheel: a folder of an older glibc to link with (packaging/old_glibc.sh makes it)
  GPUMEM_WHEEL_MACHINE          aarch64: such a wheel for that machine, by Debian's cross compiler; GPUMEM_OLD_GLIBC must be its
Output: one wheel for every Python 3: the Python files, the library libgpumem_c.so that they call, and the program gpumem, as
the CMake component `python` installs them.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    from setuptools.command.bdist_wheel import bdist_wheel  # setuptools 70.1 and later
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "packaging"))
import elf_needs  # noqa: E402 (packaging/elf_needs.py)

(ROOT / "build").mkdir(exist_ok=True)  # where setuptools puts its notes
SELF_CONTAINED = os.environ.get("GPUMEM_SELF_CONTAINED_WHEEL") == "1"


def version():
    return re.search(r"^project\(gpumem VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def linker_flags():
    """Stripped, with libstdc++ in it, and linked with the older glibc."""
    old_glibc = os.environ.get("GPUMEM_OLD_GLIBC")
    return "-s -static-libstdc++" + (f" -B{old_glibc} -Wl,--allow-shlib-undefined" if old_glibc else "")


def cmake_settings():
    settings = {
        "CMAKE_BUILD_TYPE": "Release",
        "GPUMEM_BUILD_CAPI": "ON",
        "GPUMEM_BUILD_PYTHON": "ON",
        "GPUMEM_BUILD_SLURM": "OFF",
        "GPUMEM_PYTHON_DIR": ".",
        "GPUMEM_PYTHON_WITH_PROGRAM": "ON",
        "GPUMEM_UNITY_BUILD": "ON",
        "Python_EXECUTABLE": sys.executable,
    }
    if SELF_CONTAINED:
        settings["GPUMEM_STATIC_DEPENDENCIES"] = "ON"
        settings["GPUMEM_BUILD_YAML"] = "ON"
        settings["CMAKE_EXE_LINKER_FLAGS"] = settings["CMAKE_SHARED_LINKER_FLAGS"] = linker_flags()
        settings.update(cross_settings())
    return [f"-D{name}={value}" for name, value in settings.items()]


def cross_settings():
    """For another machine than this one. Headers are of no machine; the libraries stand beside its glibc."""
    machine = os.environ.get("GPUMEM_WHEEL_MACHINE")
    if not machine:
        return {}
    tools, libraries = f"/usr/bin/{machine}-linux-gnu", os.environ["GPUMEM_OLD_GLIBC"]
    return {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": machine,
        "CMAKE_CXX_COMPILER": f"{tools}-g++",
        "CMAKE_STRIP": f"{tools}-strip",
        "ZLIB_LIBRARY": f"{libraries}/libz.a",
        "ZLIB_INCLUDE_DIR": "/usr/include",
        "yaml-cpp_DIR": next(pathlib.Path("/usr/lib").glob("*/cmake/yaml-cpp"), ""),  # this machine's, for its headers
        "GPUMEM_YAML_STATIC": f"{libraries}/libyaml-cpp.a",
    }


class CMakeBuild(build_ext):
    """The library of the package, and all files beside it."""

    def build_extension(self, ext):
        kind = "self-contained" if SELF_CONTAINED else "system"
        build = ROOT / "build" / f"wheel-{kind}"
        more = shlex.split(os.environ.get("CMAKE_ARGS", ""))
        # Settings of an earlier build, such as its flags, would stay otherwise.
        (build / "CMakeCache.txt").unlink(missing_ok=True)
        subprocess.run(["cmake", "-S", ROOT, "-B", build, *cmake_settings(), *more], check=True)
        jobs = str(os.cpu_count() or 1)
        targets = ["gpumem_python", "gpumem_cli"]
        subprocess.run(["cmake", "--build", build, "--parallel", jobs, "--target", *targets], check=True)
        package = pathlib.Path(self.get_ext_fullpath(ext.name)).resolve().parent
        install = ["cmake", "--install", build, "--component", "python", "--strip", "--prefix", package.parent]
        subprocess.run(install, check=True)


class Wheel(bdist_wheel):
    """Nothing in it is of one Python. A self-contained one says which systems it runs on."""

    def get_tag(self):
        platform = super().get_tag()[2]
        if SELF_CONTAINED:
            platform = elf_needs.manylinux_tag(pathlib.Path(self.bdist_dir))
        return "py3", "none", platform


setup(
    version=version(),
    packages=[],
    py_modules=[],
    ext_modules=[Extension("gpumem.libgpumem_c", [])],
    cmdclass={"build_ext": CMakeBuild, "bdist_wheel": Wheel},
    options={"egg_info": {"egg_base": "build"}},
)
