#!/usr/bin/env python3
"""Prints the folder of the PyTorch that this Python imports, if remuda can be built against it.

Otherwise exits 1 and says why not on stderr. Debian's own python3-torch carries neither headers nor libraries; its
libtorch-dev does, and is found without this script.
"""

import pathlib
import sys

CONFIG = "share/cmake/Torch/TorchConfig.cmake"


def buildable(version: str, folder: pathlib.Path) -> str | None:
    """Nothing when PyTorch `version` in `folder` can be built against, else one sentence that says why not."""
    if int(version.split(".")[0]) < 2:
        return f"PyTorch {version} in {folder} is older than 2.0"
    for needed in ("include/torch/csrc/api/include/torch/torch.h", "lib/libtorch.so", CONFIG):
        if not (folder / needed).exists():
            return f"PyTorch {version} in {folder} lacks {needed}"
    if "_GLIBCXX_USE_CXX11_ABI=0" in (folder / CONFIG).read_text():
        return (f"PyTorch {version} in {folder} has strings as before C++11, which no library of Debian takes; "
                "PyTorch's own packages have the newer ones since 2.7")
    return None


def main() -> int:
    try:
        import torch
    except Exception as error:  # a broken installation can raise anything at all
        print(f"{sys.executable} cannot import torch: {error}", file=sys.stderr)
        return 1
    folder = pathlib.Path(torch.__file__).resolve().parent
    if why_not := buildable(torch.__version__, folder):
        print(why_not, file=sys.stderr)
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
