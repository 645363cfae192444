// Input: none.
// Output: the published sizes of models whose configs have parts (a text model and a tower), or fields that no other
// model has, as their config.json files have them. published_models.hpp finds them by their names.
// Source: the models' config files, as their makers publish them; ai-dynamo/aiconfigurator (@095f58a) and
// lidajiededa/vllm-vram-estimator (@3f8a4f0) have copies of many. Parameters: the models' cards. What no layer
// depends on (tokens, dropout that is off, initialisation) is left out.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpumem::summary::published_configs_detail {

/// Models of one config.
struct PublishedConfig {
  std::string_view names;        ///< with a space between them
  std::int64_t parameters = 0;   ///< as published, tied weights once, without layers that predict further tokens
  std::string_view fields = {};  ///< of the config's JSON object
};

inline constexpr PublishedConfig kConfigs[] = {
    {"Qwen/Qwen2.5-VL-3B-Instruct", 3'754'622'976,
     R"("model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"], )"
     R"("hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 128000, )"
     R"("hidden_act": "silu", "tie_word_embeddings": true, "vision_config": {"depth": 32, "hidden_size": 1280, )"
     R"("intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 2048, "patch_size": 14, )"
     R"("spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, )"
     R"(23, 31], "hidden_act": "silu"})"},
    {"Qwen/Qwen2.5-VL-7B-Instruct", 8'292'166'656,
     R"("model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"], )"
     R"("hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, )"
     R"("num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 128000, )"
     R"("hidden_act": "silu", "tie_word_embeddings": false, "vision_config": {"depth": 32, "hidden_size": 1280, )"
     R"("intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 14, )"
     R"("spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, )"
     R"(23, 31], "hidden_act": "silu"})"},
    {"Qwen/Qwen2.5-VL-32B-Instruct", 33'452'718'336,
     R"("model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"], )"
     R"("hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64, "num_attention_heads": 40, )"
     R"("num_key_value_heads": 8, "vocab_size": 152064, "max_position_embeddings": 128000, )"
     R"("hidden_act": "silu", "tie_word_embeddings": false, "vision_config": {"depth": 32, "hidden_size": 1280, )"
     R"("intermediate_size": 3456, "num_heads": 16, "out_hidden_size": 5120, "patch_size": 14, )"
     R"("spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, )"
     R"(23, 31], "hidden_act": "silu"})"},
    {"Qwen/Qwen2.5-VL-72B-Instruct", 73'410'777'344,
     R"("model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"], )"
     R"("hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 8, "vocab_size": 152064, "max_position_embeddings": 128000, )"
     R"("hidden_act": "silu", "tie_word_embeddings": false, "vision_config": {"depth": 32, "hidden_size": 1280, )"
     R"("intermediate_size": 3456, "num_heads": 16, "out_hidden_size": 8192, "patch_size": 14, )"
     R"("spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, )"
     R"(23, 31], "hidden_act": "silu"})"},
    {"Qwen/Qwen2-VL-2B-Instruct", 2'208'985'600,
     R"("model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"], "hidden_size": 1536, )"
     R"("intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12, )"
     R"("num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 32768, "hidden_act": "silu", )"
     R"("tie_word_embeddings": true, "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 1536, )"
     R"("mlp_ratio": 4, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"Qwen/Qwen2-VL-7B-Instruct", 8'291'375'616,
     R"("model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"], "hidden_size": 3584, )"
     R"("intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, )"
     R"("num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 32768, "hidden_act": "silu", )"
     R"("tie_word_embeddings": false, "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, )"
     R"("mlp_ratio": 4, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"Qwen/Qwen2-VL-72B-Instruct", 73'405'560'320,
     R"("model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"], "hidden_size": 8192, )"
     R"("intermediate_size": 29568, "num_hidden_layers": 80, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 8, "vocab_size": 152064, "max_position_embeddings": 32768, "hidden_act": "silu", )"
     R"("tie_word_embeddings": false, "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 8192, )"
     R"("mlp_ratio": 4, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"Qwen/Qwen3-VL-2B-Instruct", 2'127'532'032,
     R"("model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"], )"
     R"("tie_word_embeddings": true, "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 2048, )"
     R"("intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 262144, )"
     R"("hidden_act": "silu"}, "vision_config": {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096, )"
     R"("num_heads": 16, "out_hidden_size": 2048, "patch_size": 16, "spatial_merge_size": 2, )"
     R"("temporal_patch_size": 2, "num_position_embeddings": 2304, "deepstack_visual_indexes": [5, 11, 17], )"
     R"("hidden_act": "gelu_pytorch_tanh"})"},
    {"Qwen/Qwen3-VL-4B-Instruct", 4'437'815'808,
     R"("model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"], )"
     R"("tie_word_embeddings": true, "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 2560, )"
     R"("intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 262144, )"
     R"("hidden_act": "silu"}, "vision_config": {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096, )"
     R"("num_heads": 16, "out_hidden_size": 2560, "patch_size": 16, "spatial_merge_size": 2, )"
     R"("temporal_patch_size": 2, "num_position_embeddings": 2304, "deepstack_visual_indexes": [5, 11, 17], )"
     R"("hidden_act": "gelu_pytorch_tanh"})"},
    {"Qwen/Qwen3-VL-8B-Instruct", 8'767'123'696,
     R"("model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"], )"
     R"("tie_word_embeddings": false, "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 4096, )"
     R"("intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 262144, )"
     R"("hidden_act": "silu"}, "vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, )"
     R"("num_heads": 16, "out_hidden_size": 4096, "patch_size": 16, "spatial_merge_size": 2, )"
     R"("temporal_patch_size": 2, "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24], )"
     R"("hidden_act": "gelu_pytorch_tanh"})"},
    {"Qwen/Qwen3-VL-32B-Instruct", 33'357'390'064,
     R"("model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"], )"
     R"("tie_word_embeddings": false, "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 5120, )"
     R"("intermediate_size": 25600, "num_hidden_layers": 64, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 262144, )"
     R"("hidden_act": "silu"}, "vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, )"
     R"("num_heads": 16, "out_hidden_size": 5120, "patch_size": 16, "spatial_merge_size": 2, )"
     R"("temporal_patch_size": 2, "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24], )"
     R"("hidden_act": "gelu_pytorch_tanh"})"},
    {"Qwen/Qwen3-VL-30B-A3B-Instruct", 31'070'754'032,
     R"("model_type": "qwen3_vl_moe", "architectures": ["Qwen3VLMoeForConditionalGeneration"], )"
     R"("tie_word_embeddings": false, "text_config": {"model_type": "qwen3_vl_moe_text", "hidden_size": 2048, )"
     R"("intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, )"
     R"("decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": true, "num_hidden_layers": 48, )"
     R"("num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, )"
     R"("max_position_embeddings": 262144, "hidden_act": "silu"}, "vision_config": {"depth": 27, )"
     R"("hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "out_hidden_size": 2048, )"
     R"("patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 2304, )"
     R"("deepstack_visual_indexes": [8, 16, 24], "hidden_act": "gelu_pytorch_tanh"})"},
    {"Qwen/Qwen3-VL-235B-A22B-Instruct", 235'670'022'896,
     R"("model_type": "qwen3_vl_moe", "architectures": ["Qwen3VLMoeForConditionalGeneration"], )"
     R"("tie_word_embeddings": false, "text_config": {"model_type": "qwen3_vl_moe_text", "hidden_size": 4096, )"
     R"("intermediate_size": 12288, "moe_intermediate_size": 1536, "num_experts": 128, )"
     R"("num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": true, )"
     R"("num_hidden_layers": 94, "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, )"
     R"("vocab_size": 151936, "max_position_embeddings": 262144, "hidden_act": "silu"}, )"
     R"("vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, )"
     R"("out_hidden_size": 4096, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, )"
     R"("num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24], )"
     R"("hidden_act": "gelu_pytorch_tanh"})"},
    {"google/gemma-3-4b-it google/gemma-3-4b-pt", 4'300'079'472,
     R"("model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], )"
     R"("mm_tokens_per_image": 256, "tie_word_embeddings": true, "text_config": {"model_type": "gemma3_text", )"
     R"("hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "num_attention_heads": 8, )"
     R"("num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208, "max_position_embeddings": 131072, )"
     R"("sliding_window": 1024, "hidden_activation": "gelu_pytorch_tanh", "rope_scaling": {"factor": 8.0, )"
     R"("rope_type": "linear"}}, "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, )"
     R"("intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 896, )"
     R"("patch_size": 14, "vision_use_head": false})"},
    {"google/gemma-3-12b-it google/gemma-3-12b-pt", 12'187'325'040,
     R"("model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], )"
     R"("mm_tokens_per_image": 256, "tie_word_embeddings": true, "text_config": {"model_type": "gemma3_text", )"
     R"("hidden_size": 3840, "intermediate_size": 15360, "num_hidden_layers": 48, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 8, "head_dim": 256, "vocab_size": 262208, "max_position_embeddings": 131072, )"
     R"("sliding_window": 1024, "hidden_activation": "gelu_pytorch_tanh", "rope_scaling": {"factor": 8.0, )"
     R"("rope_type": "linear"}}, "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, )"
     R"("intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 896, )"
     R"("patch_size": 14, "vision_use_head": false})"},
    {"google/gemma-3-27b-it google/gemma-3-27b-pt", 27'432'406'640,
     R"("model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], )"
     R"("mm_tokens_per_image": 256, "tie_word_embeddings": true, "text_config": {"model_type": "gemma3_text", )"
     R"("hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 62, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 16, "head_dim": 128, "vocab_size": 262208, "max_position_embeddings": 131072, )"
     R"("sliding_window": 1024, "hidden_activation": "gelu_pytorch_tanh", "rope_scaling": {"factor": 8.0, )"
     R"("rope_type": "linear"}}, "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, )"
     R"("intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 896, )"
     R"("patch_size": 14, "vision_use_head": false})"},
    {"llava-hf/llava-1.5-7b-hf", 7'063'427'072,
     R"("model_type": "llava", "architectures": ["LlavaForConditionalGeneration"], "vision_feature_layer": -2, )"
     R"("vision_feature_select_strategy": "default", "text_config": {"model_type": "llama", )"
     R"("hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, )"
     R"("vocab_size": 32064, "max_position_embeddings": 4096}, )"
     R"("vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096, )"
     R"("num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 336, "patch_size": 14, )"
     R"("projection_dim": 768})"},
    {"HuggingFaceTB/SmolVLM-Instruct HuggingFaceTB/SmolVLM2-2.2B-Instruct", 2'246'784'880,
     R"("model_type": "smolvlm", "architectures": ["SmolVLMForConditionalGeneration"], "scale_factor": 3, )"
     R"("tie_word_embeddings": false, "text_config": {"model_type": "llama", "hidden_size": 2048, )"
     R"("intermediate_size": 8192, "num_hidden_layers": 24, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 32, "vocab_size": 49280, "max_position_embeddings": 8192}, )"
     R"("vision_config": {"model_type": "smolvlm_vision", "hidden_size": 1152, "intermediate_size": 4304, )"
     R"("num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 384, "patch_size": 14})"},
    {"mistralai/Mistral-Small-3.1-24B-Instruct-2503 mistralai/Mistral-Small-3.2-24B-Instruct-2506 "
     "mistralai/Magistral-Small-2509",
     24'011'361'280,
     R"("model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"], )"
     R"("spatial_merge_size": 2, "vision_feature_layer": -1, "multimodal_projector_bias": false, )"
     R"("tie_word_embeddings": false, "text_config": {"model_type": "mistral", "hidden_size": 5120, )"
     R"("intermediate_size": 32768, "num_hidden_layers": 40, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072, "max_position_embeddings": 131072, )"
     R"("hidden_act": "silu", "sliding_window": null}, "vision_config": {"model_type": "pixtral", )"
     R"("hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, )"
     R"("head_dim": 64, "image_size": 1540, "patch_size": 14, "hidden_act": "silu"})"},
    {"mistralai/Ministral-3-3B-Instruct-2512 mistralai/Ministral-3-3B-Reasoning-2512 "
     "mistralai/Ministral-3-3B-Base-2512",
     3'849'090'048,
     R"("model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"], )"
     R"("spatial_merge_size": 2, "vision_feature_layer": -1, "multimodal_projector_bias": false, )"
     R"("tie_word_embeddings": true, "text_config": {"model_type": "ministral3", "hidden_size": 3072, )"
     R"("intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072, "max_position_embeddings": 262144, )"
     R"("hidden_act": "silu", "sliding_window": null}, "vision_config": {"model_type": "pixtral", )"
     R"("hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, )"
     R"("head_dim": 64, "image_size": 1540, "patch_size": 14, "hidden_act": "silu"})"},
    {"Qwen/Qwen3-Next-80B-A3B-Instruct Qwen/Qwen3-Next-80B-A3B-Thinking", 79'674'391'296,
     R"("model_type": "qwen3_next", "architectures": ["Qwen3NextForCausalLM"], "hidden_size": 2048, )"
     R"("intermediate_size": 5120, "num_hidden_layers": 48, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 2, "head_dim": 256, "vocab_size": 151936, "max_position_embeddings": 262144, )"
     R"("hidden_act": "silu", "full_attention_interval": 4, "linear_conv_kernel_dim": 4, )"
     R"("linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16, )"
     R"("linear_num_value_heads": 32, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, )"
     R"("num_experts": 512, "num_experts_per_tok": 10, "decoder_sparse_step": 1, "mlp_only_layers": [], )"
     R"("partial_rotary_factor": 0.25, "tie_word_embeddings": false)"},
    {"Qwen/Qwen3.5-0.8B Qwen/Qwen3.5-0.8B-Base", 852'985'920,
     R"("architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", )"
     R"("text_config": {"attention_bias": false, "full_attention_interval": 4, "head_dim": 256, )"
     R"("hidden_act": "silu", "hidden_size": 1024, "intermediate_size": 3584, "linear_conv_kernel_dim": 4, )"
     R"("linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 16, )"
     R"("linear_value_head_dim": 128, "max_position_embeddings": 262144, "mlp_only_layers": [], )"
     R"("model_type": "qwen3_5_text", "num_attention_heads": 8, "num_hidden_layers": 24, )"
     R"("num_key_value_heads": 2, "tie_word_embeddings": true, "vocab_size": 248320}, )"
     R"("tie_word_embeddings": true, "vision_config": {"deepstack_visual_indexes": [], "depth": 12, )"
     R"("hidden_act": "gelu_pytorch_tanh", "hidden_size": 768, "in_channels": 3, "intermediate_size": 3072, )"
     R"("model_type": "qwen3_5", "num_heads": 12, "num_position_embeddings": 2304, "out_hidden_size": 1024, )"
     R"("patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"Qwen/Qwen3.5-2B Qwen/Qwen3.5-2B-Base", 2'213'241'664,
     R"("architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", )"
     R"("text_config": {"attention_bias": false, "full_attention_interval": 4, "head_dim": 256, )"
     R"("hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144, "linear_conv_kernel_dim": 4, )"
     R"("linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 16, )"
     R"("linear_value_head_dim": 128, "max_position_embeddings": 262144, "mlp_only_layers": [], )"
     R"("model_type": "qwen3_5_text", "num_attention_heads": 8, "num_hidden_layers": 24, )"
     R"("num_key_value_heads": 2, "tie_word_embeddings": true, "vocab_size": 248320}, )"
     R"("tie_word_embeddings": true, "vision_config": {"deepstack_visual_indexes": [], "depth": 24, )"
     R"("hidden_act": "gelu_pytorch_tanh", "hidden_size": 1024, "in_channels": 3, "intermediate_size": 4096, )"
     R"("model_type": "qwen3_5", "num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": 2048, )"
     R"("patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"Qwen/Qwen3.5-4B Qwen/Qwen3.5-4B-Base", 4'539'265'536,
     R"("architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", )"
     R"("text_config": {"attention_bias": false, "full_attention_interval": 4, "head_dim": 256, )"
     R"("hidden_act": "silu", "hidden_size": 2560, "intermediate_size": 9216, "linear_conv_kernel_dim": 4, )"
     R"("linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, )"
     R"("linear_value_head_dim": 128, "max_position_embeddings": 262144, "mlp_only_layers": [], )"
     R"("model_type": "qwen3_5_text", "num_attention_heads": 16, "num_hidden_layers": 32, )"
     R"("num_key_value_heads": 4, "tie_word_embeddings": true, "vocab_size": 248320}, )"
     R"("tie_word_embeddings": true, "vision_config": {"deepstack_visual_indexes": [], "depth": 24, )"
     R"("hidden_act": "gelu_pytorch_tanh", "hidden_size": 1024, "in_channels": 3, "intermediate_size": 4096, )"
     R"("model_type": "qwen3_5", "num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": 2560, )"
     R"("patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"Qwen/Qwen3.5-9B Qwen/Qwen3.5-9B-Base", 9'409'813'744,
     R"("architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", )"
     R"("text_config": {"attention_bias": false, "full_attention_interval": 4, "head_dim": 256, )"
     R"("hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288, "linear_conv_kernel_dim": 4, )"
     R"("linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, )"
     R"("linear_value_head_dim": 128, "max_position_embeddings": 262144, "mlp_only_layers": [], )"
     R"("model_type": "qwen3_5_text", "num_attention_heads": 16, "num_hidden_layers": 32, )"
     R"("num_key_value_heads": 4, "vocab_size": 248320}, "tie_word_embeddings": false, )"
     R"("vision_config": {"deepstack_visual_indexes": [], "depth": 27, "hidden_act": "gelu_pytorch_tanh", )"
     R"("hidden_size": 1152, "in_channels": 3, "intermediate_size": 4304, "model_type": "qwen3_5", )"
     R"("num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": 4096, "patch_size": 16, )"
     R"("spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"Qwen/Qwen3.5-27B Qwen/Qwen3.6-27B", 27'356'728'560,
     R"("architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", )"
     R"("text_config": {"attention_bias": false, "full_attention_interval": 4, "head_dim": 256, )"
     R"("hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 17408, "linear_conv_kernel_dim": 4, )"
     R"("linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 48, )"
     R"("linear_value_head_dim": 128, "max_position_embeddings": 262144, "mlp_only_layers": [], )"
     R"("model_type": "qwen3_5_text", "num_attention_heads": 24, "num_hidden_layers": 64, )"
     R"("num_key_value_heads": 4, "vocab_size": 248320}, "tie_word_embeddings": false, )"
     R"("vision_config": {"deepstack_visual_indexes": [], "depth": 27, "hidden_act": "gelu_pytorch_tanh", )"
     R"("hidden_size": 1152, "in_channels": 3, "intermediate_size": 4304, "model_type": "qwen3_5", )"
     R"("num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": 5120, "patch_size": 16, )"
     R"("spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"Qwen/Qwen3.5-35B-A3B Qwen/Qwen3.5-35B-A3B-Base Qwen/Qwen3.6-35B-A3B", 35'107'181'936,
     R"("architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe", )"
     R"("text_config": {"attention_bias": false, "full_attention_interval": 4, "head_dim": 256, )"
     R"("hidden_act": "silu", "hidden_size": 2048, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, )"
     R"("linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128, )"
     R"("max_position_embeddings": 262144, "mlp_only_layers": [], "model_type": "qwen3_5_moe_text", )"
     R"("moe_intermediate_size": 512, "num_attention_heads": 16, "num_experts": 256, "num_experts_per_tok": 8, )"
     R"("num_hidden_layers": 40, "num_key_value_heads": 2, "shared_expert_intermediate_size": 512, )"
     R"("vocab_size": 248320}, "tie_word_embeddings": false, "vision_config": {"deepstack_visual_indexes": [], )"
     R"("depth": 27, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 1152, "in_channels": 3, )"
     R"("intermediate_size": 4304, "model_type": "qwen3_5_moe", "num_heads": 16, )"
     R"("num_position_embeddings": 2304, "out_hidden_size": 2048, "patch_size": 16, "spatial_merge_size": 2, )"
     R"("temporal_patch_size": 2})"},
    {"Qwen/Qwen3.5-122B-A10B", 122'562'817'776,
     R"("architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe", )"
     R"("text_config": {"attention_bias": false, "full_attention_interval": 4, "head_dim": 256, )"
     R"("hidden_act": "silu", "hidden_size": 3072, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, )"
     R"("linear_num_key_heads": 16, "linear_num_value_heads": 64, "linear_value_head_dim": 128, )"
     R"("max_position_embeddings": 262144, "mlp_only_layers": [], "model_type": "qwen3_5_moe_text", )"
     R"("moe_intermediate_size": 1024, "num_attention_heads": 32, "num_experts": 256, "num_experts_per_tok": 8, )"
     R"("num_hidden_layers": 48, "num_key_value_heads": 2, "shared_expert_intermediate_size": 1024, )"
     R"("vocab_size": 248320}, "tie_word_embeddings": false, "vision_config": {"deepstack_visual_indexes": [], )"
     R"("depth": 27, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 1152, "in_channels": 3, )"
     R"("intermediate_size": 4304, "model_type": "qwen3_5_moe", "num_heads": 16, )"
     R"("num_position_embeddings": 2304, "out_hidden_size": 3072, "patch_size": 16, "spatial_merge_size": 2, )"
     R"("temporal_patch_size": 2})"},
    {"Qwen/Qwen3.5-397B-A17B", 396'802'360'816,
     R"("architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe", )"
     R"("text_config": {"attention_bias": false, "full_attention_interval": 4, "head_dim": 256, )"
     R"("hidden_act": "silu", "hidden_size": 4096, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, )"
     R"("linear_num_key_heads": 16, "linear_num_value_heads": 64, "linear_value_head_dim": 128, )"
     R"("max_position_embeddings": 262144, "mlp_only_layers": [], "model_type": "qwen3_5_moe_text", )"
     R"("moe_intermediate_size": 1024, "num_attention_heads": 32, "num_experts": 512, )"
     R"("num_experts_per_tok": 10, "num_hidden_layers": 60, "num_key_value_heads": 2, )"
     R"("shared_expert_intermediate_size": 1024, "vocab_size": 248320}, "tie_word_embeddings": false, )"
     R"("vision_config": {"deepstack_visual_indexes": [], "depth": 27, "hidden_act": "gelu_pytorch_tanh", )"
     R"("hidden_size": 1152, "in_channels": 3, "intermediate_size": 4304, "model_type": "qwen3_5_moe", )"
     R"("num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": 4096, "patch_size": 16, )"
     R"("spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"google/gemma-4-26B-A4B google/gemma-4-26B-A4B-it", 25'805'933'872,
     R"("architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", )"
     R"("text_config": {"attention_bias": false, "attention_k_eq_v": true, "enable_moe_block": true, )"
     R"("final_logit_softcapping": 30.0, "global_head_dim": 512, "head_dim": 256, )"
     R"("hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2816, "hidden_size_per_layer_input": 0, )"
     R"("intermediate_size": 2112, "max_position_embeddings": 262144, "model_type": "gemma4_text", )"
     R"("moe_intermediate_size": 704, "num_attention_heads": 16, "num_experts": 128, )"
     R"("num_global_key_value_heads": 2, "num_hidden_layers": 30, "num_key_value_heads": 8, )"
     R"("num_kv_shared_layers": 0, "sliding_window": 1024, "tie_word_embeddings": true, "top_k_experts": 8, )"
     R"("use_double_wide_mlp": false, "vocab_size": 262144, "vocab_size_per_layer_input": 262144}, )"
     R"("tie_word_embeddings": true, "vision_config": {"attention_bias": false, "global_head_dim": 72, )"
     R"("head_dim": 72, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152, )"
     R"("intermediate_size": 4304, "max_position_embeddings": 131072, "model_type": "gemma4_vision", )"
     R"("num_attention_heads": 16, "num_hidden_layers": 27, "num_key_value_heads": 16, "patch_size": 16, )"
     R"("pooling_kernel_size": 3, "position_embedding_size": 10240, "standardize": true, )"
     R"("use_clipped_linears": false}, "vision_soft_tokens_per_image": 280)"},
    {"google/gemma-4-31B google/gemma-4-31B-it", 31'273'086'512,
     R"("architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", )"
     R"("text_config": {"attention_bias": false, "attention_k_eq_v": true, "enable_moe_block": false, )"
     R"("final_logit_softcapping": 30.0, "global_head_dim": 512, "head_dim": 256, )"
     R"("hidden_activation": "gelu_pytorch_tanh", "hidden_size": 5376, "hidden_size_per_layer_input": 0, )"
     R"("intermediate_size": 21504, "max_position_embeddings": 262144, "model_type": "gemma4_text", )"
     R"("num_attention_heads": 32, "num_global_key_value_heads": 4, "num_hidden_layers": 60, )"
     R"("num_key_value_heads": 16, "num_kv_shared_layers": 0, "sliding_window": 1024, )"
     R"("tie_word_embeddings": true, "use_double_wide_mlp": false, "vocab_size": 262144, )"
     R"("vocab_size_per_layer_input": 262144}, "tie_word_embeddings": true, )"
     R"("vision_config": {"attention_bias": false, "global_head_dim": 72, "head_dim": 72, )"
     R"("hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152, "intermediate_size": 4304, )"
     R"("max_position_embeddings": 131072, "model_type": "gemma4_vision", "num_attention_heads": 16, )"
     R"("num_hidden_layers": 27, "num_key_value_heads": 16, "patch_size": 16, "pooling_kernel_size": 3, )"
     R"("position_embedding_size": 10240, "standardize": true, "use_clipped_linears": false}, )"
     R"("vision_soft_tokens_per_image": 280)"},
    {"meta-llama/Llama-4-Scout-17B-16E meta-llama/Llama-4-Scout-17B-16E-Instruct", 108'641'793'536,
     R"("architectures": ["Llama4ForConditionalGeneration"], "model_type": "llama4", )"
     R"("text_config": {"attention_bias": false, "attention_chunk_size": 8192, "head_dim": 128, )"
     R"("hidden_act": "silu", "hidden_size": 5120, "interleave_moe_layer_step": 1, "intermediate_size": 8192, )"
     R"("intermediate_size_mlp": 16384, "max_position_embeddings": 10485760, "model_type": "llama4_text", )"
     R"("num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8, )"
     R"("num_local_experts": 16, "use_qk_norm": true, "vocab_size": 202048})"},
    {"meta-llama/Llama-4-Maverick-17B-128E meta-llama/Llama-4-Maverick-17B-128E-Instruct", 401'583'781'376,
     R"("architectures": ["Llama4ForConditionalGeneration"], "model_type": "llama4", )"
     R"("text_config": {"attention_bias": false, "attention_chunk_size": 8192, "head_dim": 128, )"
     R"("hidden_act": "silu", "hidden_size": 5120, "interleave_moe_layer_step": 2, "intermediate_size": 8192, )"
     R"("intermediate_size_mlp": 16384, "max_position_embeddings": 1048576, "model_type": "llama4_text", )"
     R"("num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8, )"
     R"("num_local_experts": 128, "use_qk_norm": false, "vocab_size": 202048})"},
    {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31'577'937'344,
     R"("architectures": ["NemotronHForCausalLM"], "attention_bias": false, "chunk_size": 128, )"
     R"("conv_kernel": 4, "head_dim": 128, "hidden_size": 2688, )"
     R"("hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", )"
     R"("intermediate_size": 1856, "layer_norm_epsilon": 1e-05, "mamba_head_dim": 64, )"
     R"("mamba_hidden_act": "silu", "mamba_num_heads": 64, "mamba_proj_bias": false, )"
     R"("mamba_ssm_cache_dtype": "float32", "max_position_embeddings": 262144, "mlp_bias": false, )"
     R"("mlp_hidden_act": "relu2", "model_type": "nemotron_h", "moe_intermediate_size": 1856, )"
     R"("moe_shared_expert_intermediate_size": 3712, "n_group": 1, "n_groups": 8, "n_routed_experts": 128, )"
     R"("n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 32, "num_experts_per_tok": 6, )"
     R"("num_hidden_layers": 52, "num_key_value_heads": 2, "num_logits_to_keep": 1, )"
     R"("partial_rotary_factor": 1.0, "rescale_prenorm_residual": true, "residual_in_fp32": false, )"
     R"("ssm_state_size": 128, "tie_word_embeddings": false, "time_step_floor": 0.0001, "time_step_max": 0.1, )"
     R"("time_step_min": 0.001, "topk_group": 1, "use_bias": false, "use_conv_bias": true, )"
     R"("use_mamba_kernels": true, "vocab_size": 131072)"},
    {"MiniMaxAI/MiniMax-M2 MiniMaxAI/MiniMax-M2.5", 228'689'748'992,
     R"("architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2", "num_hidden_layers": 62, )"
     R"("hidden_size": 3072, "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, )"
     R"("intermediate_size": 1536, "vocab_size": 200064, "num_experts_per_tok": 8, "num_local_experts": 256, )"
     R"("max_position_embeddings": 196608, "rotary_dim": 64, "hidden_act": "silu", )"
     R"("tie_word_embeddings": false, "use_qk_norm": true, "qk_norm_type": "per_layer", )"
     R"("use_routing_bias": true, "use_mtp": true, "num_mtp_modules": 3, "shared_intermediate_size": 0)"},
    {"zai-org/GLM-5", 743'911'199'232,
     R"("architectures": ["GlmMoeDsaForCausalLM"], "attention_bias": false, "ep_size": 1, )"
     R"("first_k_dense_replace": 3, "hidden_act": "silu", "head_dim": 64, "hidden_size": 6144, )"
     R"("index_head_dim": 128, "index_n_heads": 32, "index_topk": 2048, "intermediate_size": 12288, )"
     R"("kv_lora_rank": 512, "max_position_embeddings": 202752, "moe_intermediate_size": 2048, )"
     R"("moe_layer_freq": 1, "model_type": "glm_moe_dsa", "n_group": 1, "n_routed_experts": 256, )"
     R"("n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 64, "num_experts_per_tok": 8, )"
     R"("num_hidden_layers": 78, "num_key_value_heads": 64, "num_nextn_predict_layers": 1, "pretraining_tp": 1, )"
     R"("q_lora_rank": 2048, "qk_head_dim": 256, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, )"
     R"("tie_word_embeddings": false, "topk_group": 1, "v_head_dim": 256, "vocab_size": 154880)"},
    {"deepseek-ai/DeepSeek-V3.2", 671'877'929'216,
     R"("architectures": ["DeepseekV32ForCausalLM"], "attention_bias": false, "ep_size": 1, )"
     R"("first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168, "index_head_dim": 128, )"
     R"("index_n_heads": 64, "index_topk": 2048, "intermediate_size": 18432, "kv_lora_rank": 512, )"
     R"("max_position_embeddings": 163840, "model_type": "deepseek_v32", "moe_intermediate_size": 2048, )"
     R"("moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, )"
     R"("norm_topk_prob": true, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, )"
     R"("num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, )"
     R"("qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "tie_word_embeddings": false, "topk_group": 4, )"
     R"("v_head_dim": 128, "vocab_size": 129280)"},
    {"deepseek-ai/DeepSeek-V4-Flash", 284'332'230'231,
     R"("architectures": ["DeepseekV4ForCausalLM"], "attention_bias": false, "hc_mult": 4, )"
     R"("hc_sinkhorn_iters": 20, "head_dim": 512, "hidden_act": "silu", "hidden_size": 4096, )"
     R"("index_head_dim": 128, "index_n_heads": 64, "index_topk": 512, "max_position_embeddings": 1048576, )"
     R"("model_type": "deepseek_v4", "moe_intermediate_size": 2048, "n_routed_experts": 256, )"
     R"("n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 64, "num_experts_per_tok": 6, )"
     R"("num_hidden_layers": 43, "num_hash_layers": 3, "num_key_value_heads": 1, "num_nextn_predict_layers": 1, )"
     R"("o_groups": 8, "o_lora_rank": 1024, "q_lora_rank": 1024, "qk_rope_head_dim": 64, "sliding_window": 128, )"
     R"("swiglu_limit": 10.0, "tie_word_embeddings": false, "vocab_size": 129280, "compress_ratios": [0, 0, 4, )"
     R"(128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, )"
     R"(128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 0])"},
    {"moonshotai/Kimi-K2-Instruct", 1'026'408'232'448,
     R"("architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "aux_loss_alpha": 0.001, )"
     R"("first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432, )"
     R"("kv_lora_rank": 512, "max_position_embeddings": 131072, "model_type": "kimi_k2", )"
     R"("moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 384, )"
     R"("n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 64, "num_experts_per_tok": 8, )"
     R"("num_hidden_layers": 61, "num_key_value_heads": 64, "num_nextn_predict_layers": 0, "pretraining_tp": 1, )"
     R"("q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "seq_aux": true, )"
     R"("tie_word_embeddings": false, "topk_group": 1, "v_head_dim": 128, "vocab_size": 163840)"},
    {"Qwen/Qwen3-Coder-480B-A35B-Instruct", 480'154'875'392,
     R"("architectures": ["Qwen3MoeForCausalLM"], "decoder_sparse_step": 1, "head_dim": 128, )"
     R"("hidden_act": "silu", "hidden_size": 6144, "intermediate_size": 8192, )"
     R"("max_position_embeddings": 262144, "max_window_layers": 62, "mlp_only_layers": [], )"
     R"("model_type": "qwen3_moe", "moe_intermediate_size": 2560, "norm_topk_prob": true, )"
     R"("num_attention_heads": 96, "num_experts": 160, "num_experts_per_tok": 8, "num_hidden_layers": 62, )"
     R"("num_key_value_heads": 8, "qkv_bias": false, "shared_expert_intermediate_size": 0, )"
     R"("tie_word_embeddings": false, "use_qk_norm": true, "use_sliding_window": false, "vocab_size": 151936)"},
    {"XiaomiMiMo/MiMo-7B-Base XiaomiMiMo/MiMo-7B-SFT XiaomiMiMo/MiMo-7B-RL", 7'833'409'536,
     R"("architectures": ["MiMoForCausalLM"], "model_type": "mimo", "num_hidden_layers": 36, )"
     R"("hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, )"
     R"("intermediate_size": 11008, "vocab_size": 151680, "max_position_embeddings": 32768, )"
     R"("hidden_act": "silu", "attention_bias": true, "sliding_window": 32768, "max_window_layers": 32, )"
     R"("use_sliding_window": false, "num_nextn_predict_layers": 1, "tie_word_embeddings": false)"},
    {"zai-org/GLM-4.5-Air zai-org/GLM-4.5-Air-Base", 106'852'245'504,
     R"("model_type": "glm4_moe", "architectures": ["Glm4MoeForCausalLM"], "hidden_size": 4096, )"
     R"("intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 46, )"
     R"("num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151552, )"
     R"("max_position_embeddings": 131072, "n_routed_experts": 128, "n_shared_experts": 1, )"
     R"("num_experts_per_tok": 8, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, )"
     R"("attention_bias": true, "use_qk_norm": false, "hidden_act": "silu", "partial_rotary_factor": 0.5, )"
     R"("tie_word_embeddings": false)"},
    {"ByteDance-Seed/Seed-OSS-36B-Base ByteDance-Seed/Seed-OSS-36B-Instruct", 36'151'104'512,
     R"("model_type": "seed_oss", "architectures": ["SeedOssForCausalLM"], "hidden_size": 5120, )"
     R"("intermediate_size": 27648, "num_hidden_layers": 64, "num_attention_heads": 80, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "vocab_size": 155136, "max_position_embeddings": 524288, )"
     R"("attention_bias": true, "attention_out_bias": false, "mlp_bias": false, "hidden_act": "silu", )"
     R"("attention_dropout": 0.1, "residual_dropout": 0.1, "tie_word_embeddings": false)"},
    {"THUDM/GLM-4-9B-0414 zai-org/GLM-4-9B-0414", 9'400'279'040,
     R"("model_type": "glm4", "architectures": ["Glm4ForCausalLM"], "hidden_size": 4096, )"
     R"("intermediate_size": 13696, "num_hidden_layers": 40, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 2, "head_dim": 128, "vocab_size": 151552, "max_position_embeddings": 32768, )"
     R"("attention_bias": true, "partial_rotary_factor": 0.5, "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"THUDM/GLM-4-32B-0414 zai-org/GLM-4-32B-0414", 32'566'081'536,
     R"("model_type": "glm4", "architectures": ["Glm4ForCausalLM"], "hidden_size": 6144, )"
     R"("intermediate_size": 23040, "num_hidden_layers": 61, "num_attention_heads": 48, )"
     R"("num_key_value_heads": 2, "head_dim": 128, "vocab_size": 151552, "max_position_embeddings": 32768, )"
     R"("attention_bias": false, "partial_rotary_factor": 0.5, "hidden_act": "silu", )"
     R"("tie_word_embeddings": false)"},
    {"ai21labs/Jamba-v0.1", 51'570'323'328,
     R"("model_type": "jamba", "architectures": ["JambaForCausalLM"], "hidden_size": 4096, )"
     R"("intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "vocab_size": 65536, "max_position_embeddings": 262144, "num_experts": 16, )"
     R"("num_experts_per_tok": 2, "expert_layer_period": 2, "expert_layer_offset": 1, "attn_layer_period": 8, )"
     R"("attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, )"
     R"("mamba_dt_rank": 256, "mamba_conv_bias": true, "mamba_proj_bias": false, "hidden_act": "silu", )"
     R"("tie_word_embeddings": false)"},
    {"allenai/Olmo-3-1025-7B allenai/Olmo-3-7B-Instruct allenai/Olmo-3-7B-Instruct-SFT allenai/Olmo-3-7B-Think",
     7'298'011'136,
     R"("model_type": "olmo3", "architectures": ["Olmo3ForCausalLM"], "hidden_size": 4096, )"
     R"("intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 32, "vocab_size": 100278, "max_position_embeddings": 65536, )"
     R"("sliding_window": 4096, "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"allenai/OLMoE-1B-7B-0924", 6'919'161'856,
     R"("model_type": "olmoe", "architectures": ["OlmoeForCausalLM"], "hidden_size": 2048, )"
     R"("intermediate_size": 1024, "num_hidden_layers": 16, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 16, "vocab_size": 50304, "max_position_embeddings": 4096, "num_experts": 64, )"
     R"("num_experts_per_tok": 8, "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"baidu/ERNIE-4.5-21B-A3B-PT", 21'825'437'888,
     R"("model_type": "ernie4_5_moe", "architectures": ["Ernie4_5_MoeForCausalLM"], "hidden_size": 2560, )"
     R"("intermediate_size": 12288, "num_hidden_layers": 28, "num_attention_heads": 20, )"
     R"("num_key_value_heads": 4, "vocab_size": 103424, "max_position_embeddings": 131072, )"
     R"("moe_intermediate_size": 1536, "moe_num_experts": 64, "moe_num_shared_experts": 2, "moe_k": 6, )"
     R"("moe_layer_start_index": 1, "moe_layer_end_index": 27, "moe_layer_interval": 1, "use_bias": false, )"
     R"("hidden_act": "silu", "tie_word_embeddings": true)"},
    {"Qwen/Qwen1.5-MoE-A2.7B Qwen/Qwen1.5-MoE-A2.7B-Chat", 14'315'784'192,
     R"("model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], "hidden_size": 2048, )"
     R"("intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 16, "vocab_size": 151936, "max_position_embeddings": 8192, )"
     R"("moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_experts": 60, )"
     R"("num_experts_per_tok": 4, "decoder_sparse_step": 1, "norm_topk_prob": false, "hidden_act": "silu", )"
     R"("tie_word_embeddings": false)"},
    {"Qwen/Qwen2-57B-A14B Qwen/Qwen2-57B-A14B-Instruct", 57'408'658'944,
     R"("model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], "hidden_size": 3584, )"
     R"("intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, )"
     R"("num_key_value_heads": 4, "vocab_size": 151936, "max_position_embeddings": 32768, )"
     R"("moe_intermediate_size": 2560, "shared_expert_intermediate_size": 20480, "num_experts": 64, )"
     R"("num_experts_per_tok": 8, "decoder_sparse_step": 1, "norm_topk_prob": false, "hidden_act": "silu", )"
     R"("tie_word_embeddings": false)"},
    {"tiiuae/Falcon-H1-0.5B-Base tiiuae/Falcon-H1-0.5B-Instruct", 521'411'104,
     R"("model_type": "falcon_h1", "architectures": ["FalconH1ForCausalLM"], "hidden_size": 1024, )"
     R"("intermediate_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 8, "num_key_value_heads": 2, )"
     R"("head_dim": 64, "mamba_d_ssm": 1536, "mamba_n_heads": 24, "mamba_d_head": 64, "mamba_n_groups": 1, )"
     R"("mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 256, )"
     R"("vocab_size": 32784, "max_position_embeddings": 16384, "mamba_conv_bias": true, )"
     R"("mamba_proj_bias": false, "attention_bias": false, "mlp_bias": false, "projectors_bias": false, )"
     R"("mamba_rms_norm": false, "mamba_norm_before_gate": false, "hidden_act": "silu", )"
     R"("tie_word_embeddings": false)"},
};

}  // namespace gpumem::summary::published_configs_detail
