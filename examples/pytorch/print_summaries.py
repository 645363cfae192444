#!/usr/bin/env python3
"""Prints PyTorch models in the layouts of the usual model-summary tools.

  print_summaries.py                    remakes every file in models/summaries
  print_summaries.py --check            exits 1 and names the files that differ from these
  print_summaries.py MODEL --format F   prints one summary to stdout

MODEL is a torchvision model (resnet50, vgg16, ...) or transformer_encoder, a small one built here.
F is one of
  torchsummary         a row for each call, children before the module that holds them
  torchinfo            a tree of calls, containers before their children
  module-tree          what print(model) shows
  module-tree-params   the same with ", N params" after each module
  keras2, keras3       what model.summary() shows for the same chain of layers, channels last

Only the layouts are imitated, so none of those tools has to be installed. It needs PyTorch 1.13 or
later with torchvision 0.14 or later. The models are run on PyTorch's "meta" device, which works out
shapes without computing or allocating anything: a batch of any size takes milliseconds.
"""

from __future__ import annotations

import argparse
import pathlib
import shlex
import sys

try:
    import torch

    from summary_layouts.keras import keras2_lines, keras3_lines
    from summary_layouts.models import SummaryError, build_model, freeze
    from summary_layouts.module_trees import module_tree_lines, module_tree_params_lines
    from summary_layouts.torchinfo import TORCHINFO_COLUMNS, TORCHINFO_ROWS, torchinfo_lines
    from summary_layouts.torchsummary import torchsummary_lines
except ImportError as error:
    missing = f"print_summaries.py: {error}. It needs "
    if (error.name or "").startswith("summary_layouts"):
        sys.exit(missing + "the folder summary_layouts next to it: copy that too")
    sys.exit(
        missing + "PyTorch (1.13 or later) and torchvision (0.14 or later) in the Python that runs "
        "it: pip install torch torchvision"
    )

SUMMARIES = pathlib.Path(__file__).resolve().parents[2] / "models" / "summaries"

# Deep enough for every leaf of the models below; torchinfo itself stops at 3 unless told otherwise.
EVERY_LEAF = "--depth 9"

# Each file is what this script prints for the arguments after its name.
SHIPPED = {
    "resnet50.torchsummary.txt": "resnet50 --format torchsummary --batch -1",
    "vgg16.torchsummary.txt": "vgg16 --format torchsummary --batch 32",
    "mobilenet_v2.torchsummary.txt": "mobilenet_v2 --format torchsummary --batch -1",
    "resnet18.torchinfo.txt": "resnet18 --format torchinfo --closed-branches",
    "resnet50.torchinfo.txt": f"resnet50 --format torchinfo {EVERY_LEAF}",
    "vgg16.torchinfo.txt": f"vgg16 --format torchinfo {EVERY_LEAF}",
    "mobilenet_v2.torchinfo.txt": f"mobilenet_v2 --format torchinfo {EVERY_LEAF}",
    "efficientnet_b0.torchinfo.txt": f"efficientnet_b0 --format torchinfo {EVERY_LEAF}",
    "densenet121.torchinfo.txt": f"densenet121 --format torchinfo {EVERY_LEAF}",
    "inception_v3.torchinfo.txt": f"inception_v3 --format torchinfo {EVERY_LEAF}",
    "vit_b_16.torchinfo.txt": f"vit_b_16 --format torchinfo {EVERY_LEAF}",
    "transformer_encoder.torchinfo.txt": (
        f"transformer_encoder --format torchinfo --batch 8 {EVERY_LEAF}"
    ),
    "transformer_encoder.torchinfo_no_input.txt": (
        f"transformer_encoder --format torchinfo --input none {EVERY_LEAF}"
    ),
    "resnet18.torchinfo_all.txt": (
        "resnet18 --format torchinfo --columns all --rows depth,var_names --column-width 20 "
        + EVERY_LEAF
    ),
    "resnet18.torchinfo_ascii.txt": (
        f"resnet18 --format torchinfo --rows depth,ascii_only {EVERY_LEAF}"
    ),
    "resnet18_frozen.torchinfo.txt": (
        f"resnet18 --format torchinfo --freeze conv1,bn1,layer1,layer2 {EVERY_LEAF}"
    ),
    "resnet50.module_tree.txt": "resnet50 --format module-tree",
    "vgg16.module_tree.txt": "vgg16 --format module-tree",
    "transformer_encoder.module_tree.txt": "transformer_encoder --format module-tree",
    "transformer_encoder.module_tree_repeats.txt": (
        "transformer_encoder --format module-tree --fold-repeats"
    ),
    "resnet18.module_tree_params.txt": "resnet18 --format module-tree-params --data-parallel",
    "vgg16.keras2.txt": "vgg16 --format keras2",
    "vgg16.keras3.txt": "vgg16 --format keras3 --line-length 70",
}

