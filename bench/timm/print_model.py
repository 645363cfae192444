"""Writes what print(model) prints of timm's models, one file a model, without weights.

Input: a folder with timm's source (--timm), or an installed timm; names of models, or none for all of them.
Output: FOLDER/MODEL.txt, and FOLDER/inputs.csv: model, family (timm's source file), input as gpumem takes it ("3x224x224").

    python3 bench/timm/print_model.py --timm DIR FOLDER
"""

import argparse
import csv
import os
import sys


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--timm", help="folder that holds timm's source")
    return parser.parse_args()


def leave_weights_alone(torch):
    """Nothing is initialised, and rates of stochastic depth, which models read while they are built, have values."""
    linspace = torch.linspace
    torch.linspace = lambda *args, **kwargs: linspace(*args, **{**kwargs, "device": "cpu"})
    for name in dir(torch.nn.init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(torch.nn.init, name, lambda tensor, *_, **__: tensor)


def build(timm, name):
    """The model without memory for its weights; a few read more while they are built, and get it."""
    import torch

    try:
        with torch.device("meta"):
            return timm.create_model(name)
    except Exception:  # whatever a model needs values for
        return timm.create_model(name)


def main():
    options = arguments()
    if options.timm:
        sys.path.insert(0, options.timm)
    import torch

    leave_weights_alone(torch)
    import timm

    os.makedirs(options.folder, exist_ok=True)
    names = options.models or timm.list_models()
    with open(os.path.join(options.folder, "inputs.csv"), "w", newline="", encoding="utf-8") as table:
        rows = csv.writer(table)
        rows.writerow(["model", "family", "input", "parameters"])
        for name in names:
            try:
                model = build(timm, name)
            except Exception as error:  # what timm itself cannot build says nothing about summaries
                print(f"{name}: not built: {error}", file=sys.stderr)
                continue
            size = "x".join(str(side) for side in model.default_cfg.get("input_size", (3, 224, 224)))
            parameters = sum(parameter.numel() for parameter in model.parameters())
            rows.writerow([name, type(model).__module__.rsplit(".", 1)[-1], size, parameters])
            with open(os.path.join(options.folder, name + ".txt"), "w", encoding="utf-8") as file:
                print(model, file=file)


if __name__ == "__main__":
    main()
