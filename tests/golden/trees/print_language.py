"""Writes language.json.gz next to this file: configs of models that read text, images or sounds, and what print(model)
shows of each. The modules are those that the published classes make (transformers 4.57 to 5.17, and the code that
comes with the models), of few layers; PyTorch prints them.

    python3 tests/golden/trees/print_language.py

It needs PyTorch 2.0 or later, and no memory: the modules are made on the meta device.
"""

from __future__ import annotations

import gzip
import json
import pathlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent


def module(class_name: str, **children: nn.Module | None) -> nn.Module:
    made = type(class_name, (nn.Module,), {})()
    for name, child in children.items():
        if child is not None:
            made.add_module(name.removesuffix("_of"), child)
    return made


def norm(class_name: str, width: int) -> nn.Module:
    """An RMS norm of transformers, which prints its width."""
    return type(class_name, (nn.Module,), {"extra_repr": lambda self: f"({width},), eps=1e-06"})()


def linear(inputs: int, outputs: int, bias: bool = False) -> nn.Module:
    return nn.Linear(inputs, outputs, bias=bias)


def stack(count: int, make: Callable[[], nn.Module]) -> nn.ModuleList:
    return nn.ModuleList(make() for _ in range(count))


def gated(class_name: str, width: int, inner: int) -> nn.Module:
    return module(class_name, gate_proj=linear(width, inner), up_proj=linear(width, inner),
                  down_proj=linear(inner, width), act_fn=module("SiLUActivation"))


def decoder(prefix: str, width: int, keys: int, inner: int, words: int, layers: int, bias: bool = False,
            head_norm: int = 0) -> nn.Module:
    """The body of a Llama or a Qwen."""
    norms = {"q_norm": norm(f"{prefix}RMSNorm", head_norm), "k_norm": norm(f"{prefix}RMSNorm", head_norm)}

    def layer() -> nn.Module:
        attention = module(f"{prefix}Attention", q_proj=linear(width, width, bias), k_proj=linear(width, keys, bias),
                           v_proj=linear(width, keys, bias), o_proj=linear(width, width),
                           **(norms if head_norm else {}))
        return module(f"{prefix}DecoderLayer", self_attn=attention, mlp=gated(f"{prefix}MLP", width, inner),
                      input_layernorm=norm(f"{prefix}RMSNorm", width),
                      post_attention_layernorm=norm(f"{prefix}RMSNorm", width))

    return module(f"{prefix}Model", embed_tokens=nn.Embedding(words, width), layers=stack(layers, layer),
                  norm=norm(f"{prefix}RMSNorm", width), rotary_emb=module(f"{prefix}RotaryEmbedding"))


def siglip(prefix: str, width: int, inner: int, layers: int, places: int, patch: int) -> dict[str, nn.Module]:
    def layer() -> nn.Module:
        attention = module(f"{prefix}Attention",
                           **{name: linear(width, width, True) for name in ("k_proj", "v_proj", "q_proj", "out_proj")})
        return module(f"{prefix}EncoderLayer", layer_norm1=nn.LayerNorm(width), self_attn=attention,
                      layer_norm2=nn.LayerNorm(width),
                      mlp=module(f"{prefix}MLP", activation_fn=module("GELUTanh"), fc1=linear(width, inner, True),
                                 fc2=linear(inner, width, True)))

    embeddings = module(f"{prefix}VisionEmbeddings", patch_embedding=nn.Conv2d(3, width, patch, patch),
                        position_embedding=nn.Embedding(places, width))
    return {"embeddings": embeddings, "encoder": module(f"{prefix}Encoder", layers=stack(layers, layer)),
            "post_layernorm": nn.LayerNorm(width)}


def pooling_head(prefix: str, width: int, inner: int) -> nn.Module:
    return module(f"{prefix}MultiheadAttentionPoolingHead", attention=nn.MultiheadAttention(width, 16, batch_first=True),
                  layernorm=nn.LayerNorm(width),
                  mlp=module(f"{prefix}MLP", activation_fn=module("GELUTanh"), fc1=linear(width, inner, True),
                             fc2=linear(inner, width, True)))


