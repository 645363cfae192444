"""Small configs of transformers' own classes, of which make_class_goldens.py records steps."""

from __future__ import annotations

from typing import Any

BOTH_SIDES = {
    "vocab_size": 1000,
    "d_model": 256,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 1024,
    "decoder_ffn_dim": 1024,
    "max_position_embeddings": 512,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
TOWER = {"hidden_size": 192, "intermediate_size": 768, "num_hidden_layers": 3, "num_attention_heads": 3}
DECODER = {
    "vocab_size": 1000,
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 64,
}
ENCODER = {
    "vocab_size": 1000,
    "hidden_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "max_position_embeddings": 514,
    "pad_token_id": 0,
}
LATENT = {
    "q_lora_rank": 96,
    "kv_lora_rank": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    **{key: of for key, of in DECODER.items() if key != "head_dim"},
}
SPECIAL_TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128}
SLIDING = {"sliding_window": 512, "layer_types": ["sliding_attention", "full_attention"]}
SECTIONS = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [8, 12, 12]}
TEXT_TOKENS = 256
#: transformers refuses to checkpoint them.
NEVER_CHECKPOINTED = ("mpnet",)
#: Each with the tokens of a sample; what sees images alone has none.
CONFIGS: dict[str, tuple[dict[str, Any], int]] = {
    "marian": ({"model_type": "marian", "architectures": ["MarianMTModel"], **BOTH_SIDES}, TEXT_TOKENS),
    "mbart": (
        {
            "model_type": "mbart",
            "architectures": ["MBartForConditionalGeneration"],
            "scale_embedding": True,
            **BOTH_SIDES,
        },
        TEXT_TOKENS,
    ),
    "m2m_100": (
        {
            "model_type": "m2m_100",
            "architectures": ["M2M100ForConditionalGeneration"],
            "encoder_layerdrop": 0.0,
            "decoder_layerdrop": 0.0,
            **BOTH_SIDES,
        },
        TEXT_TOKENS,
    ),
    "pegasus": ({"model_type": "pegasus", "architectures": ["PegasusForConditionalGeneration"], **BOTH_SIDES}, TEXT_TOKENS),
    "plbart": ({"model_type": "plbart", "architectures": ["PLBartForConditionalGeneration"], **BOTH_SIDES}, TEXT_TOKENS),
    "blenderbot": (
        {"model_type": "blenderbot", "architectures": ["BlenderbotForConditionalGeneration"], **BOTH_SIDES},
        TEXT_TOKENS,
    ),
    "blenderbot_small": (
        {"model_type": "blenderbot-small", "architectures": ["BlenderbotSmallForConditionalGeneration"], **BOTH_SIDES},
        TEXT_TOKENS,
    ),
    "siglip": (
        {
            "model_type": "siglip",
            "architectures": ["SiglipModel"],
            "text_config": {"vocab_size": 1000, **TOWER},
            "vision_config": {"image_size": 224, "patch_size": 16, **TOWER},
        },
        64,
    ),
    "siglip_classifier": (
        {
            "model_type": "siglip",
            "architectures": ["SiglipForImageClassification"],
            "text_config": {"vocab_size": 1000, **TOWER},
            "vision_config": {"image_size": 224, "patch_size": 16, **TOWER},
        },
        0,
    ),
    "clip_classifier": (
        {
            "model_type": "clip",
            "architectures": ["CLIPForImageClassification"],
            "vision_config": {"image_size": 224, "patch_size": 16, **TOWER},
        },
        0,
    ),
    "data2vec_audio": (
        {
            "model_type": "data2vec-audio",
            "architectures": ["Data2VecAudioForAudioFrameClassification"],
            "layerdrop": 0.0,
            "apply_spec_augment": False,
            "mask_time_prob": 0.0,
            "hidden_size": 256,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 1024,
        },
        32000,
    ),
    "whisper_classifier": (
        {
            "model_type": "whisper",
            "architectures": ["WhisperForAudioClassification"],
            "d_model": 128,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 512,
            "num_mel_bins": 80,
            "max_source_positions": 500,
            "vocab_size": 1000,
            "decoder_layers": 1,
            "decoder_attention_heads": 4,
            "decoder_ffn_dim": 512,
        },
        0,
    ),
    "voxtral": (
        {
            "model_type": "voxtral",
            "architectures": ["VoxtralForConditionalGeneration"],
            "audio_token_id": 0,
            "audio_config": {
                "hidden_size": 128,
                "intermediate_size": 512,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "num_mel_bins": 128,
                "max_source_positions": 1500,
            },
            "text_config": {"model_type": "llama", **DECODER},
        },
        375,
    ),
    "llama_of_5": ({"model_type": "llama", "architectures": ["LlamaForCausalLM"], **DECODER}, TEXT_TOKENS),
    "nanochat": ({"model_type": "nanochat", "architectures": ["NanoChatForCausalLM"], **DECODER}, TEXT_TOKENS),
    "hyperclovax": (
        {
            "model_type": "hyperclovax",
            "architectures": ["HyperCLOVAXForCausalLM"],
            "residual_multiplier": 0.5,
            "logits_scaling": 0.5,
            **DECODER,
        },
        TEXT_TOKENS,
    ),
    "ministral": (
        {"model_type": "ministral", "architectures": ["MinistralForCausalLM"], "sliding_window": 512, **DECODER},
        TEXT_TOKENS,
    ),
    "bitnet": (
        {
            "model_type": "bitnet",
            "architectures": ["BitNetForCausalLM"],
            "tie_word_embeddings": True,
            **SPECIAL_TOKENS,
            **DECODER,
        },
        TEXT_TOKENS,
    ),
    "diffllama": ({"model_type": "diffllama", "architectures": ["DiffLlamaForCausalLM"], **DECODER}, TEXT_TOKENS),
    "vaultgemma": (
        {"model_type": "vaultgemma", "architectures": ["VaultGemmaForCausalLM"], "sliding_window": 512, **DECODER},
        TEXT_TOKENS,
    ),
    "granite_swa": (
        {
            "model_type": "granite_swa",
            "architectures": ["GraniteSWAForCausalLM"],
            "sliding_window": 128,
            "layer_types": ["full_attention", "sliding_attention"],
            **SPECIAL_TOKENS,
            **DECODER,
            "num_key_value_heads": 2,
        },
        TEXT_TOKENS,
    ),
    "minicpm3": ({"model_type": "minicpm3", "architectures": ["MiniCPM3ForCausalLM"], **LATENT}, TEXT_TOKENS),
    "youtu": ({"model_type": "youtu", "architectures": ["YoutuForCausalLM"], **LATENT}, TEXT_TOKENS),
    "afmoe": (
        {
            "model_type": "afmoe",
            "architectures": ["AfmoeForCausalLM"],
            "num_dense_layers": 1,
            "num_shared_experts": 1,
            "mup_enabled": True,
            **DECODER,
            **EXPERTS,
            **SLIDING,
            "num_key_value_heads": 2,
        },
        TEXT_TOKENS,
    ),
    "laguna": (
        {
            "model_type": "laguna",
            "architectures": ["LagunaForCausalLM"],
            "num_attention_heads_per_layer": [8, 4],
            "mlp_layer_types": ["dense", "sparse"],
            "shared_expert_intermediate_size": 128,
            "rope_parameters": {
                "full_attention": {"rope_type": "default", "rope_theta": 500000.0, "partial_rotary_factor": 0.5},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
            },
            **DECODER,
            **EXPERTS,
            **SLIDING,
            "num_key_value_heads": 2,
        },
        TEXT_TOKENS,
    ),
    "exaone_moe": (
        {
            "model_type": "exaone_moe",
            "architectures": ["ExaoneMoeForCausalLM"],
            "first_k_dense_replace": 1,
            "num_shared_experts": 1,
            **DECODER,
            **EXPERTS,
            **SLIDING,
            "num_key_value_heads": 2,
        },
        TEXT_TOKENS,
    ),
    "cohere2_moe": (
        {
            "model_type": "cohere2_moe",
            "architectures": ["Cohere2MoeForCausalLM"],
            "first_k_dense_replace": 1,
            "prefix_dense_intermediate_size": 704,
            "num_shared_experts": 1,
            **DECODER,
            **SLIDING,
            "num_experts": 8,
            "num_experts_per_tok": 2,
            "intermediate_size": 128,
        },
        TEXT_TOKENS,
    ),
    "mistral4": (
        {
            "model_type": "mistral4",
            "architectures": ["Mistral4ForCausalLM"],
            "n_routed_experts": 8,
            "n_shared_experts": 1,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 128,
            "first_k_dense_replace": 1,
            **LATENT,
        },
        TEXT_TOKENS,
    ),
    "olmo_hybrid": (
        {
            "model_type": "olmo_hybrid",
            "architectures": ["OlmoHybridForCausalLM"],
            "use_cache": False,
            "layer_types": ["linear_attention", "full_attention"],
            "rope_parameters": {"rope_type": "default", "rope_theta": None},
            **SPECIAL_TOKENS,
            **{key: of for key, of in DECODER.items() if key != "head_dim"},
        },
        TEXT_TOKENS,
    ),
    "eurobert": (
        {
            "model_type": "eurobert",
            "architectures": ["EuroBertForMaskedLM"],
            "mask_token_id": 3,
            **SPECIAL_TOKENS,
            **DECODER,
            "num_key_value_heads": 2,
        },
        TEXT_TOKENS,
    ),
    "nomic_bert": ({"model_type": "nomic_bert", "architectures": ["NomicBertForMaskedLM"], **ENCODER}, TEXT_TOKENS),
    "mpnet": ({"model_type": "mpnet", "architectures": ["MPNetForMaskedLM"], **ENCODER}, TEXT_TOKENS),
    "deberta_v1": (
        {
            "model_type": "deberta",
            "architectures": ["DebertaForMaskedLM"],
            "type_vocab_size": 0,
            "relative_attention": True,
            "position_biased_input": False,
            "pos_att_type": ["c2p", "p2c"],
            **ENCODER,
        },
        TEXT_TOKENS,
    ),
    "granite_vision": (
        {
            "model_type": "llava_next",
            "architectures": ["LlavaNextForConditionalGeneration"],
            "image_token_index": 0,
            "tie_word_embeddings": True,
            "image_grid_pinpoints": [[112, 224], [224, 112], [224, 224]],
            "vision_feature_layer": [-3, -2, -1],
            "vision_feature_select_strategy": "full",
            "vision_config": {"model_type": "siglip_vision_model", "image_size": 112, "patch_size": 14, **TOWER},
            "text_config": {
                "model_type": "granite",
                **DECODER,
                "attention_multiplier": 0.015625,
                "embedding_multiplier": 12.0,
                "logits_scaling": 8.0,
                "residual_multiplier": 0.22,
                "tie_word_embeddings": True,
            },
        },
        268,
    ),
    "vipllava": (
        {
            "model_type": "vipllava",
            "architectures": ["VipLlavaForConditionalGeneration"],
            "image_token_index": 0,
            "vision_feature_layers": [-2, -1, 1],
            "vision_config": {"model_type": "clip_vision_model", "image_size": 224, "patch_size": 14, **TOWER},
            "text_config": {"model_type": "llama", **DECODER},
        },
        256,
    ),
    "aya_vision": (
        {
            "model_type": "aya_vision",
            "architectures": ["AyaVisionForConditionalGeneration"],
            "image_token_index": 0,
            "alignment_intermediate_size": 512,
            "vision_config": {"model_type": "siglip_vision_model", "image_size": 112, "patch_size": 14, **TOWER},
            "text_config": {"model_type": "cohere2", **DECODER, "sliding_window": 4096},
        },
        208,
    ),
    "cohere2_vision": (
        {
            "model_type": "cohere2_vision",
            "architectures": ["Cohere2VisionForConditionalGeneration"],
            "image_token_id": 0,
            "alignment_intermediate_size": 512,
            "vision_config": {"model_type": "siglip_vision_model", "image_size": 112, "patch_size": 14, **TOWER},
            "text_config": {"model_type": "cohere2", **DECODER, "sliding_window": 4096},
        },
        208,
    ),
    "glm_ocr": (
        {
            "model_type": "glm_ocr",
            "architectures": ["GlmOcrForConditionalGeneration"],
            "image_token_id": 0,
            "vision_config": {
                "depth": 2,
                "hidden_size": 64,
                "num_heads": 2,
                "out_hidden_size": 256,
                "intermediate_size": 256,
            },
            "text_config": {
                "model_type": "glm_ocr_text",
                **DECODER,
                "head_dim": 128,
                "rope_parameters": {**SECTIONS, "partial_rotary_factor": 0.5},
            },
        },
        999,
    ),
    "paddleocr_vl": (
        {
            "model_type": "paddleocr_vl",
            "architectures": ["PaddleOCRVLForConditionalGeneration"],
            "image_token_id": 0,
            "vision_config": {
                "hidden_size": 64,
                "intermediate_size": 256,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
            },
            "text_config": {"model_type": "paddleocr_vl_text", **DECODER, "rope_parameters": SECTIONS},
        },
        999,
    ),
    "deepseek_ocr2": (
        {
            "model_type": "deepseek_ocr2",
            "architectures": ["DeepseekOcr2ForConditionalGeneration"],
            "image_token_id": 0,
            "vision_config": {
                "sam_config": {
                    "hidden_size": 64,
                    "num_hidden_layers": 3,
                    "num_attention_heads": 2,
                    "output_channels": 32,
                    "downsample_channels": [48, 96],
                    "global_attn_indexes": [2],
                },
                "encoder_config": {
                    "hidden_size": 96,
                    "intermediate_size": 256,
                    "num_hidden_layers": 2,
                    "num_attention_heads": 3,
                    "num_key_value_heads": 1,
                },
            },
            "text_config": {
                **DECODER,
                "num_hidden_layers": 3,
                "n_routed_experts": 8,
                "n_shared_experts": 2,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 128,
                "mlp_layer_types": ["dense", "sparse", "sparse"],
            },
        },
        1121,
    ),
    "deepseek_vl": (
        {
            "model_type": "deepseek_vl",
            "architectures": ["DeepseekVLForConditionalGeneration"],
            "image_token_id": 0,
            "tie_word_embeddings": False,
            "vision_config": {"model_type": "siglip_vision_model", "image_size": 224, "patch_size": 14, **TOWER},
            "text_config": {"model_type": "llama", **DECODER},
        },
        256,
    ),
    "minicpmv4_6": (
        {
            "model_type": "minicpmv4_6",
            "architectures": ["MiniCPMV4_6ForConditionalGeneration"],
            "image_token_id": 0,
            "insert_layer_id": 1,
            "vision_config": {"image_size": 224, "patch_size": 14, **TOWER},
            "text_config": {"model_type": "llama", **DECODER},
        },
        315,
    ),
}
