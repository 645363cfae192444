"""timm's models as exported graphs and as recordings: the memory of the graph's step is held to that of the recorded step.

    python3 tests/recorder/timm_nets.py FOLDER [NAME...]    # writes NAME.graph.json.gz and NAME.recording.json.gz

Without names it makes those of tests/golden/timm_nets; `all` makes the 50 that were tried. It needs PyTorch 2.6 and timm.
"""

from __future__ import annotations

import gzip
import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src" / "python"), str(ROOT / "examples" / "pytorch")]
sys.dont_write_bytecode = True

import timm  # noqa: E402
import torch  # noqa: E402
from export_graph import export_graph  # noqa: E402
from gpumem.record import record  # noqa: E402

BATCH = 8
#: Small ones of as many families, and one that names tensors which nothing reads.
GOLDEN = """
    resnet18 mobilenetv3_small_050 vit_tiny_patch16_224 convnext_atto swin_tiny_patch4_window7_224 regnetx_002
    res2net50_14w_8s
""".split()
MORE = """
    darknet53 ese_vovnet19b_dw resnext50_32x4d seresnet50 skresnet18 densenet121 dla34 dpn68 vgg11_bn
    efficientnet_b0 efficientnetv2_rw_t rexnet_100 mnasnet_small hardcorenas_a ghostnet_100 tinynet_e repvgg_a0 mobileone_s0
    inception_v3 xception41 hrnet_w18_small hgnet_tiny nf_resnet26 dm_nfnet_f0 resnetv2_50 regnety_002 cs3darknet_s
    deit_tiny_patch16_224 beit_base_patch16_224 cait_xxs24_224 eva02_tiny_patch14_224 convit_tiny mixer_s32_224
    resmlp_12_224 gmixer_12_224 convmixer_768_32 poolformer_s12 caformer_s18 pvt_v2_b0 nest_tiny visformer_tiny
    levit_128s mobilevit_xxs
""".split()


def write(name: str, folder: pathlib.Path) -> None:
    model = timm.create_model(name).train()
    images = torch.zeros(BATCH, *model.default_cfg["input_size"])
    text = record.module(model, [images], BATCH, scale=False, title=name)
    graph = export_graph(model, [images], name)
    for ending, each in (("graph", graph), ("recording", text)):
        (folder / f"{name}.{ending}.json.gz").write_bytes(gzip.compress(each.encode(), mtime=0))


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    names = sys.argv[2:] or GOLDEN
    for name in [*GOLDEN, *MORE] if names == ["all"] else names:
        try:
            write(name, folder)
        except Exception as error:  # noqa: B902: the next one is made all the same.
            print(name, type(error).__name__, str(error).splitlines()[:1], flush=True)
        else:
            print(name, flush=True)


if __name__ == "__main__":
    main()