def kimi_vl() -> tuple[dict[str, Any], nn.Module]:
    width, inner = 1152, 4304
    tower = module(
        "MoonVitPretrainedModel",
        patch_embed=module("MoonVisionPatchEmbed", proj=nn.Conv2d(3, width, 14, 14),
                           pos_emb=module("Learnable2DInterpPosEmb")),
        encoder=module("MoonVitEncoder", rope_2d=module("Rope2DPosEmb"), blocks=stack(2, lambda: module(
            "MoonVitEncoderLayer", norm0=nn.LayerNorm(width), norm1=nn.LayerNorm(width),
            mlp=module("MLP2", fc0=linear(width, inner, True), fc1=linear(inner, width, True),
                       activation=module("PytorchGELUTanh")),
            wqkv=linear(width, 3 * width, True), wo=linear(width, width, True))),
            final_layernorm=nn.LayerNorm(width)))
    text = 2048
    projector = module("KimiVLMultiModalProjector", pre_norm=nn.LayerNorm(width),
                       linear_1=linear(4 * width, 4 * width, True), act=nn.GELU(), linear_2=linear(4 * width, text, True))

    def attention() -> nn.Module:
        return module("DeepseekV3Attention", q_proj=linear(text, 3072), kv_a_proj_with_mqa=linear(text, 576),
                      kv_a_layernorm=norm("DeepseekV3RMSNorm", 512), kv_b_proj=linear(512, 4096),
                      o_proj=linear(2048, text), rotary_emb=module("DeepseekV3RotaryEmbedding"))

    def layer(mlp: nn.Module) -> nn.Module:
        return module("DeepseekV3DecoderLayer", self_attn=attention(), mlp=mlp,
                      input_layernorm=norm("DeepseekV3RMSNorm", text),
                      post_attention_layernorm=norm("DeepseekV3RMSNorm", text))

    experts = module("DeepseekV3MoE", experts=stack(64, lambda: gated("DeepseekV3MLP", text, 1408)),
                     gate=module("MoEGate"), shared_experts=gated("DeepseekV3MLP", text, 2816))
    body = module("DeepseekV3Model", embed_tokens=nn.Embedding(163840, text),
                  layers=nn.ModuleList([layer(gated("DeepseekV3MLP", text, 11264)), layer(experts)]),
                  norm=norm("DeepseekV3RMSNorm", text))
    model = module("KimiVLForConditionalGeneration", vision_tower=tower, multi_modal_projector=projector,
                   language_model=module("DeepseekV3ForCausalLM", model=body, lm_head=linear(text, 163840)))
    config = {
        "architectures": ["KimiVLForConditionalGeneration"], "model_type": "kimi_vl",
        "text_config": {"model_type": "deepseek_v3", "hidden_size": text, "num_hidden_layers": 2,
                        "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 11264,
                        "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
                        "num_experts_per_tok": 6, "first_k_dense_replace": 1, "kv_lora_rank": 512, "q_lora_rank": None,
                        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 163840,
                        "tie_word_embeddings": False},
        "vision_config": {"hidden_size": width, "intermediate_size": inner, "num_hidden_layers": 2,
                          "num_attention_heads": 16, "patch_size": 14, "init_pos_emb_height": 64,
                          "init_pos_emb_width": 64}}
    return config, model


QWEN2 = {"hidden_size": 3584, "num_hidden_layers": 2, "num_attention_heads": 28, "num_key_value_heads": 4,
         "intermediate_size": 18944, "vocab_size": 151666, "tie_word_embeddings": False}


