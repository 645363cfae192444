// Input: none.
// Output: the published sizes of models of several parts, a text model and a tower, as their config.json files have
// them: what models of a class have in common, then row by row. published_model() finds them by their names.
// Source: the models' config files, as their makers publish them; ai-dynamo/aiconfigurator (@095f58a) and
// lidajiededa/vllm-vram-estimator (@3f8a4f0) have copies of many; InternVL: OpenGVLab/InternVL (@2410d1d), README.md.
// Parameters: the models' cards. What no layer depends on (tokens, dropout that is off, initialisation) is left out.
#pragma once

#include "gpumem/summary/published_rows.hpp"

namespace gpumem::summary::published_models_detail {

/// In the fields "{hidden_size}" stands for a row's size of this name, wherever it is in the config. Rows have no
/// fields beside those, but for "apart".
inline constexpr PublishedFamily kPartFamilies[] = {
    {"apart", "", ""},  // each row with all of its fields
    {"qwen2_5_vl",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "tie_word_embeddings vision_intermediate_size",
     R"("model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"], "hidden_size": )"
     R"({hidden_size}, "intermediate_size": {intermediate_size}, "num_hidden_layers": {num_hidden_layers}, )"
     R"("num_attention_heads": {num_attention_heads}, "num_key_value_heads": {num_key_value_heads}, "vocab_size": )"
     R"({vocab_size}, "max_position_embeddings": 128000, "hidden_act": "silu", "tie_word_embeddings": )"
     R"({tie_word_embeddings}, "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": )"
     R"({vision_intermediate_size}, "num_heads": 16, "out_hidden_size": {hidden_size}, "patch_size": 14, )"
     R"("spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, )"
     R"(23, 31], "hidden_act": "silu"})"},
    {"qwen2_vl",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "tie_word_embeddings",
     R"("model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"], "hidden_size": )"
     R"({hidden_size}, "intermediate_size": {intermediate_size}, "num_hidden_layers": {num_hidden_layers}, )"
     R"("num_attention_heads": {num_attention_heads}, "num_key_value_heads": {num_key_value_heads}, "vocab_size": )"
     R"({vocab_size}, "max_position_embeddings": 32768, "hidden_act": "silu", "tie_word_embeddings": )"
     R"({tie_word_embeddings}, "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": {hidden_size}, )"
     R"("mlp_ratio": 4, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"qwen3_vl",
     "tie_word_embeddings hidden_size intermediate_size num_hidden_layers num_attention_heads vision_depth "
     "vision_hidden_size vision_intermediate_size vision_deepstack_visual_indexes",
     R"("model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"], "tie_word_embeddings": )"
     R"({tie_word_embeddings}, "text_config": {"model_type": "qwen3_vl_text", "hidden_size": {hidden_size}, )"
     R"("intermediate_size": {intermediate_size}, "num_hidden_layers": {num_hidden_layers}, "num_attention_heads": )"
     R"({num_attention_heads}, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, )"
     R"("max_position_embeddings": 262144, "hidden_act": "silu"}, "vision_config": {"depth": {vision_depth}, )"
     R"("hidden_size": {vision_hidden_size}, "intermediate_size": {vision_intermediate_size}, "num_heads": 16, )"
     R"("out_hidden_size": {hidden_size}, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, )"
     R"("num_position_embeddings": 2304, "deepstack_visual_indexes": {vision_deepstack_visual_indexes}, )"
     R"("hidden_act": "gelu_pytorch_tanh"})"},
    {"qwen3_vl_moe", "hidden_size intermediate_size moe_intermediate_size num_hidden_layers num_attention_heads",
     R"("model_type": "qwen3_vl_moe", "architectures": ["Qwen3VLMoeForConditionalGeneration"], )"
     R"("tie_word_embeddings": false, "text_config": {"model_type": "qwen3_vl_moe_text", "hidden_size": )"
     R"({hidden_size}, "intermediate_size": {intermediate_size}, "moe_intermediate_size": {moe_intermediate_size}, )"
     R"("num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], )"
     R"("norm_topk_prob": true, "num_hidden_layers": {num_hidden_layers}, "num_attention_heads": )"
     R"({num_attention_heads}, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, )"
     R"("max_position_embeddings": 262144, "hidden_act": "silu"}, "vision_config": {"depth": 27, "hidden_size": )"
     R"(1152, "intermediate_size": 4304, "num_heads": 16, "out_hidden_size": {hidden_size}, "patch_size": 16, )"
     R"("spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 2304, )"
     R"("deepstack_visual_indexes": [8, 16, 24], "hidden_act": "gelu_pytorch_tanh"})"},
    {"gemma3", "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim",
     R"("model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "mm_tokens_per_image": 256, )"
     R"("tie_word_embeddings": true, "text_config": {"model_type": "gemma3_text", "hidden_size": {hidden_size}, )"
     R"("intermediate_size": {intermediate_size}, "num_hidden_layers": {num_hidden_layers}, "num_attention_heads": )"
     R"({num_attention_heads}, "num_key_value_heads": {num_key_value_heads}, "head_dim": {head_dim}, "vocab_size": )"
     R"(262208, "max_position_embeddings": 131072, "sliding_window": 1024, "hidden_activation": )"
     R"("gelu_pytorch_tanh", "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}, "vision_config": )"
     R"({"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": )"
     R"(27, "num_attention_heads": 16, "image_size": 896, "patch_size": 14, "vision_use_head": false})"},
    {"mistral3",
     "tie_word_embeddings text_type hidden_size intermediate_size num_hidden_layers max_position_embeddings",
     R"("model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"], "spatial_merge_size": 2, )"
     R"("vision_feature_layer": -1, "multimodal_projector_bias": false, "tie_word_embeddings": )"
     R"({tie_word_embeddings}, "text_config": {"model_type": "{text_type}", "hidden_size": {hidden_size}, )"
     R"("intermediate_size": {intermediate_size}, "num_hidden_layers": {num_hidden_layers}, "num_attention_heads": )"
     R"(32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072, "max_position_embeddings": )"
     R"({max_position_embeddings}, "hidden_act": "silu", "sliding_window": null}, "vision_config": {"model_type": )"
     R"("pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": )"
     R"(16, "head_dim": 64, "image_size": 1540, "patch_size": 14, "hidden_act": "silu"})"},
    {"qwen3_5",
     "hidden_size intermediate_size linear_num_value_heads num_attention_heads num_hidden_layers "
     "num_key_value_heads vision_depth vision_hidden_size vision_intermediate_size vision_num_heads",
     R"("architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "text_config": )"
     R"({"attention_bias": false, "full_attention_interval": 4, "head_dim": 256, "hidden_act": "silu", )"
     R"("hidden_size": {hidden_size}, "intermediate_size": {intermediate_size}, "linear_conv_kernel_dim": 4, )"
     R"("linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": )"
     R"({linear_num_value_heads}, "linear_value_head_dim": 128, "max_position_embeddings": 262144, )"
     R"("mlp_only_layers": [], "model_type": "qwen3_5_text", "num_attention_heads": {num_attention_heads}, )"
     R"("num_hidden_layers": {num_hidden_layers}, "num_key_value_heads": {num_key_value_heads}, )"
     R"("tie_word_embeddings": true, "vocab_size": 248320}, "tie_word_embeddings": true, "vision_config": )"
     R"({"deepstack_visual_indexes": [], "depth": {vision_depth}, "hidden_act": "gelu_pytorch_tanh", )"
     R"("hidden_size": {vision_hidden_size}, "in_channels": 3, "intermediate_size": {vision_intermediate_size}, )"
     R"("model_type": "qwen3_5", "num_heads": {vision_num_heads}, "num_position_embeddings": 2304, )"
     R"("out_hidden_size": {hidden_size}, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"qwen3_5_untied", "hidden_size intermediate_size linear_num_value_heads num_attention_heads num_hidden_layers",
     R"("architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "text_config": )"
     R"({"attention_bias": false, "full_attention_interval": 4, "head_dim": 256, "hidden_act": "silu", )"
     R"("hidden_size": {hidden_size}, "intermediate_size": {intermediate_size}, "linear_conv_kernel_dim": 4, )"
     R"("linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": )"
     R"({linear_num_value_heads}, "linear_value_head_dim": 128, "max_position_embeddings": 262144, )"
     R"("mlp_only_layers": [], "model_type": "qwen3_5_text", "num_attention_heads": {num_attention_heads}, )"
     R"("num_hidden_layers": {num_hidden_layers}, "num_key_value_heads": 4, "vocab_size": 248320}, )"
     R"("tie_word_embeddings": false, "vision_config": {"deepstack_visual_indexes": [], "depth": 27, "hidden_act": )"
     R"("gelu_pytorch_tanh", "hidden_size": 1152, "in_channels": 3, "intermediate_size": 4304, "model_type": )"
     R"("qwen3_5", "num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": {hidden_size}, )"
     R"("patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"qwen3_5_moe",
     "hidden_size linear_num_value_heads moe_intermediate_size num_attention_heads num_experts num_experts_per_tok "
     "num_hidden_layers",
     R"("architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe", "text_config": )"
     R"({"attention_bias": false, "full_attention_interval": 4, "head_dim": 256, "hidden_act": "silu", )"
     R"("hidden_size": {hidden_size}, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, )"
     R"("linear_num_key_heads": 16, "linear_num_value_heads": {linear_num_value_heads}, "linear_value_head_dim": )"
     R"(128, "max_position_embeddings": 262144, "mlp_only_layers": [], "model_type": "qwen3_5_moe_text", )"
     R"("moe_intermediate_size": {moe_intermediate_size}, "num_attention_heads": {num_attention_heads}, )"
     R"("num_experts": {num_experts}, "num_experts_per_tok": {num_experts_per_tok}, "num_hidden_layers": )"
     R"({num_hidden_layers}, "num_key_value_heads": 2, "shared_expert_intermediate_size": {moe_intermediate_size}, )"
     R"("vocab_size": 248320}, "tie_word_embeddings": false, "vision_config": {"deepstack_visual_indexes": [], )"
     R"("depth": 27, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 1152, "in_channels": 3, )"
     R"("intermediate_size": 4304, "model_type": "qwen3_5_moe", "num_heads": 16, "num_position_embeddings": 2304, )"
     R"("out_hidden_size": {hidden_size}, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"llama4", "interleave_moe_layer_step max_position_embeddings num_local_experts use_qk_norm",
     R"("architectures": ["Llama4ForConditionalGeneration"], "model_type": "llama4", "text_config": )"
     R"({"attention_bias": false, "attention_chunk_size": 8192, "head_dim": 128, "hidden_act": "silu", )"
     R"("hidden_size": 5120, "interleave_moe_layer_step": {interleave_moe_layer_step}, "intermediate_size": 8192, )"
     R"("intermediate_size_mlp": 16384, "max_position_embeddings": {max_position_embeddings}, "model_type": )"
     R"("llama4_text", "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48, )"
     R"("num_key_value_heads": 8, "num_local_experts": {num_local_experts}, "use_qk_norm": {use_qk_norm}, )"
     R"("vocab_size": 202048})"},
    // Of these, what differs from their classes.
    {"qwen2_5_omni_thinker",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "talker_intermediate_size talker_num_attention_heads talker_num_key_value_heads talker_head_dim",
     R"("model_type": "qwen2_5_omni_thinker", "architectures": ["Qwen2_5OmniThinkerForConditionalGeneration"], )"
     R"("tie_word_embeddings": false, "text_config": {"model_type": "qwen2_5_omni_text", "hidden_size": )"
     R"({hidden_size}, "intermediate_size": {intermediate_size}, "num_hidden_layers": {num_hidden_layers}, )"
     R"("num_attention_heads": {num_attention_heads}, "num_key_value_heads": {num_key_value_heads}, "vocab_size": )"
     R"({vocab_size}, "max_position_embeddings": 32768}, "vision_config": {"hidden_size": 1280, "out_hidden_size": )"
     R"({hidden_size}}, "audio_config": {"output_dim": {hidden_size}}, "talker_config": {"embedding_size": )"
     R"({hidden_size}, "hidden_size": 896, "intermediate_size": {talker_intermediate_size}, "num_hidden_layers": 24, )"
     R"("num_attention_heads": {talker_num_attention_heads}, "num_key_value_heads": {talker_num_key_value_heads}, )"
     R"("head_dim": {talker_head_dim}})"},
    {"qwen3_omni_moe_thinker", "enable_audio_output",
     R"("model_type": "qwen3_omni_moe_thinker", "architectures": ["Qwen3OmniMoeThinkerForConditionalGeneration"], )"
     R"("tie_word_embeddings": false, "text_config": {"model_type": "qwen3_omni_moe_text", "hidden_size": 2048, )"
     R"("intermediate_size": 768, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, )"
     R"("decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": true, "num_hidden_layers": 48, )"
     R"("num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 152064, )"
     R"("max_position_embeddings": 65536}, "vision_config": {"out_hidden_size": 2048}, "audio_config": {"output_dim": )"
     R"(2048}, "talker_config": {"text_config": {"shared_expert_intermediate_size": 768, "head_dim": 128}, )"
     R"("code_predictor_config": {"num_code_groups": 16}})"},
    {"deepseek_vl_v2", "max_position_embeddings",
     R"("model_type": "deepseek_vl_v2", "architectures": ["DeepseekVLV2ForCausalLM"], "language_config": )"
     R"({"model_type": "deepseek_v2", "hidden_size": 1280, "intermediate_size": 6848, "moe_intermediate_size": 896, )"
     R"("num_hidden_layers": 12, "num_attention_heads": 10, "num_key_value_heads": 10, "n_routed_experts": 64, )"
     R"("n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "topk_method": "greedy", )"
     R"("use_mla": false, "vocab_size": 129280, "max_position_embeddings": {max_position_embeddings}})"},
    {"internvl_chat",
     "text_type hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim "
     "vocab_size max_position_embeddings",
     R"("model_type": "internvl_chat", "architectures": ["InternVLChatModel"], "downsample_ratio": 0.5, )"
     R"("dynamic_image_size": true, "force_image_size": 448, "max_dynamic_patch": 12, "min_dynamic_patch": 1, )"
     R"("ps_version": "v2", "select_layer": -1, "use_thumbnail": true, "llm_config": {"model_type": "{text_type}", )"
     R"("hidden_size": {hidden_size}, "intermediate_size": {intermediate_size}, "num_hidden_layers": )"
     R"({num_hidden_layers}, "num_attention_heads": {num_attention_heads}, "num_key_value_heads": )"
     R"({num_key_value_heads}, "head_dim": {head_dim}, "vocab_size": {vocab_size}, "max_position_embeddings": )"
     R"({max_position_embeddings}, "bias": false, "hidden_act": "silu", "tie_word_embeddings": false}, )"
     R"("vision_config": {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, )"
     R"("num_attention_heads": 16, "image_size": 448, "patch_size": 14, "qkv_bias": true, "qk_normalization": )"
     R"(false, "norm_type": "layer_norm", "hidden_act": "gelu"})"},
    {"internvl_chat_6b",
     "text_type hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim "
     "vocab_size max_position_embeddings",
     R"("model_type": "internvl_chat", "architectures": ["InternVLChatModel"], "downsample_ratio": 0.5, )"
     R"("dynamic_image_size": true, "force_image_size": 448, "max_dynamic_patch": 12, "min_dynamic_patch": 1, )"
     R"("ps_version": "v2", "select_layer": -1, "use_thumbnail": true, "llm_config": {"model_type": "{text_type}", )"
     R"("hidden_size": {hidden_size}, "intermediate_size": {intermediate_size}, "num_hidden_layers": )"
     R"({num_hidden_layers}, "num_attention_heads": {num_attention_heads}, "num_key_value_heads": )"
     R"({num_key_value_heads}, "head_dim": {head_dim}, "vocab_size": {vocab_size}, "max_position_embeddings": )"
     R"({max_position_embeddings}, "bias": false, "hidden_act": "silu", "tie_word_embeddings": false}, )"
     R"("vision_config": {"hidden_size": 3200, "intermediate_size": 12800, "num_hidden_layers": 45, )"
     R"("num_attention_heads": 25, "image_size": 448, "patch_size": 14, "qkv_bias": false, "qk_normalization": )"
     R"(true, "norm_type": "rms_norm", "hidden_act": "gelu"})"},
    {"internvl",
     "text_type hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim "
     "vocab_size max_position_embeddings",
     R"("model_type": "internvl", "architectures": ["InternVLForConditionalGeneration"], "downsample_ratio": 0.5, )"
     R"("projector_hidden_act": "gelu", "vision_feature_layer": -1, "image_seq_length": 256, "text_config": )"
     R"({"model_type": "{text_type}", "hidden_size": {hidden_size}, "intermediate_size": {intermediate_size}, )"
     R"("num_hidden_layers": {num_hidden_layers}, "num_attention_heads": {num_attention_heads}, )"
     R"("num_key_value_heads": {num_key_value_heads}, "head_dim": {head_dim}, "vocab_size": {vocab_size}, )"
     R"("max_position_embeddings": {max_position_embeddings}, "hidden_act": "silu", "tie_word_embeddings": false}, )"
     R"("vision_config": {"model_type": "internvl_vision", "hidden_size": 1024, "intermediate_size": 4096, )"
     R"("num_hidden_layers": 24, "num_attention_heads": 16, "attention_bias": true, "image_size": [448, 448], )"
     R"("patch_size": [14, 14], "hidden_act": "gelu"})"},
    {"glm4v",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "glm4v", "architectures": ["Glm4vForConditionalGeneration"], "tie_word_embeddings": false, )"
     R"("text_config": {"model_type": "glm4v_text", "hidden_size": {hidden_size}, "intermediate_size": )"
     R"({intermediate_size}, "num_hidden_layers": {num_hidden_layers}, "num_attention_heads": )"
     R"({num_attention_heads}, "num_key_value_heads": {num_key_value_heads}, "attention_bias": true, )"
     R"("partial_rotary_factor": 0.5, "vocab_size": {vocab_size}, "max_position_embeddings": )"
     R"({max_position_embeddings}, "hidden_act": "silu"}, "vision_config": {"depth": 24, "hidden_size": 1536, )"
     R"("num_heads": 12, "image_size": 336, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, )"
     R"("out_hidden_size": {hidden_size}, "intermediate_size": {intermediate_size}, "attention_bias": false, )"
     R"("hidden_act": "silu"})"},
    {"glm4v_moe",
     "hidden_size intermediate_size moe_intermediate_size num_hidden_layers num_attention_heads "
     "num_key_value_heads n_routed_experts vocab_size max_position_embeddings",
     R"("model_type": "glm4v_moe", "architectures": ["Glm4vMoeForConditionalGeneration"], "tie_word_embeddings": )"
     R"(false, "text_config": {"model_type": "glm4v_moe_text", "hidden_size": {hidden_size}, "intermediate_size": )"
     R"({intermediate_size}, "moe_intermediate_size": {moe_intermediate_size}, "num_hidden_layers": )"
     R"({num_hidden_layers}, "num_attention_heads": {num_attention_heads}, "num_key_value_heads": )"
     R"({num_key_value_heads}, "head_dim": 128, "n_routed_experts": {n_routed_experts}, "n_shared_experts": 1, )"
     R"("num_experts_per_tok": 8, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "norm_topk_prob": )"
     R"(true, "attention_bias": true, "partial_rotary_factor": 0.5, "vocab_size": {vocab_size}, )"
     R"("max_position_embeddings": {max_position_embeddings}, "hidden_act": "silu"}, "vision_config": {"depth": )"
     R"(24, "hidden_size": 1536, "num_heads": 12, "image_size": 336, "patch_size": 14, "spatial_merge_size": 2, )"
     R"("temporal_patch_size": 2, "out_hidden_size": {hidden_size}, "intermediate_size": {intermediate_size}, )"
     R"("attention_bias": false, "hidden_act": "silu"})"},
    {"lfm2_vl", "projector_hidden_size projector_use_layernorm vision_num_hidden_layers",
     R"("model_type": "lfm2_vl", "architectures": ["Lfm2VlForConditionalGeneration"], "downsample_factor": 2, )"
     R"("projector_hidden_act": "gelu", "projector_bias": true, "projector_hidden_size": {projector_hidden_size}, )"
     R"("projector_use_layernorm": {projector_use_layernorm}, "min_image_tokens": 64, "max_image_tokens": 256, )"
     R"("tile_size": 512, "min_tiles": 2, "max_tiles": 10, "use_thumbnail": true, "text_config": {"model_type": )"
     R"("lfm2", "hidden_size": 2048, "block_ff_dim": 12288, "num_hidden_layers": 16, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "vocab_size": 65536, "max_position_embeddings": 128000, "full_attn_idxs": [2, 5, )"
     R"(8, 10, 12, 14]}, "vision_config": {"model_type": "siglip2_vision_model", "hidden_size": 1152, )"
     R"("intermediate_size": 4304, "num_hidden_layers": {vision_num_hidden_layers}, "num_attention_heads": 16, )"
     R"("num_patches": 256, "patch_size": 16, "vision_use_head": false})"},
};