FORMATS = {
    "torchsummary": torchsummary_lines,
    "torchinfo": torchinfo_lines,
    "module-tree": module_tree_lines,
    "module-tree-params": module_tree_params_lines,
    "keras2": keras2_lines,
    "keras3": keras3_lines,
}


def list_of(choices):
    """An argparse type: names from choices, separated by commas."""

    def parse(text):
        names = text.split(",")
        unknown = [name for name in names if name not in choices]
        if unknown:
            expected = ", ".join(choices)
            raise argparse.ArgumentTypeError(f"unknown {unknown[0]!r}; expected {expected}")
        return names

    return parse


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("model", metavar="MODEL", nargs="?", help="the one model to print")
    add("--check", action="store_true", help="compare with the files instead of writing them")
    add("--format", choices=FORMATS, help="the layout to print MODEL in")
    add("--batch", type=int, help="batch size (torchsummary: -1, torchinfo: 1)")
    add("--input", metavar="SIZES", help="a sample's shape: 3x224x224; torchinfo also takes none")
    add("--freeze", metavar="NAMES", default="", help="submodules whose parameters are frozen")
    torchinfo = parser.add_argument_group("torchinfo")
    add = torchinfo.add_argument
    columns = ", ".join(TORCHINFO_COLUMNS)
    add("--columns", type=list_of(["all", *TORCHINFO_COLUMNS]), help=f"all, or some of {columns}")
    add("--rows", type=list_of(TORCHINFO_ROWS), default=["depth"], help=", ".join(TORCHINFO_ROWS))
    add("--column-width", type=int, default=25, help="width of the columns (25)")
    add("--depth", type=int, default=3, help="deepest rows to show (3)")
    add("--closed-branches", action="store_true", help="draw the tree as newer versions do")
    trees = parser.add_argument_group("module trees")
    add = trees.add_argument
    add("--data-parallel", action="store_true", help="wrap the model in DataParallel")
    add("--fold-repeats", action="store_true", help="fold equal layers as PyTorch 2 does")
    keras = parser.add_argument_group("Keras")
    keras.add_argument("--line-length", type=int, help="table width (keras2: 65, keras3: 76)")
    options = parser.parse_args(arguments)
    refuse_bad_combinations(parser, options)
    if options.batch is None:
        options.batch = -1 if options.format == "torchsummary" else 1
    return options


def refuse_bad_combinations(parser, options):
    if (options.model is None) != (options.format is None):
        parser.error("MODEL and --format go together")
    if options.model is not None and options.check:
        parser.error("--check takes no MODEL")
    if options.batch is not None and (options.batch == 0 or options.batch < -1):
        parser.error("--batch must be positive, or -1")
    if options.columns is not None and "all" in options.columns and len(options.columns) > 1:
        parser.error("--columns: all cannot be combined with others")
    if options.input == "none" and options.format != "torchinfo":
        parser.error("--input none is for torchinfo only")


def summarize(options):
    """The summary's text; it ends in a newline."""
    model = build_model(options.model)
    freeze(model, options.freeze.split(",") if options.freeze else [])
    return "\n".join(FORMATS[options.format](model, options)) + "\n"


def differing_files(write):
    """Names of the files that are not what this script prints; brings them up to date if asked."""
    differing = []
    for name, arguments in SHIPPED.items():
        path = SUMMARIES / name
        # Bytes, so that line ends are the same on every system.
        expected = summarize(parse_arguments(shlex.split(arguments))).encode("utf-8")
        if not path.exists() or path.read_bytes() != expected:
            differing.append(name)
            if write:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(expected)
    return differing


def main(arguments):
    options = parse_arguments(arguments)
    # Nothing here computes; more threads would only cost their start.
    torch.set_num_threads(1)
    if options.model is not None:
        sys.stdout.buffer.write(summarize(options).encode("utf-8"))
        return 0
    differing = differing_files(write=not options.check)
    for name in differing:
        print(f"models/summaries/{name} " + ("differs" if options.check else "written"))
    if not differing:
        print(f"models/summaries: all {len(SHIPPED)} files are up to date")
    return 1 if options.check and differing else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SummaryError as error:
        sys.exit(f"print_summaries.py: {error}")