def minicpm_v() -> tuple[dict[str, Any], nn.Module]:
    width, text = 1152, 3584
    resampler = module("Resampler", kv_proj=linear(width, text), attn=nn.MultiheadAttention(text, 28),
                       ln_q=nn.LayerNorm(text), ln_kv=nn.LayerNorm(text), ln_post=nn.LayerNorm(text))
    llm = module("Qwen2ForCausalLM", model=decoder("Qwen2", text, 512, 18944, 151666, 2, True),
                 lm_head=linear(text, 151666))
    model = module("MiniCPMV", llm=llm, vpm=module("SiglipVisionTransformer", **siglip("Siglip", width, 4304, 2, 4900, 14)),
                   resampler=resampler)
    config = {"architectures": ["MiniCPMV"], "model_type": "minicpmv", "version": 2.6, **QWEN2, "query_num": 64,
              "drop_vision_last_layer": False,
              "vision_config": {"model_type": "siglip_vision_model", "hidden_size": width, "image_size": 980,
                                "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 2,
                                "patch_size": 14}}
    return config, model


def dots_ocr() -> tuple[dict[str, Any], nn.Module]:
    width, text = 1536, 1536
    tower = module(
        "DotsVisionTransformer",
        patch_embed=module("DotsViTPreprocessor", patchifier=module(
            "DotsPatchEmbed", proj=nn.Conv2d(3, width, 14, 14), norm=norm("RMSNorm", width))),
        rotary_pos_emb=module("VisionRotaryEmbedding"),
        blocks=stack(2, lambda: module(
            "DotsVisionBlock",
            attn=module("VisionFlashAttention2", qkv=linear(width, 3 * width), proj=linear(width, width)),
            norm1=norm("RMSNorm", width),
            mlp=module("DotsSwiGLUFFN", fc1=linear(width, 4224), fc2=linear(4224, width), fc3=linear(width, 4224)),
            norm2=norm("RMSNorm", width))),
        post_trunk_norm=norm("RMSNorm", width),
        merger=module("PatchMerger", ln_q=nn.LayerNorm(width), mlp=nn.Sequential(
            nn.Linear(4 * width, 4 * width), nn.GELU(), nn.Linear(4 * width, text))))
    model = module("DotsOCRForCausalLM", model=decoder("Qwen2", text, 256, 8960, 151936, 2, True),
                   lm_head=linear(text, 151936), vision_tower=tower)
    config = {"architectures": ["DotsOCRForCausalLM"], "model_type": "dots_ocr", "hidden_size": text,
              "intermediate_size": 8960, "num_attention_heads": 12, "num_hidden_layers": 2, "num_key_value_heads": 2,
              "tie_word_embeddings": False, "vocab_size": 151936,
              "vision_config": {"embed_dim": width, "intermediate_size": 4224, "num_hidden_layers": 2,
                                "num_attention_heads": 12, "patch_size": 14, "spatial_merge_size": 2}}
    return config, model


def ovis25() -> tuple[dict[str, Any], nn.Module]:
    width, text = 1152, 2048
    tower = module("Siglip2VisionTransformer", **siglip("Siglip2", width, 4304, 2, 1024, 16))
    tower.encoder.add_module("rotary_pos_emb", module("VisionRotaryEmbedding"))
    tokenizer = module("VisualTokenizer", vit=module("Siglip2NavitModel", vision_model=tower),
                       head=nn.Sequential(nn.Linear(4 * width, 65532, bias=False), nn.LayerNorm(65532)))
    words = type("VisualEmbedding", (nn.Embedding,), {})(65536, text)
    llm = module("Qwen3ForCausalLM", model=decoder("Qwen3", text, 1024, 6144, 151936, 2, head_norm=128),
                 lm_head=linear(text, 151936))
    model = module("Ovis2_5", llm=llm, visual_tokenizer=tokenizer, vte=words)
    config = {"architectures": ["Ovis2_5"], "model_type": "ovis2_5", "hidden_size": text, "visual_vocab_size": 65536,
              "llm_config": {"model_type": "qwen3", "hidden_size": text, "intermediate_size": 6144,
                             "num_hidden_layers": 2, "num_attention_heads": 16, "num_key_value_heads": 8,
                             "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": True},
              "vit_config": {"hidden_size": width, "intermediate_size": 4304, "num_hidden_layers": 2,
                             "num_attention_heads": 16, "patch_size": 16, "hidden_stride": 2, "image_size": 512}}
    return config, model