inline constexpr PublishedRow kPartRows[] = {
    {"Qwen/Qwen2.5-VL-3B-Instruct", "qwen2_5_vl", 3'754'622'976, "2048 11008 36 16 2 151936 true 3420"},
    {"Qwen/Qwen2.5-VL-7B-Instruct", "qwen2_5_vl", 8'292'166'656, "3584 18944 28 28 4 152064 false 3420"},
    {"Qwen/Qwen2.5-VL-32B-Instruct", "qwen2_5_vl", 33'452'718'336, "5120 27648 64 40 8 152064 false 3456"},
    {"Qwen/Qwen2.5-VL-72B-Instruct", "qwen2_5_vl", 73'410'777'344, "8192 29568 80 64 8 152064 false 3456"},
    {"Qwen/Qwen2-VL-2B-Instruct", "qwen2_vl", 2'208'985'600, "1536 8960 28 12 2 151936 true"},
    {"Qwen/Qwen2-VL-7B-Instruct", "qwen2_vl", 8'291'375'616, "3584 18944 28 28 4 152064 false"},
    {"Qwen/Qwen2-VL-72B-Instruct", "qwen2_vl", 73'405'560'320, "8192 29568 80 64 8 152064 false"},
    {"Qwen/Qwen3-VL-2B-Instruct Qwen/Qwen3-VL-2B-Thinking "
     "Qwen/Qwen3-VL-Embedding-2B Qwen/Qwen3-VL-Reranker-2B",
     "qwen3_vl", 2'127'532'032, "true 2048 6144 28 16 24 1024 4096 [5,11,17]"},
    {"Qwen/Qwen3-VL-4B-Instruct Qwen/Qwen3-VL-4B-Thinking", "qwen3_vl", 4'437'815'808,
     "true 2560 9728 36 32 24 1024 4096 [5,11,17]"},
    {"Qwen/Qwen3-VL-8B-Instruct Qwen/Qwen3-VL-8B-Thinking "
     "Qwen/Qwen3-VL-Embedding-8B Qwen/Qwen3-VL-Reranker-8B",
     "qwen3_vl", 8'767'123'696, "false 4096 12288 36 32 27 1152 4304 [8,16,24]"},
    {"Qwen/Qwen3-VL-32B-Instruct Qwen/Qwen3-VL-32B-Thinking", "qwen3_vl", 33'357'390'064,
     "false 5120 25600 64 64 27 1152 4304 [8,16,24]"},
    {"Qwen/Qwen3-VL-30B-A3B-Instruct Qwen/Qwen3-VL-30B-A3B-Thinking", "qwen3_vl_moe", 31'070'754'032,
     "2048 6144 768 48 32"},
    {"Qwen/Qwen3-VL-235B-A22B-Instruct Qwen/Qwen3-VL-235B-A22B-Thinking", "qwen3_vl_moe", 235'670'022'896,
     "4096 12288 1536 94 64"},
    {"google/gemma-3-4b-it google/gemma-3-4b-pt google/medgemma-4b-it google/medgemma-4b-pt google/medgemma-1.5-4b-it "
     "google/translategemma-4b-it",
     "gemma3", 4'300'079'472, "2560 10240 34 8 4 256"},
    {"google/gemma-3-12b-it google/gemma-3-12b-pt google/translategemma-12b-it", "gemma3", 12'187'325'040,
     "3840 15360 48 16 8 256"},
    {"google/gemma-3-27b-it google/gemma-3-27b-pt google/medgemma-27b-it google/translategemma-27b-it", "gemma3",
     27'432'406'640, "5376 21504 62 32 16 128"},
    {"llava-hf/llava-1.5-7b-hf", "apart", 7'063'427'072, "",
     R"("model_type": "llava", "architectures": ["LlavaForConditionalGeneration"], "vision_feature_layer": -2, )"
     R"("vision_feature_select_strategy": "default", "text_config": {"model_type": "llama", "hidden_size": 4096, )"
     R"("intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32064, )"
     R"("max_position_embeddings": 4096}, "vision_config": {"model_type": "clip_vision_model", "hidden_size": )"
     R"(1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 336, )"
     R"("patch_size": 14, "projection_dim": 768})"},
    {"HuggingFaceTB/SmolVLM-Instruct HuggingFaceTB/SmolVLM2-2.2B-Instruct", "apart", 2'246'784'880, "",
     R"("model_type": "smolvlm", "architectures": ["SmolVLMForConditionalGeneration"], "scale_factor": 3, )"
     R"("tie_word_embeddings": false, "text_config": {"model_type": "llama", "hidden_size": 2048, )"
     R"("intermediate_size": 8192, "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32, )"
     R"("vocab_size": 49280, "max_position_embeddings": 8192}, "vision_config": {"model_type": "smolvlm_vision", )"
     R"("hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, )"
     R"("image_size": 384, "patch_size": 14})"},
    {"mistralai/Mistral-Small-3.1-24B-Instruct-2503 mistralai/Mistral-Small-3.2-24B-Instruct-2506 "
     "mistralai/Magistral-Small-2509",
     "mistral3", 24'011'361'280, "false mistral 5120 32768 40 131072"},
    {"mistralai/Ministral-3-3B-Instruct-2512 mistralai/Ministral-3-3B-Reasoning-2512 "
     "mistralai/Ministral-3-3B-Base-2512",
     "mistral3", 3'849'090'048, "true ministral3 3072 9216 26 262144"},
    {"Qwen/Qwen3.5-0.8B Qwen/Qwen3.5-0.8B-Base", "qwen3_5", 852'985'920, "1024 3584 16 8 24 2 12 768 3072 12"},
    {"Qwen/Qwen3.5-2B Qwen/Qwen3.5-2B-Base", "qwen3_5", 2'213'241'664, "2048 6144 16 8 24 2 24 1024 4096 16"},
    {"Qwen/Qwen3.5-4B Qwen/Qwen3.5-4B-Base", "qwen3_5", 4'539'265'536, "2560 9216 32 16 32 4 24 1024 4096 16"},
    {"Qwen/Qwen3.5-9B Qwen/Qwen3.5-9B-Base", "qwen3_5_untied", 9'409'813'744, "4096 12288 32 16 32"},
    {"Qwen/Qwen3.5-27B Qwen/Qwen3.6-27B", "qwen3_5_untied", 27'356'728'560, "5120 17408 48 24 64"},
    {"Qwen/Qwen3.5-35B-A3B Qwen/Qwen3.5-35B-A3B-Base Qwen/Qwen3.6-35B-A3B", "qwen3_5_moe", 35'107'181'936,
     "2048 32 512 16 256 8 40"},
    {"Qwen/Qwen3.5-122B-A10B", "qwen3_5_moe", 122'562'817'776, "3072 64 1024 32 256 8 48"},
    {"Qwen/Qwen3.5-397B-A17B", "qwen3_5_moe", 396'802'360'816, "4096 64 1024 32 512 10 60"},
    {"google/gemma-4-26B-A4B google/gemma-4-26B-A4B-it", "apart", 25'805'933'872, "",
     R"("architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "text_config": )"
     R"({"attention_bias": false, "attention_k_eq_v": true, "enable_moe_block": true, "final_logit_softcapping": )"
     R"(30.0, "global_head_dim": 512, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": )"
     R"(2816, "hidden_size_per_layer_input": 0, "intermediate_size": 2112, "max_position_embeddings": 262144, )"
     R"("model_type": "gemma4_text", "moe_intermediate_size": 704, "num_attention_heads": 16, "num_experts": 128, )"
     R"("num_global_key_value_heads": 2, "num_hidden_layers": 30, "num_key_value_heads": 8, )"
     R"("num_kv_shared_layers": 0, "sliding_window": 1024, "tie_word_embeddings": true, "top_k_experts": 8, )"
     R"("use_double_wide_mlp": false, "vocab_size": 262144, "vocab_size_per_layer_input": 262144}, )"
     R"("tie_word_embeddings": true, "vision_config": {"attention_bias": false, "global_head_dim": 72, "head_dim": )"
     R"(72, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152, "intermediate_size": 4304, )"
     R"("max_position_embeddings": 131072, "model_type": "gemma4_vision", "num_attention_heads": 16, )"
     R"("num_hidden_layers": 27, "num_key_value_heads": 16, "patch_size": 16, "pooling_kernel_size": 3, )"
     R"("position_embedding_size": 10240, "standardize": true, "use_clipped_linears": false}, )"
     R"("vision_soft_tokens_per_image": 280)"},
    {"google/gemma-4-31B google/gemma-4-31B-it", "apart", 31'273'086'512, "",
     R"("architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "text_config": )"
     R"({"attention_bias": false, "attention_k_eq_v": true, "enable_moe_block": false, "final_logit_softcapping": )"
     R"(30.0, "global_head_dim": 512, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": )"
     R"(5376, "hidden_size_per_layer_input": 0, "intermediate_size": 21504, "max_position_embeddings": 262144, )"
     R"("model_type": "gemma4_text", "num_attention_heads": 32, "num_global_key_value_heads": 4, )"
     R"("num_hidden_layers": 60, "num_key_value_heads": 16, "num_kv_shared_layers": 0, "sliding_window": 1024, )"
     R"("tie_word_embeddings": true, "use_double_wide_mlp": false, "vocab_size": 262144, )"
     R"("vocab_size_per_layer_input": 262144}, "tie_word_embeddings": true, "vision_config": {"attention_bias": )"
     R"(false, "global_head_dim": 72, "head_dim": 72, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": )"
     R"(1152, "intermediate_size": 4304, "max_position_embeddings": 131072, "model_type": "gemma4_vision", )"
     R"("num_attention_heads": 16, "num_hidden_layers": 27, "num_key_value_heads": 16, "patch_size": 16, )"
     R"("pooling_kernel_size": 3, "position_embedding_size": 10240, "standardize": true, "use_clipped_linears": )"
     R"(false}, "vision_soft_tokens_per_image": 280)"},
    {"meta-llama/Llama-4-Scout-17B-16E meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4", 108'641'793'536,
     "1 10485760 16 true"},
    {"meta-llama/Llama-4-Maverick-17B-128E meta-llama/Llama-4-Maverick-17B-128E-Instruct", "llama4", 401'583'781'376,
     "2 1048576 128 false"},
    {"mistralai/Ministral-3-8B-Instruct-2512 mistralai/Ministral-3-8B-Reasoning-2512 "
     "mistralai/Ministral-3-8B-Base-2512",
     "mistral3", 8'918'026'240, "false ministral3 4096 14336 34 262144"},
    {"mistralai/Ministral-3-14B-Instruct-2512 mistralai/Ministral-3-14B-Reasoning-2512 "
     "mistralai/Ministral-3-14B-Base-2512",
     "mistral3", 13'945'031'680, "false ministral3 5120 16384 40 262144"},
    // Their checkpoints also hold keys and values of layers that read those of others; transformers leaves them out.
    {"google/gemma-4-E2B google/gemma-4-E2B-it", "apart", 5'104'297'504, "",
     R"("model_type": "gemma4", "architectures": ["Gemma4ForConditionalGeneration"], "tie_word_embeddings": true, )"
     R"("vision_soft_tokens_per_image": 280, "text_config": {"model_type": "gemma4_text", "hidden_size": 1536, )"
     R"("intermediate_size": 6144, "num_hidden_layers": 35, "num_attention_heads": 8, "num_key_value_heads": 1, )"
     R"("num_kv_shared_layers": 20, "use_double_wide_mlp": true, "layer_types": ["sliding_attention", )"
     R"("sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", )"
     R"("sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", )"
     R"("sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", )"
     R"("sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", )"
     R"("sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", )"
     R"("sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", )"
     R"("sliding_attention", "sliding_attention", "sliding_attention", "full_attention"], "head_dim": 256, )"
     R"("global_head_dim": 512, "hidden_size_per_layer_input": 256, "vocab_size": 262144, )"
     R"("vocab_size_per_layer_input": 262144, "attention_k_eq_v": false, "enable_moe_block": false, )"
     R"("final_logit_softcapping": 30.0, "sliding_window": 512, "max_position_embeddings": 131072, )"
     R"("hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true}, "vision_config": {"model_type": )"
     R"("gemma4_vision", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 16, )"
     R"("num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64, "patch_size": 16, )"
     R"("pooling_kernel_size": 3, "position_embedding_size": 10240, "use_clipped_linears": true, )"
     R"("hidden_activation": "gelu_pytorch_tanh"}, "audio_config": {"model_type": "gemma4_audio", "hidden_size": )"
     R"(1024, "num_hidden_layers": 12, "num_attention_heads": 8, "subsampling_conv_channels": [128, 32], )"
     R"("conv_kernel_size": 5, "output_proj_dims": 1536})"},
    {"google/gemma-4-E4B google/gemma-4-E4B-it", "apart", 7'941'100'832, "",
     R"("model_type": "gemma4", "architectures": ["Gemma4ForConditionalGeneration"], "tie_word_embeddings": true, )"
     R"("vision_soft_tokens_per_image": 280, "text_config": {"model_type": "gemma4_text", "hidden_size": 2560, )"
     R"("intermediate_size": 10240, "num_hidden_layers": 42, "num_attention_heads": 8, "num_key_value_heads": 2, )"
     R"("num_kv_shared_layers": 18, "use_double_wide_mlp": false, "head_dim": 256, "global_head_dim": 512, )"
     R"("hidden_size_per_layer_input": 256, "vocab_size": 262144, "vocab_size_per_layer_input": 262144, )"
     R"("attention_k_eq_v": false, "enable_moe_block": false, "final_logit_softcapping": 30.0, "sliding_window": )"
     R"(512, "max_position_embeddings": 131072, "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": )"
     R"(true}, "vision_config": {"model_type": "gemma4_vision", "hidden_size": 768, "intermediate_size": 3072, )"
     R"("num_hidden_layers": 16, "num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64, )"
     R"("patch_size": 16, "pooling_kernel_size": 3, "position_embedding_size": 10240, "use_clipped_linears": true, )"
     R"("hidden_activation": "gelu_pytorch_tanh"}, "audio_config": {"model_type": "gemma4_audio", "hidden_size": )"
     R"(1024, "num_hidden_layers": 12, "num_attention_heads": 8, "subsampling_conv_channels": [128, 32], )"
     R"("conv_kernel_size": 5, "output_proj_dims": 1536})"},
    {"mistralai/Voxtral-Mini-3B-2507", "apart", 4'676'271'104, "",
     R"("model_type": "voxtral", "architectures": ["VoxtralForConditionalGeneration"], "audio_config": {}, )"
     R"("text_config": {"model_type": "llama", "max_position_embeddings": 131072})"},
    {"mistralai/Voxtral-Small-24B-2507", "apart", 24'261'800'960, "",
     R"("model_type": "voxtral", "architectures": ["VoxtralForConditionalGeneration"], "audio_config": {}, )"
     R"("text_config": {"model_type": "llama", "hidden_size": 5120, "intermediate_size": 32768, )"
     R"("num_hidden_layers": 40, "max_position_embeddings": 131072})"},
    {"Qwen/Qwen2-Audio-7B Qwen/Qwen2-Audio-7B-Instruct", "apart", 8'397'094'912, "",
     R"("model_type": "qwen2_audio", "architectures": ["Qwen2AudioForConditionalGeneration"], "audio_config": {}, )"
     R"("text_config": {"model_type": "qwen2", "intermediate_size": 11008, "vocab_size": 156032, )"
     R"("max_position_embeddings": 8192})"},
    {"meta-llama/Llama-3.2-11B-Vision meta-llama/Llama-3.2-11B-Vision-Instruct", "apart", 10'670'220'835, "",
     R"("model_type": "mllama", "architectures": ["MllamaForConditionalGeneration"], "tie_word_embeddings": false, )"
     R"("text_config": {"model_type": "mllama_text_model", "hidden_size": 4096, "intermediate_size": 14336, )"
     R"("num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, )"
     R"("cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38], "max_position_embeddings": 131072, "hidden_act": )"
     R"("silu", "tie_word_embeddings": false}, "vision_config": {"model_type": "mllama_vision_model", )"
     R"("hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32, "num_global_layers": 8, )"
     R"("attention_heads": 16, "image_size": 560, "patch_size": 14, "max_num_tiles": 4, )"
     R"("intermediate_layers_indices": [3, 7, 15, 23, 30], "vision_output_dim": 7680, "hidden_act": "gelu"})"},
    // The thinkers of models that speak, which trainers train; what makes speech where a trainer holds it.
    {"Qwen/Qwen2.5-Omni-7B", "qwen2_5_omni_thinker", 8'931'813'888, "3584 18944 28 28 4 152064 18944 12 4 128"},
    {"Qwen/Qwen2.5-Omni-3B", "qwen2_5_omni_thinker", 4'703'464'448, "2048 11008 36 16 2 151936 4864 14 2 64"},
    {"Qwen/Qwen3-Omni-30B-A3B-Instruct", "qwen3_omni_moe_thinker", 31'719'205'488, "true"},
    {"Qwen/Qwen3-Omni-30B-A3B-Thinking Qwen/Qwen3-Omni-30B-A3B-Captioner", "qwen3_omni_moe_thinker", 31'719'205'488,
     "false"},
    // Their towers' sizes are those that the published code has.
    {"deepseek-ai/DeepSeek-OCR", "deepseek_vl_v2", 3'336'106'240, "8192",
     R"("vision_config": {"width": {"clip-l-14-224": {}, "sam_vit_b": {}}})"},
    {"deepseek-ai/DeepSeek-OCR-2", "deepseek_vl_v2", 3'389'119'360, "8192",
     R"("vision_config": {"width": {"qwen2-0-5b": {}, "sam_vit_b": {}}})"},
    {"deepseek-ai/deepseek-vl2-tiny", "deepseek_vl_v2", 3'370'501'440, "4096", R"("vision_config": {"width": 1152})"},
    {"openbmb/MiniCPM-V-4.6", "apart", 1'300'659'440, "",
     R"("model_type": "minicpmv4_6", "architectures": ["MiniCPMV4_6ForConditionalGeneration"], "vision_config": )"
     R"({"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, )"
     R"("image_size": 980, "patch_size": 14}, "text_config": {"model_type": "qwen3_5_text", "hidden_size": 1024, )"
     R"("intermediate_size": 3584, "num_hidden_layers": 24, "num_attention_heads": 8, "num_key_value_heads": 2, )"
     R"("head_dim": 256, "linear_num_value_heads": 16, "max_position_embeddings": 262144, "vocab_size": 248320, )"
     R"("tie_word_embeddings": true}, "tie_word_embeddings": true)"},
    {"OpenGVLab/InternVL2-1B", "internvl_chat", 938'158'976, "qwen2 896 4864 24 14 2 64 151655 32768"},
    {"OpenGVLab/InternVL2_5-1B OpenGVLab/InternVL2_5-1B-MPO OpenGVLab/InternVL3-1B OpenGVLab/InternVL3-1B-Instruct "
     "OpenGVLab/InternVL3-1B-Pretrained",
     "internvl_chat", 938'193'024, "qwen2 896 4864 24 14 2 64 151674 32768"},
    {"OpenGVLab/InternVL3-1B-hf", "internvl", 938'193'024, "qwen2 896 4864 24 14 2 64 151674 32768"},
    {"OpenGVLab/InternVL2-2B OpenGVLab/InternVL2_5-2B OpenGVLab/InternVL2_5-2B-MPO", "internvl_chat", 2'205'754'368,
     "internlm2 2048 8192 24 16 8 128 92553 32768"},
    {"OpenGVLab/InternVL3-2B OpenGVLab/InternVL3-2B-Instruct OpenGVLab/InternVL3-2B-Pretrained", "internvl_chat",
     2'088'957'440, "qwen2 1536 8960 28 12 2 128 151674 32768"},
    {"OpenGVLab/InternVL3-2B-hf", "internvl", 2'088'957'440, "qwen2 1536 8960 28 12 2 128 151674 32768"},
    {"OpenGVLab/InternVL2_5-4B OpenGVLab/InternVL2_5-4B-MPO", "internvl_chat", 3'712'637'952,
     "qwen2 2048 11008 36 16 2 128 151674 32768"},
    {"OpenGVLab/InternVL2-8B OpenGVLab/InternVL2-8B-MPO OpenGVLab/InternVL2_5-8B OpenGVLab/InternVL2_5-8B-MPO",
     "internvl_chat", 8'075'365'376, "internlm2 4096 14336 32 32 8 128 92553 32768"},
    {"OpenGVLab/InternVL3-8B OpenGVLab/InternVL3-8B-Instruct OpenGVLab/InternVL3-8B-Pretrained", "internvl_chat",
     7'944'373'760, "qwen2 3584 18944 28 28 4 128 151674 32768"},
    {"OpenGVLab/InternVL3-8B-hf", "internvl", 7'944'373'760, "qwen2 3584 18944 28 28 4 128 151674 32768"},
    {"OpenGVLab/InternVL3-14B OpenGVLab/InternVL3-14B-Instruct OpenGVLab/InternVL3-14B-Pretrained", "internvl_chat",
     15'117'256'704, "qwen2 5120 13824 48 40 8 128 151674 32768"},
    {"OpenGVLab/InternVL3-14B-hf", "internvl", 15'117'256'704, "qwen2 5120 13824 48 40 8 128 151674 32768"},
    {"OpenGVLab/InternVL2-26B OpenGVLab/InternVL2_5-26B OpenGVLab/InternVL2_5-26B-MPO", "internvl_chat_6b",
     25'514'186'112, "internlm2 6144 16384 48 48 8 128 92553 32768"},
    {"OpenGVLab/InternVL2_5-38B OpenGVLab/InternVL2_5-38B-MPO OpenGVLab/InternVL3-38B "
     "OpenGVLab/InternVL3-38B-Instruct OpenGVLab/InternVL3-38B-Pretrained",
     "internvl_chat_6b", 38'388'164'992, "qwen2 5120 27648 64 40 8 128 151674 32768"},
    {"OpenGVLab/InternVL2_5-78B OpenGVLab/InternVL2_5-78B-MPO OpenGVLab/InternVL3-78B "
     "OpenGVLab/InternVL3-78B-Instruct OpenGVLab/InternVL3-78B-Pretrained",
     "internvl_chat_6b", 78'408'318'336, "qwen2 8192 29568 80 64 8 128 151674 32768"},
    {"OpenGVLab/InternVL3_5-1B OpenGVLab/InternVL3_5-1B-Pretrained OpenGVLab/InternVL3_5-1B-Instruct "
     "OpenGVLab/InternVL3_5-1B-MPO",
     "internvl_chat", 1'060'897'792, "qwen3 1024 3072 28 16 8 128 151936 40960"},
    {"OpenGVLab/InternVL3_5-1B-HF", "internvl", 1'060'897'792, "qwen3 1024 3072 28 16 8 128 151936 40960"},
    {"OpenGVLab/InternVL3_5-2B OpenGVLab/InternVL3_5-2B-Pretrained OpenGVLab/InternVL3_5-2B-Instruct "
     "OpenGVLab/InternVL3_5-2B-MPO",
     "internvl_chat", 2'348'347'392, "qwen3 2048 6144 28 16 8 128 151936 40960"},
    {"OpenGVLab/InternVL3_5-2B-HF", "internvl", 2'348'347'392, "qwen3 2048 6144 28 16 8 128 151936 40960"},
    {"OpenGVLab/InternVL3_5-4B OpenGVLab/InternVL3_5-4B-Pretrained OpenGVLab/InternVL3_5-4B-Instruct "
     "OpenGVLab/InternVL3_5-4B-MPO",
     "internvl_chat", 4'732'489'216, "qwen3 2560 9728 36 32 8 128 151936 40960"},
    {"OpenGVLab/InternVL3_5-4B-HF", "internvl", 4'732'489'216, "qwen3 2560 9728 36 32 8 128 151936 40960"},
    {"OpenGVLab/InternVL3_5-8B OpenGVLab/InternVL3_5-8B-Pretrained OpenGVLab/InternVL3_5-8B-Instruct "
     "OpenGVLab/InternVL3_5-8B-MPO",
     "internvl_chat", 8'528'318'464, "qwen3 4096 12288 36 32 8 128 151936 40960"},
    {"OpenGVLab/InternVL3_5-8B-HF", "internvl", 8'528'318'464, "qwen3 4096 12288 36 32 8 128 151936 40960"},
    {"OpenGVLab/InternVL3_5-14B OpenGVLab/InternVL3_5-14B-Pretrained OpenGVLab/InternVL3_5-14B-Instruct "
     "OpenGVLab/InternVL3_5-14B-MPO",
     "internvl_chat", 15'119'523'840, "qwen3 5120 17408 40 40 8 128 151936 40960"},
    {"OpenGVLab/InternVL3_5-14B-HF", "internvl", 15'119'523'840, "qwen3 5120 17408 40 40 8 128 151936 40960"},
    {"OpenGVLab/InternVL3_5-38B OpenGVLab/InternVL3_5-38B-Pretrained OpenGVLab/InternVL3_5-38B-Instruct "
     "OpenGVLab/InternVL3_5-38B-MPO",
     "internvl_chat_6b", 38'390'405'504, "qwen3 5120 25600 64 64 8 128 151936 40960"},
    {"OpenGVLab/InternVL3_5-30B-A3B OpenGVLab/InternVL3_5-30B-A3B-Pretrained OpenGVLab/InternVL3_5-30B-A3B-Instruct "
     "OpenGVLab/InternVL3_5-30B-A3B-MPO",
     "apart", 30'848'730'112, "",
     R"("model_type": "internvl_chat", "architectures": ["InternVLChatModel"], "downsample_ratio": 0.5, )"
     R"("dynamic_image_size": true, "force_image_size": 448, "max_dynamic_patch": 12, "min_dynamic_patch": 1, )"
     R"("ps_version": "v2", "select_layer": -1, "use_thumbnail": true, "llm_config": {"model_type": "qwen3_moe", )"
     R"("hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128, )"
     R"("num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], "num_hidden_layers": 48, )"
     R"("num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, )"
     R"("max_position_embeddings": 40960, "hidden_act": "silu", "tie_word_embeddings": false}, "vision_config": )"
     R"({"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, )"
     R"("image_size": 448, "patch_size": 14, "qkv_bias": true, "qk_normalization": false, "norm_type": )"
     R"("layer_norm", "hidden_act": "gelu"})"},
    {"OpenGVLab/InternVL3_5-GPT-OSS-20B-A4B-Preview", "apart", 21'238'874'304, "",
     R"("model_type": "internvl_chat", "architectures": ["InternVLChatModel"], "downsample_ratio": 0.5, )"
     R"("dynamic_image_size": true, "force_image_size": 448, "max_dynamic_patch": 12, "min_dynamic_patch": 1, )"
     R"("ps_version": "v2", "select_layer": -1, "use_thumbnail": true, "llm_config": {"model_type": "gpt_oss", )"
     R"("hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 32, "num_experts_per_tok": 4, )"
     R"("attention_bias": true, "sliding_window": 128, "vocab_size": 201088, "max_position_embeddings": 131072, )"
     R"("hidden_act": "silu", "tie_word_embeddings": false}, "vision_config": {"hidden_size": 1024, )"
     R"("intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 448, )"
     R"("patch_size": 14, "qkv_bias": true, "qk_normalization": false, "norm_type": "layer_norm", "hidden_act": )"
     R"("gelu"})"},
    {"zai-org/GLM-4.1V-9B-Thinking zai-org/GLM-4.1V-9B-Base THUDM/GLM-4.1V-9B-Thinking THUDM/GLM-4.1V-9B-Base", "glm4v",
     10'292'777'472, "4096 13696 40 32 2 151552 65536"},
    {"zai-org/GLM-4.6V-Flash", "glm4v", 10'292'777'472, "4096 13696 40 32 2 151552 131072"},
    // Their files hold 5,760 numbers more, by which routers correct their scores: buffers.
    {"zai-org/GLM-4.5V", "glm4v_moe", 107'710'927'360, "4096 10944 1408 46 96 8 128 151552 65536"},
    {"zai-org/GLM-4.6V", "glm4v_moe", 107'710'927'360, "4096 10944 1408 46 96 8 128 151552 131072"},
    {"google/gemma-4-12B google/gemma-4-12B-it", "apart", 11'959'730'176, "",
     R"("model_type": "gemma4_unified", "architectures": ["Gemma4UnifiedForConditionalGeneration"], )"
     R"("tie_word_embeddings": true, "text_config": {"model_type": "gemma4_unified_text", "hidden_size": 3840, )"
     R"("intermediate_size": 15360, "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 8, )"
     R"("head_dim": 256, "global_head_dim": 512, "num_global_key_value_heads": 1, "attention_k_eq_v": true, )"
     R"("hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "sliding_window": 1024, )"
     R"("final_logit_softcapping": 30.0, "vocab_size": 262144, "max_position_embeddings": 262144}, )"
     R"("vision_config": {"mm_embed_dim": 3840, "mm_posemb_size": 1120, "patch_size": 16, "pooling_kernel_size": 3, )"
     R"("num_soft_tokens": 280, "output_proj_dims": 3840}, "audio_config": {"audio_embed_dim": 640})"},
    {"LiquidAI/LFM2-VL-1.6B", "lfm2_vl", 1'584'804'000, "2560 true 26"},
    {"LiquidAI/LFM2.5-VL-1.6B", "lfm2_vl", 1'596'625'904, "2048 false 27"},
};

}  // namespace gpumem::summary::published_models_detail