def phi4_multimodal() -> tuple[dict[str, Any], nn.Module]:
    text, width = 3072, 1152
    tower = module("Phi4MultimodalVisionModel", **siglip("Phi4MultimodalVision", width, 4304, 2, 1024, 14),
                   head=pooling_head("Phi4MultimodalVision", width, 4304))
    images = module("Phi4MultimodalImageEmbedding", drop=nn.Dropout(0.0), img_processor=tower,
                    image_token_compression=nn.AvgPool2d(2, 2), img_projection_up=linear(width, text, True),
                    img_projection_down=linear(text, text, True))
    encoder = module("Phi4MultimodalAudioModel", encoders=stack(24, lambda: module(
        "Phi4MultimodalAudioConformerEncoderLayer", layer_norm=nn.LayerNorm(1024))))
    sounds = module("Phi4MultimodalAudioEmbedding", drop=nn.Dropout(0.0), encoder=encoder,
                    up_proj_for_speech=linear(1024, text, True), down_proj_for_speech=linear(text, text, True))

    def layer() -> nn.Module:
        attention = module("Phi4MultimodalAttention", o_proj=linear(text, text), qkv_proj=linear(text, text + 2 * 1024))
        mlp = module("Phi4MultimodalMLP", gate_up_proj=linear(text, 16384), down_proj=linear(8192, text),
                     activation_fn=module("SiLUActivation"))
        return module("Phi4MultimodalDecoderLayer", self_attn=attention, mlp=mlp,
                      input_layernorm=norm("Phi4MultimodalRMSNorm", text),
                      post_attention_layernorm=norm("Phi4MultimodalRMSNorm", text),
                      resid_attn_dropout=nn.Dropout(0.0), resid_mlp_dropout=nn.Dropout(0.0))

    body = module("Phi4MultimodalModel", embed_tokens=nn.Embedding(200064, text, 199999), layers=stack(2, layer),
                  norm=norm("Phi4MultimodalRMSNorm", text), rotary_emb=module("Phi4MultimodalRotaryEmbedding"),
                  embed_dropout=nn.Dropout(0.0),
                  embed_tokens_extend=module("Phi4MultimodalFeatureEmbedding", image_embed=images, audio_embed=sounds))
    model = module("Phi4MultimodalForCausalLM", model=body, lm_head=linear(text, 200064))
    config = {"architectures": ["Phi4MultimodalForCausalLM"], "model_type": "phi4_multimodal", "hidden_size": text,
              "intermediate_size": 8192, "num_hidden_layers": 2, "num_attention_heads": 24, "num_key_value_heads": 8,
              "vocab_size": 200064, "tie_word_embeddings": True, "partial_rotary_factor": 0.75, "audio_config": {},
              "vision_config": {"num_hidden_layers": 2}}
    return config, model


def molmo2() -> tuple[dict[str, Any], nn.Module]:
    width, text, inner = 1152, 2560, 9728

    def attention(inputs: int) -> nn.Module:
        return module("ViTMultiHeadDotProductAttention", wq=linear(inputs, width, True), wk=linear(inputs, width, True),
                      wv=linear(inputs, width, True), wo=linear(width, width, True))

    vit = module("Molmo2VisionTransformer", patch_embedding=linear(588, width, True),
                 transformer=module("Molmo2VisionBlockCollection", resblocks=stack(25, lambda: module(
                     "Molmo2VisionBlock", attention=attention(width),
                     feed_forward=module("ViTMLP", w1=linear(width, 4304, True), act=module("GELUTanh"),
                                         w2=linear(4304, width, True)),
                     attention_norm=nn.LayerNorm(width), ffn_norm=nn.LayerNorm(width)))))
    backbone = module("Molmo2VisionBackbone", image_vit=vit, image_pooling_2d=attention(2 * width),
                      image_projector=module("ImageProjectorMLP", w1=linear(width, inner), w2=linear(inner, text),
                                             w3=linear(width, inner), act=module("SiLUActivation")))

    def layer() -> nn.Module:
        return module("Molmo2DecoderLayer",
                      self_attn=module("Molmo2Attention", att_proj=linear(text, 4096 + 2048),
                                       q_norm=norm("Molmo2RMSNorm", 128), k_norm=norm("Molmo2RMSNorm", 128),
                                       attn_out=linear(4096, text)),
                      attn_norm=norm("Molmo2RMSNorm", text), dropout=nn.Dropout(0.0),
                      mlp=module("Molmo2MLP", ff_proj=linear(text, 2 * inner), ff_out=linear(inner, text),
                                 act=module("SiLUActivation")),
                      ff_norm=norm("Molmo2RMSNorm", text))

    body = module("Molmo2TextModel", wte=module("Molmo2Embedding"), emb_drop=nn.Dropout(0.0), blocks=stack(2, layer),
                  ln_f=norm("Molmo2RMSNorm", text), rotary_emb=module("Molmo2RotaryEmbedding"))
    model = module("Molmo2ForConditionalGeneration",
                   model=module("Molmo2Model", transformer=body, vision_backbone=backbone),
                   lm_head=linear(text, 151936))
    config = {"architectures": ["Molmo2ForConditionalGeneration"], "model_type": "molmo2",
              "adapter_config": {"hidden_size": width, "intermediate_size": inner, "vit_layers": [-3, -9]},
              "text_config": {"model_type": "molmo2_text", "hidden_size": text, "intermediate_size": inner,
                              "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 8,
                              "head_dim": 128, "vocab_size": 151936, "qk_norm_type": "qwen3"},
              "vit_config": {"num_hidden_layers": 27}}
    return config, model


def deepseek_vl() -> tuple[dict[str, Any], nn.Module]:
    width, text = 1024, 2048
    tower = module("SiglipVisionModel", **siglip("Siglip", width, 4096, 2, 576, 16))
    body = module("DeepseekVLModel", vision_model=tower,
                  aligner=module("DeepseekVLAligner", linear1=linear(width, text, True), activation=nn.GELU(),
                                 linear2=linear(text, text, True)),
                  language_model=decoder("Llama", text, text, 5632, 102400, 2))
    model = module("DeepseekVLForConditionalGeneration", model=body, lm_head=linear(text, 102400))
    config = {"architectures": ["DeepseekVLForConditionalGeneration"], "model_type": "deepseek_vl",
              "tie_word_embeddings": False,
              "text_config": {"model_type": "llama", "hidden_size": text, "intermediate_size": 5632,
                              "num_hidden_layers": 2, "num_attention_heads": 16, "vocab_size": 102400},
              "vision_config": {"model_type": "siglip_vision_model", "hidden_size": width, "intermediate_size": 4096,
                                "num_hidden_layers": 2, "num_attention_heads": 16, "image_size": 384, "patch_size": 16,
                                "vision_use_head": False}}
    return config, model


def moonshine() -> tuple[dict[str, Any], nn.Module]:
    width, inner = 416, 1664
    flat = {"weight": True, "bias": False}

    def attention() -> nn.Module:
        return module("MoonshineAttention",
                      **{name: linear(width, width) for name in ("q_proj", "k_proj", "v_proj", "o_proj")})

    def plain() -> nn.Module:
        return nn.LayerNorm(width, bias=flat["bias"])

    encoder = module(
        "MoonshineEncoder", conv1=nn.Conv1d(1, width, 127, 64, bias=False),
        conv2=nn.Conv1d(width, 2 * width, 7, 3), conv3=nn.Conv1d(2 * width, width, 3, 2),
        groupnorm=nn.GroupNorm(1, width), rotary_emb=module("MoonshineRotaryEmbedding"),
        layers=stack(2, lambda: module(
            "MoonshineEncoderLayer", self_attn=attention(),
            mlp=module("MoonshineEncoderMLP", activation_fn=module("GELUActivation"), fc1=linear(width, inner, True),
                       fc2=linear(inner, width, True)),
            input_layernorm=plain(), post_attention_layernorm=plain())),
        layer_norm=plain())
    speech = module(
        "MoonshineDecoder", embed_tokens=nn.Embedding(32768, width),
        layers=stack(2, lambda: module(
            "MoonshineDecoderLayer", self_attn=attention(), encoder_attn=attention(),
            mlp=module("MoonshineDecoderMLP", activation_fn=module("SiLUActivation"), fc1=linear(width, 2 * inner, True),
                       fc2=linear(inner, width, True)),
            input_layernorm=plain(), post_attention_layernorm=plain(), final_layernorm=plain())),
        norm=plain(), rotary_emb=module("MoonshineRotaryEmbedding"))
    model = module("MoonshineForConditionalGeneration",
                   model=module("MoonshineModel", encoder=encoder, decoder=speech), proj_out=linear(width, 32768))
    config = {"architectures": ["MoonshineForConditionalGeneration"], "model_type": "moonshine", "hidden_size": width,
              "intermediate_size": inner, "encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 2}
    return config, model


def wav2vec2_bert() -> tuple[dict[str, Any], nn.Module]:
    width, inner = 1024, 4096

    def fed() -> nn.Module:
        return module("Wav2Vec2BertFeedForward", intermediate_dropout=nn.Dropout(0.0),
                      intermediate_dense=linear(width, inner, True), intermediate_act_fn=nn.SiLU(),
                      output_dense=linear(inner, width, True), output_dropout=nn.Dropout(0.0))

    def layer() -> nn.Module:
        return module(
            "Wav2Vec2BertEncoderLayer", ffn1_layer_norm=nn.LayerNorm(width), ffn1=fed(),
            self_attn_layer_norm=nn.LayerNorm(width), self_attn_dropout=nn.Dropout(0.0),
            self_attn=module("Wav2Vec2BertSelfAttention",
                             **{name: linear(width, width, True)
                                for name in ("linear_q", "linear_k", "linear_v", "linear_out")},
                             dropout=nn.Dropout(0.0), distance_embedding=nn.Embedding(73, 64)),
            conv_module=module("Wav2Vec2BertConvolutionModule", layer_norm=nn.LayerNorm(width),
                               pointwise_conv1=nn.Conv1d(width, 2 * width, 1, bias=False), glu=nn.GLU(dim=1),
                               depthwise_conv=nn.Conv1d(width, width, 31, groups=width, bias=False),
                               depthwise_layer_norm=nn.LayerNorm(width), activation=nn.SiLU(),
                               pointwise_conv2=nn.Conv1d(width, width, 1, bias=False), dropout=nn.Dropout(0.1)),
            ffn2_layer_norm=nn.LayerNorm(width), ffn2=fed(), final_layer_norm=nn.LayerNorm(width))

    body = module("Wav2Vec2BertModel",
                  feature_projection=module("Wav2Vec2BertFeatureProjection", layer_norm=nn.LayerNorm(160),
                                            projection=linear(160, width, True), dropout=nn.Dropout(0.0)),
                  encoder=module("Wav2Vec2BertEncoder", dropout=nn.Dropout(0.0), layers=stack(2, layer)))
    model = module("Wav2Vec2BertForCTC", wav2vec2_bert=body, dropout=nn.Dropout(0.1), lm_head=linear(width, 32, True))
    config = {"architectures": ["Wav2Vec2BertForCTC"], "model_type": "wav2vec2-bert", "num_hidden_layers": 2,
              "vocab_size": 32, "final_dropout": 0.1}
    return config, model


MODELS = (kimi_vl, minicpm_v, dots_ocr, ovis25, phi4_multimodal, molmo2, deepseek_vl, moonshine, wav2vec2_bert)


def main() -> None:
    goldens = {}
    for make in MODELS:
        with torch.device("meta"):
            config, model = make()
        goldens[make.__name__] = {"config": config, "tree": str(model)}
    text = json.dumps(goldens, indent=1)
    (HERE / "language.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
