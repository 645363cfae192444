// Input: none.
// Output: the published sizes of language models that have fields which few others have, and of those that read
// both ways, translate, sum up or read images by their publishers' own code, as their config.json files have them.
// published_model() finds them by their names.
// Source: the models' config files, as their makers publish them; ai-dynamo/aiconfigurator (@095f58a) and
// lidajiededa/vllm-vram-estimator (@3f8a4f0) have copies of many. Parameters: the models' cards. What no layer
// depends on (tokens, dropout that is off, initialisation) is left out.
#pragma once

#include "gpumem/summary/published_rows.hpp"

namespace gpumem::summary::published_models_detail {

inline constexpr PublishedRow kApartRows[] = {
    {"Qwen/Qwen3-Next-80B-A3B-Instruct Qwen/Qwen3-Next-80B-A3B-Thinking Qwen/Qwen3-Coder-Next "
     "Qwen/Qwen3-Coder-Next-Base",
     "apart", 79'674'391'296, "",
     R"("model_type": "qwen3_next", "architectures": ["Qwen3NextForCausalLM"], "hidden_size": 2048, )"
     R"("intermediate_size": 5120, "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2, )"
     R"("head_dim": 256, "vocab_size": 151936, "max_position_embeddings": 262144, "hidden_act": "silu", )"
     R"("full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, )"
     R"("linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, )"
     R"("moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 512, )"
     R"("num_experts_per_tok": 10, "decoder_sparse_step": 1, "mlp_only_layers": [], "partial_rotary_factor": 0.25, )"
     R"("tie_word_embeddings": false)"},
    {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "apart", 31'577'937'344, "",
     R"("architectures": ["NemotronHForCausalLM"], "attention_bias": false, "chunk_size": 128, "conv_kernel": 4, )"
     R"("head_dim": 128, "hidden_size": 2688, "hybrid_override_pattern": )"
     R"("MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", "intermediate_size": 1856, "layer_norm_epsilon": )"
     R"(1e-05, "mamba_head_dim": 64, "mamba_hidden_act": "silu", "mamba_num_heads": 64, "mamba_proj_bias": false, )"
     R"("mamba_ssm_cache_dtype": "float32", "max_position_embeddings": 262144, "mlp_bias": false, )"
     R"("mlp_hidden_act": "relu2", "model_type": "nemotron_h", "moe_intermediate_size": 1856, )"
     R"("moe_shared_expert_intermediate_size": 3712, "n_group": 1, "n_groups": 8, "n_routed_experts": 128, )"
     R"("n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 32, "num_experts_per_tok": 6, )"
     R"("num_hidden_layers": 52, "num_key_value_heads": 2, "num_logits_to_keep": 1, "partial_rotary_factor": 1.0, )"
     R"("rescale_prenorm_residual": true, "residual_in_fp32": false, "ssm_state_size": 128, "tie_word_embeddings": )"
     R"(false, "time_step_floor": 0.0001, "time_step_max": 0.1, "time_step_min": 0.001, "topk_group": 1, )"
     R"("use_bias": false, "use_conv_bias": true, "use_mamba_kernels": true, "vocab_size": 131072)"},
    {"MiniMaxAI/MiniMax-M2 MiniMaxAI/MiniMax-M2.1 MiniMaxAI/MiniMax-M2.5", "apart", 228'689'748'992, "",
     R"("architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2", "num_hidden_layers": 62, )"
     R"("hidden_size": 3072, "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, )"
     R"("intermediate_size": 1536, "vocab_size": 200064, "num_experts_per_tok": 8, "num_local_experts": 256, )"
     R"("max_position_embeddings": 196608, "rotary_dim": 64, "hidden_act": "silu", "tie_word_embeddings": false, )"
     R"("use_qk_norm": true, "qk_norm_type": "per_layer", "use_routing_bias": true, "use_mtp": true, )"
     R"("num_mtp_modules": 3, "shared_intermediate_size": 0)"},
    {"facebook/wav2vec2-base-960h facebook/wav2vec2-base-100h", "apart", 94'396'320, "",
     R"("architectures": ["Wav2Vec2ForCTC"], "model_type": "wav2vec2", "vocab_size": 32)"},
    {"facebook/hubert-base-ls960", "apart", 94'371'712, "",
     R"("architectures": ["HubertModel"], "model_type": "hubert", "vocab_size": 32)"},
    {"facebook/esm2_t6_8M_UR50D", "apart", 7'512'474, "",
     R"("architectures": ["EsmForMaskedLM"], "model_type": "esm", "hidden_size": 320, "num_hidden_layers": )"
     R"(6, "num_attention_heads": 20, "intermediate_size": 1280, "vocab_size": 33, )"
     R"("max_position_embeddings": 1026, "position_embedding_type": "rotary", "token_dropout": true, )"
     R"("emb_layer_norm_before": false)"},
    {"facebook/esm2_t12_35M_UR50D", "apart", 33'501'394, "",
     R"("architectures": ["EsmForMaskedLM"], "model_type": "esm", "hidden_size": 480, "num_hidden_layers": )"
     R"(12, "num_attention_heads": 20, "intermediate_size": 1920, "vocab_size": 33, )"
     R"("max_position_embeddings": 1026, "position_embedding_type": "rotary", "token_dropout": true, )"
     R"("emb_layer_norm_before": false)"},
    {"facebook/esm2_t30_150M_UR50D", "apart", 148'140'154, "",
     R"("architectures": ["EsmForMaskedLM"], "model_type": "esm", "hidden_size": 640, "num_hidden_layers": )"
     R"(30, "num_attention_heads": 20, "intermediate_size": 2560, "vocab_size": 33, )"
     R"("max_position_embeddings": 1026, "position_embedding_type": "rotary", "token_dropout": true, )"
     R"("emb_layer_norm_before": false)"},
    {"facebook/esm2_t33_650M_UR50D", "apart", 651'043'254, "",
     R"("architectures": ["EsmForMaskedLM"], "model_type": "esm", "hidden_size": 1280, "num_hidden_layers": )"
     R"(33, "num_attention_heads": 20, "intermediate_size": 5120, "vocab_size": 33, )"
     R"("max_position_embeddings": 1026, "position_embedding_type": "rotary", "token_dropout": true, )"
     R"("emb_layer_norm_before": false)"},
    {"BAAI/bge-m3", "apart", 567'754'752, "",
     R"("architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta", "hidden_size": 1024, )"
     R"("num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 250002, )"
     R"("max_position_embeddings": 8194, "type_vocab_size": 1)"},
    {"intfloat/multilingual-e5-large", "apart", 559'890'432, "",
     R"("architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta", "hidden_size": 1024, )"
     R"("num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 250002, )"
     R"("max_position_embeddings": 514, "type_vocab_size": 1)"},
    {"microsoft/deberta-v3-base", "apart", 183'831'552, "",
     R"("architectures": ["DebertaV2Model"], "model_type": "deberta-v2", "hidden_size": 768, )"
     R"("num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 128100, )"
     R"("max_position_embeddings": 512, "type_vocab_size": 0, "relative_attention": true, )"
     R"("position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": true, "pos_att_type": )"
     R"("p2c|c2p", "position_biased_input": false, "max_relative_positions": -1)"},
    {"state-spaces/mamba-130m-hf", "apart", 129'135'360, "",
     R"("architectures": ["MambaForCausalLM"], "model_type": "mamba", "hidden_size": 768, )"
     R"("num_hidden_layers": 24, "state_size": 16, "expand": 2, "conv_kernel": 4, "time_step_rank": 48, )"
     R"("intermediate_size": 1536, "vocab_size": 50280)"},
    {"RWKV/rwkv-4-169m-pile", "apart", 169'342'464, "",
     R"("architectures": ["RwkvForCausalLM"], "model_type": "rwkv", "hidden_size": 768, )"
     R"("attention_hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "vocab_size": )"
     R"(50277, "context_length": 1024)"},
    {"facebook/wav2vec2-base", "apart", 95'044'608, "",
     R"("architectures": ["Wav2Vec2ForPreTraining"], "model_type": "wav2vec2", "vocab_size": 32)"},
    {"THUDM/chatglm3-6b zai-org/chatglm3-6b THUDM/chatglm3-6b-base", "apart", 6'243'584'000, "",
     R"("architectures": ["ChatGLMForConditionalGeneration"], "model_type": "chatglm", "hidden_size": 4096, )"
     R"("num_layers": 28, "num_attention_heads": 32, "kv_channels": 128, "multi_query_attention": true, )"
     R"("multi_query_group_num": 2, "ffn_hidden_size": 13696, "add_qkv_bias": true, "padded_vocab_size": )"
     R"(65024)"},
    {"THUDM/glm-4-9b THUDM/glm-4-9b-chat zai-org/glm-4-9b zai-org/glm-4-9b-chat", "apart", 9'399'951'360, "",
     R"("architectures": ["ChatGLMForConditionalGeneration"], "model_type": "chatglm", "hidden_size": 4096, )"
     R"("num_layers": 40, "num_attention_heads": 32, "kv_channels": 128, "multi_query_attention": true, )"
     R"("multi_query_group_num": 2, "ffn_hidden_size": 13696, "add_qkv_bias": true, "padded_vocab_size": )"
     R"(151552)"},
    {"openbmb/MiniCPM-2B-sft-bf16 openbmb/MiniCPM-2B-dpo-bf16", "apart", 2'724'880'896, "",
     R"("architectures": ["MiniCPMForCausalLM"], "model_type": "minicpm", "hidden_size": 2304, )"
     R"("num_hidden_layers": 40, "num_attention_heads": 36, "num_key_value_heads": 36, "intermediate_size": )"
     R"(5760, "vocab_size": 122753, "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256)"},
    {"inclusionAI/Ling-mini-2.0 inclusionAI/Ring-mini-2.0", "apart", 16'255'638'528, "",
     R"("architectures": ["BailingMoeV2ForCausalLM"], "model_type": "bailing_moe", "hidden_size": 2048, )"
     R"("num_hidden_layers": 20, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, )"
     R"("intermediate_size": 5120, "num_experts": 256, "num_experts_per_tok": 8, "num_shared_experts": 1, )"
     R"("moe_intermediate_size": 512, "first_k_dense_replace": 1, "vocab_size": 157184, )"
     R"("partial_rotary_factor": 0.5, "tie_word_embeddings": false)"},
    {"arcee-ai/Trinity-Nano-Preview arcee-ai/Trinity-Nano-Base", "apart", 6'120'003'328, "",
     R"("model_type": "afmoe", "architectures": ["AfmoeForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 56, )"
     R"("num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 3072, )"
     R"("moe_intermediate_size": 256, "num_dense_layers": 2, "num_experts": 128, "num_experts_per_tok": 8, )"
     R"("num_shared_experts": 1, "mup_enabled": true, "global_attn_every_n_layers": 4, "sliding_window": 2048, )"
     R"("hidden_act": "silu", "max_position_embeddings": 131072, "vocab_size": 200192, "tie_word_embeddings": false)"},
    {"arcee-ai/Trinity-Mini arcee-ai/Trinity-Mini-Base", "apart", 26'123'974'400, "",
     R"("model_type": "afmoe", "architectures": ["AfmoeForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 32, )"
     R"("num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, )"
     R"("moe_intermediate_size": 1024, "num_dense_layers": 2, "num_experts": 128, "num_experts_per_tok": 8, )"
     R"("num_shared_experts": 1, "mup_enabled": true, "global_attn_every_n_layers": 4, "sliding_window": 2048, )"
     R"("hidden_act": "silu", "max_position_embeddings": 131072, "vocab_size": 200192, "tie_word_embeddings": false)"},
    {"LGAI-EXAONE/K-EXAONE-236B-A23B", "apart", 236'571'150'336, "",
     R"("model_type": "exaone_moe", "architectures": ["ExaoneMoeForCausalLM"], "hidden_size": 6144, )"
     R"("num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, )"
     R"("intermediate_size": 18432, "moe_intermediate_size": 2048, "first_k_dense_replace": 1, "num_experts": 128, )"
     R"("num_experts_per_tok": 8, "num_shared_experts": 1, "hidden_act": "silu", "sliding_window": 128, )"
     R"("max_position_embeddings": 262144, "vocab_size": 153600, "tie_word_embeddings": false)"},
    {"allenai/Olmo-Hybrid-7B", "apart", 7'430'870'688, "",
     R"("model_type": "olmo_hybrid", "architectures": ["OlmoHybridForCausalLM"], "hidden_size": 3840, )"
     R"("num_hidden_layers": 32, "num_attention_heads": 30, "num_key_value_heads": 30, "intermediate_size": 11008, )"
     R"("linear_num_key_heads": 30, "linear_num_value_heads": 30, "linear_key_head_dim": 96, )"
     R"("linear_value_head_dim": 192, "linear_conv_kernel_dim": 4, "rope_parameters": null, "hidden_act": "silu", )"
     R"("max_position_embeddings": 65536, "vocab_size": 100352, "tie_word_embeddings": false)"},
    {"allenai/FlexOlmo-7x7B-1T", "apart", 33'270'665'216, "",
     R"("model_type": "flex_olmo", "architectures": ["FlexOlmoForCausalLM"], "hidden_size": 4096, )"
     R"("num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008, )"
     R"("num_experts": 7, "num_experts_per_tok": 5, "hidden_act": "silu", "max_position_embeddings": 4096, )"
     R"("vocab_size": 100352, "tie_word_embeddings": false)"},
    {"zai-org/GLM-5", "apart", 743'911'199'232, "",
     R"("architectures": ["GlmMoeDsaForCausalLM"], "attention_bias": false, "ep_size": 1, "first_k_dense_replace": )"
     R"(3, "hidden_act": "silu", "head_dim": 64, "hidden_size": 6144, "index_head_dim": 128, "index_n_heads": 32, )"
     R"("index_topk": 2048, "intermediate_size": 12288, "kv_lora_rank": 512, "max_position_embeddings": 202752, )"
     R"("moe_intermediate_size": 2048, "moe_layer_freq": 1, "model_type": "glm_moe_dsa", "n_group": 1, )"
     R"("n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 64, )"
     R"("num_experts_per_tok": 8, "num_hidden_layers": 78, "num_key_value_heads": 64, "num_nextn_predict_layers": )"
     R"(1, "pretraining_tp": 1, "q_lora_rank": 2048, "qk_head_dim": 256, "qk_nope_head_dim": 192, )"
     R"("qk_rope_head_dim": 64, "tie_word_embeddings": false, "topk_group": 1, "v_head_dim": 256, "vocab_size": )"
     R"(154880)"},
    {"deepseek-ai/DeepSeek-V3.2", "apart", 671'877'929'216, "",
     R"("architectures": ["DeepseekV32ForCausalLM"], "attention_bias": false, "ep_size": 1, )"
     R"("first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168, "index_head_dim": 128, )"
     R"("index_n_heads": 64, "index_topk": 2048, "intermediate_size": 18432, "kv_lora_rank": 512, )"
     R"("max_position_embeddings": 163840, "model_type": "deepseek_v32", "moe_intermediate_size": 2048, )"
     R"("moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true, )"
     R"("num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, )"
     R"("num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, )"
     R"("tie_word_embeddings": false, "topk_group": 4, "v_head_dim": 128, "vocab_size": 129280)"},
    {"deepseek-ai/DeepSeek-V4-Flash", "apart", 284'332'230'231, "",
     R"("architectures": ["DeepseekV4ForCausalLM"], "attention_bias": false, "hc_mult": 4, "hc_sinkhorn_iters": )"
     R"(20, "head_dim": 512, "hidden_act": "silu", "hidden_size": 4096, "index_head_dim": 128, "index_n_heads": )"
     R"(64, "index_topk": 512, "max_position_embeddings": 1048576, "model_type": "deepseek_v4", )"
     R"("moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true, )"
     R"("num_attention_heads": 64, "num_experts_per_tok": 6, "num_hidden_layers": 43, "num_hash_layers": 3, )"
     R"("num_key_value_heads": 1, "num_nextn_predict_layers": 1, "o_groups": 8, "o_lora_rank": 1024, )"
     R"("q_lora_rank": 1024, "qk_rope_head_dim": 64, "sliding_window": 128, "swiglu_limit": 10.0, )"
     R"("tie_word_embeddings": false, "vocab_size": 129280, "compress_ratios": [0, 0, 4, 128, 4, 128, 4, 128, 4, )"
     R"(128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, )"
     R"(128, 4, 128, 4, 128, 4, 128, 4, 0])"},
    {"moonshotai/Kimi-K2-Instruct moonshotai/Kimi-K2-Base moonshotai/Kimi-K2-Instruct-0905", "apart", 1'026'408'232'448,
     "",
     R"("architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "aux_loss_alpha": 0.001, )"
     R"("first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432, )"
     R"("kv_lora_rank": 512, "max_position_embeddings": 131072, "model_type": "kimi_k2", "moe_intermediate_size": )"
     R"(2048, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 384, "n_shared_experts": 1, "norm_topk_prob": )"
     R"(true, "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": )"
     R"(64, "num_nextn_predict_layers": 0, "pretraining_tp": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, )"
     R"("qk_rope_head_dim": 64, "seq_aux": true, "tie_word_embeddings": false, "topk_group": 1, "v_head_dim": 128, )"
     R"("vocab_size": 163840)"},
    {"Qwen/Qwen3-Coder-480B-A35B-Instruct", "apart", 480'154'875'392, "",
     R"("architectures": ["Qwen3MoeForCausalLM"], "decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu", )"
     R"("hidden_size": 6144, "intermediate_size": 8192, "max_position_embeddings": 262144, "max_window_layers": )"
     R"(62, "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 2560, "norm_topk_prob": )"
     R"(true, "num_attention_heads": 96, "num_experts": 160, "num_experts_per_tok": 8, "num_hidden_layers": 62, )"
     R"("num_key_value_heads": 8, "qkv_bias": false, "shared_expert_intermediate_size": 0, "tie_word_embeddings": )"
     R"(false, "use_qk_norm": true, "use_sliding_window": false, "vocab_size": 151936)"},
    {"XiaomiMiMo/MiMo-7B-Base XiaomiMiMo/MiMo-7B-SFT XiaomiMiMo/MiMo-7B-RL", "apart", 7'833'409'536, "",
     R"("architectures": ["MiMoForCausalLM"], "model_type": "mimo", "num_hidden_layers": 36, "hidden_size": 4096, )"
     R"("num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 11008, )"
     R"("vocab_size": 151680, "max_position_embeddings": 32768, "hidden_act": "silu", "attention_bias": true, )"
     R"("sliding_window": 32768, "max_window_layers": 32, "use_sliding_window": false, "num_nextn_predict_layers": )"
     R"(1, "tie_word_embeddings": false)"},
    {"ByteDance-Seed/Seed-OSS-36B-Base ByteDance-Seed/Seed-OSS-36B-Instruct", "apart", 36'151'104'512, "",
     R"("model_type": "seed_oss", "architectures": ["SeedOssForCausalLM"], "hidden_size": 5120, )"
     R"("intermediate_size": 27648, "num_hidden_layers": 64, "num_attention_heads": 80, "num_key_value_heads": 8, )"
     R"("head_dim": 128, "vocab_size": 155136, "max_position_embeddings": 524288, "attention_bias": true, )"
     R"("attention_out_bias": false, "mlp_bias": false, "hidden_act": "silu", "attention_dropout": 0.1, )"
     R"("residual_dropout": 0.1, "tie_word_embeddings": false)"},
    {"THUDM/GLM-4-9B-0414 zai-org/GLM-4-9B-0414 zai-org/GLM-Z1-9B-0414 THUDM/GLM-Z1-9B-0414", "apart", 9'400'279'040,
     "",
     R"("model_type": "glm4", "architectures": ["Glm4ForCausalLM"], "hidden_size": 4096, "intermediate_size": )"
     R"(13696, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, )"
     R"("vocab_size": 151552, "max_position_embeddings": 32768, "attention_bias": true, "partial_rotary_factor": )"
     R"(0.5, "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"THUDM/GLM-4-32B-0414 zai-org/GLM-4-32B-0414 zai-org/GLM-Z1-32B-0414 THUDM/GLM-Z1-32B-0414", "apart",
     32'566'081'536, "",
     R"("model_type": "glm4", "architectures": ["Glm4ForCausalLM"], "hidden_size": 6144, "intermediate_size": )"
     R"(23040, "num_hidden_layers": 61, "num_attention_heads": 48, "num_key_value_heads": 2, "head_dim": 128, )"
     R"("vocab_size": 151552, "max_position_embeddings": 32768, "attention_bias": false, "partial_rotary_factor": )"
     R"(0.5, "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"ai21labs/Jamba-v0.1", "apart", 51'570'323'328, "",
     R"("model_type": "jamba", "architectures": ["JambaForCausalLM"], "hidden_size": 4096, "intermediate_size": )"
     R"(14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 65536, )"
     R"("max_position_embeddings": 262144, "num_experts": 16, "num_experts_per_tok": 2, "expert_layer_period": 2, )"
     R"("expert_layer_offset": 1, "attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16, )"
     R"("mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 256, "mamba_conv_bias": true, "mamba_proj_bias": )"
     R"(false, "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"allenai/OLMoE-1B-7B-0924 allenai/OLMoE-1B-7B-0924-SFT allenai/OLMoE-1B-7B-0924-Instruct allenai/OLMoE-1B-7B-0125 "
     "allenai/OLMoE-1B-7B-0125-SFT allenai/OLMoE-1B-7B-0125-Instruct",
     "apart", 6'919'161'856, "",
     R"("model_type": "olmoe", "architectures": ["OlmoeForCausalLM"], "hidden_size": 2048, "intermediate_size": )"
     R"(1024, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 50304, )"
     R"("max_position_embeddings": 4096, "num_experts": 64, "num_experts_per_tok": 8, "hidden_act": "silu", )"
     R"("tie_word_embeddings": false)"},
    {"baidu/ERNIE-4.5-21B-A3B-PT baidu/ERNIE-4.5-21B-A3B-Base-PT baidu/ERNIE-4.5-21B-A3B-Thinking", "apart",
     21'825'437'888, "",
     R"("model_type": "ernie4_5_moe", "architectures": ["Ernie4_5_MoeForCausalLM"], "hidden_size": 2560, )"
     R"("intermediate_size": 12288, "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4, )"
     R"("vocab_size": 103424, "max_position_embeddings": 131072, "moe_intermediate_size": 1536, "moe_num_experts": )"
     R"(64, "moe_num_shared_experts": 2, "moe_k": 6, "moe_layer_start_index": 1, "moe_layer_end_index": 27, )"
     R"("moe_layer_interval": 1, "use_bias": false, "hidden_act": "silu", "tie_word_embeddings": true)"},
    {"baidu/ERNIE-4.5-VL-28B-A3B-PT baidu/ERNIE-4.5-VL-28B-A3B-Base-PT baidu/ERNIE-4.5-VL-28B-A3B-Thinking", "apart",
     29'399'294'336, "",
     R"("model_type": "ernie4_5_vl_moe", "architectures": ["Ernie4_5_VLMoeForConditionalGeneration"], )"
     R"("tie_word_embeddings": true, "text_config": {"hidden_size": 2560, "intermediate_size": 12288, )"
     R"("num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4, "vocab_size": 103424, )"
     R"("max_position_embeddings": 131072, "moe_intermediate_size": [1536, 512], "moe_num_experts": 64, "moe_k": 6, )"
     R"("moe_num_shared_experts": 2, "use_bias": false, "hidden_act": "silu"}, "vision_config": {"depth": 32, )"
     R"("hidden_size": 1280, "intermediate_size": 5120, "num_heads": 16, "patch_size": 14})"},
    {"Qwen/Qwen1.5-MoE-A2.7B Qwen/Qwen1.5-MoE-A2.7B-Chat", "apart", 14'315'784'192, "",
     R"("model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], "hidden_size": 2048, )"
     R"("intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16, )"
     R"("vocab_size": 151936, "max_position_embeddings": 8192, "moe_intermediate_size": 1408, )"
     R"("shared_expert_intermediate_size": 5632, "num_experts": 60, "num_experts_per_tok": 4, )"
     R"("decoder_sparse_step": 1, "norm_topk_prob": false, "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"Qwen/Qwen2-57B-A14B Qwen/Qwen2-57B-A14B-Instruct", "apart", 57'408'658'944, "",
     R"("model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], "hidden_size": 3584, )"
     R"("intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, )"
     R"("vocab_size": 151936, "max_position_embeddings": 32768, "moe_intermediate_size": 2560, )"
     R"("shared_expert_intermediate_size": 20480, "num_experts": 64, "num_experts_per_tok": 8, )"
     R"("decoder_sparse_step": 1, "norm_topk_prob": false, "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"tiiuae/Falcon-H1-0.5B-Base tiiuae/Falcon-H1-0.5B-Instruct", "apart", 521'411'104, "",
     R"("model_type": "falcon_h1", "architectures": ["FalconH1ForCausalLM"], "hidden_size": 1024, )"
     R"("intermediate_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 8, "num_key_value_heads": 2, )"
     R"("head_dim": 64, "mamba_d_ssm": 1536, "mamba_n_heads": 24, "mamba_d_head": 64, "mamba_n_groups": 1, )"
     R"("mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 256, "vocab_size": 32784, )"
     R"("max_position_embeddings": 16384, "mamba_conv_bias": true, "mamba_proj_bias": false, "attention_bias": )"
     R"(false, "mlp_bias": false, "projectors_bias": false, "mamba_rms_norm": false, "mamba_norm_before_gate": )"
     R"(false, "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"nvidia/NVIDIA-Nemotron-Nano-9B-v2", "apart", 8'888'227'328, "",
     R"("model_type": "nemotron_h", "architectures": ["NemotronHForCausalLM"], "hidden_size": 4480, )"
     R"("intermediate_size": 15680, "num_hidden_layers": 56, "num_attention_heads": 40, "num_key_value_heads": 8, )"
     R"("head_dim": 128, "mamba_num_heads": 128, "mamba_head_dim": 80, "ssm_state_size": 128, "n_groups": 8, )"
     R"("conv_kernel": 4, "expand": 2, "vocab_size": 131072, "max_position_embeddings": 131072, "mlp_hidden_act": )"
     R"("relu2", "hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-", )"
     R"("tie_word_embeddings": false)"},
    {"LGAI-EXAONE/EXAONE-4.0-1.2B", "apart", 1'279'391'488, "",
     R"("model_type": "exaone4", "architectures": ["Exaone4ForCausalLM"], "hidden_size": 2048, )"
     R"("intermediate_size": 4096, "num_hidden_layers": 30, "num_attention_heads": 32, "num_key_value_heads": 8, )"
     R"("head_dim": 64, "vocab_size": 102400, "max_position_embeddings": 65536, "sliding_window": null, )"
     R"("hidden_act": "silu", "tie_word_embeddings": true)"},
    {"baidu/ERNIE-4.5-0.3B-PT baidu/ERNIE-4.5-0.3B-Base-PT", "apart", 360'748'032, "",
     R"("model_type": "ernie4_5", "architectures": ["Ernie4_5ForCausalLM"], "hidden_size": 1024, )"
     R"("intermediate_size": 3072, "num_hidden_layers": 18, "num_attention_heads": 16, "num_key_value_heads": 2, )"
     R"("head_dim": 128, "vocab_size": 103424, "max_position_embeddings": 131072, "use_bias": false, )"
     R"("hidden_act": "silu", "tie_word_embeddings": true)"},
    {"CohereLabs/c4ai-command-r7b-12-2024 CohereForAI/c4ai-command-r7b-12-2024", "apart", 8'028'033'024, "",
     R"("model_type": "cohere2", "architectures": ["Cohere2ForCausalLM"], "hidden_size": 4096, )"
     R"("intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, )"
     R"("head_dim": 128, "vocab_size": 256000, "max_position_embeddings": 132096, "sliding_window": 4096, )"
     R"("sliding_window_pattern": 4, "hidden_act": "silu", "tie_word_embeddings": true)"},
    {"tencent/Hunyuan-1.8B-Instruct tencent/Hunyuan-1.8B-Pretrain", "apart", 1'791'080'448, "",
     R"("model_type": "hunyuan_v1_dense", "architectures": ["HunYuanDenseV1ForCausalLM"], "hidden_size": 2048, )"
     R"("intermediate_size": 6144, "num_hidden_layers": 32, "num_attention_heads": 16, "num_key_value_heads": 4, )"
     R"("head_dim": 128, "vocab_size": 120818, "max_position_embeddings": 32768, "hidden_act": "silu", )"
     R"("tie_word_embeddings": true)"},
    {"tencent/Hunyuan-0.5B-Instruct tencent/Hunyuan-0.5B-Pretrain", "apart", 539'010'048, "",
     R"("model_type": "hunyuan_v1_dense", "architectures": ["HunYuanDenseV1ForCausalLM"], "hidden_size": 1024, )"
     R"("intermediate_size": 3584, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 8, )"
     R"("head_dim": 128, "vocab_size": 120818, "max_position_embeddings": 32768, "hidden_act": "silu", )"
     R"("tie_word_embeddings": true)"},
    {"arcee-ai/AFM-4.5B arcee-ai/AFM-4.5B-Base", "apart", 4'619'184'640, "",
     R"("model_type": "arcee", "architectures": ["ArceeForCausalLM"], "hidden_size": 2560, )"
     R"("intermediate_size": 18432, "num_hidden_layers": 36, "num_attention_heads": 20, "num_key_value_heads": 4, )"
     R"("head_dim": 128, "vocab_size": 128004, "max_position_embeddings": 65536, "hidden_act": "relu2", )"
     R"("tie_word_embeddings": false)"},
    {"tencent/Hunyuan-7B-Instruct tencent/Hunyuan-7B-Pretrain", "apart", 7'504'568'320, "",
     R"("model_type": "hunyuan_v1_dense", "architectures": ["HunYuanDenseV1ForCausalLM"], "hidden_size": 4096, )"
     R"("intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, )"
     R"("head_dim": 128, "vocab_size": 128167, "max_position_embeddings": 32768, "hidden_act": "silu", )"
     R"("tie_word_embeddings": true)"},
    {"facebook/nllb-200-distilled-600M", "m2m_100", 615'073'792, "1024 12 12 4096 4096 256206"},
    {"facebook/nllb-200-distilled-1.3B facebook/nllb-200-1.3B", "m2m_100", 1'370'638'336,
     "1024 24 24 8192 8192 256206"},
    {"facebook/nllb-200-3.3B", "m2m_100", 3'344'863'232, "2048 24 24 8192 8192 256206"},
    {"facebook/m2m100_418M", "m2m_100", 483'905'536, "1024 12 12 4096 4096 128112"},
    {"facebook/m2m100_1.2B", "m2m_100", 1'239'470'080, "1024 24 24 8192 8192 128112"},
    {"answerdotai/ModernBERT-base", "modernbert", 149'655'232, "768 1152 22 12"},
    {"answerdotai/ModernBERT-large", "modernbert", 395'881'664, "1024 2624 28 16"},
    {"Alibaba-NLP/gte-modernbert-base", "apart", 149'014'272, "",
     R"("model_type": "modernbert", "architectures": ["ModernBertModel"], "hidden_size": 768, )"
     R"("intermediate_size": 1152, "num_hidden_layers": 22, "num_attention_heads": 12, "vocab_size": 50368, )"
     R"("max_position_embeddings": 8192, "global_attn_every_n_layers": 3, "local_attention": 128)"},
    {"sentence-transformers/all-MiniLM-L6-v2", "apart", 22'713'216, "",
     R"("model_type": "bert", "architectures": ["BertModel"], "hidden_act": "gelu", "hidden_size": 384, )"
     R"("intermediate_size": 1536, "num_hidden_layers": 6, "num_attention_heads": 12, "vocab_size": 30522, )"
     R"("max_position_embeddings": 512, "type_vocab_size": 2)"},
    {"google/embeddinggemma-300m", "apart", 302'863'104, "",
     R"("model_type": "gemma3_text", "architectures": ["Gemma3TextModel"], "hidden_size": 768, )"
     R"("intermediate_size": 1152, "num_hidden_layers": 24, "num_attention_heads": 3, "num_key_value_heads": 1, )"
     R"("head_dim": 256, "vocab_size": 262144, "max_position_embeddings": 2048, "sliding_window": 512, )"
     R"("sliding_window_pattern": 6, "hidden_activation": "gelu_pytorch_tanh")"},
    {"facebook/mbart-large-50 facebook/mbart-large-50-many-to-many-mmt", "apart", 610'879'488, "",
     R"("model_type": "mbart", "architectures": ["MBartForConditionalGeneration"], "d_model": 1024, )"
     R"("encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096, )"
     R"("encoder_attention_heads": 16, "decoder_attention_heads": 16, "vocab_size": 250054, )"
     R"("max_position_embeddings": 1024, "scale_embedding": true)"},
    {"microsoft/Florence-2-base microsoft/Florence-2-base-ft "
     "florence-community/Florence-2-base florence-community/Florence-2-base-ft",
     "apart", 231'414'016, "",
     R"("model_type": "florence2", "architectures": ["Florence2ForConditionalGeneration"], "text_config": )"
     R"({"model_type": "bart", "vocab_size": 51289, "d_model": 768, "encoder_layers": 6, "decoder_layers": 6, )"
     R"("encoder_attention_heads": 12, "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": )"
     R"(3072, "max_position_embeddings": 1024, "dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1}, )"
     R"("vision_config": {"embed_dim": [128, 256, 512, 1024], "num_heads": [4, 8, 16, 32], "num_groups": )"
     R"([4, 8, 16, 32], "projection_dim": 768})"},
    {"microsoft/Florence-2-large microsoft/Florence-2-large-ft "
     "florence-community/Florence-2-large florence-community/Florence-2-large-ft",
     "apart", 770'173'952, "",
     R"("model_type": "florence2", "architectures": ["Florence2ForConditionalGeneration"], "text_config": )"
     R"({"model_type": "bart", "vocab_size": 51289, "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, )"
     R"("encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim": )"
     R"(4096, "max_position_embeddings": 1024, "dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1}, )"
     R"("vision_config": {"embed_dim": [256, 512, 1024, 2048], "num_heads": [8, 16, 32, 64], "num_groups": )"
     R"([8, 16, 32, 64], "projection_dim": 1024})"},
    {"sesame/csm-1b unsloth/csm-1b", "apart", 1'632'100'161, "",
     R"("model_type": "csm", "architectures": ["CsmForConditionalGeneration"], "hidden_size": 2048, )"
     R"("intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, )"
     R"("head_dim": 64, "vocab_size": 2051, "text_vocab_size": 128256, "num_codebooks": 32, "hidden_act": "silu", )"
     R"("max_position_embeddings": 2048, "depth_decoder_config": {"hidden_size": 1024, "intermediate_size": 8192, )"
     R"("num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": )"
     R"(2051, "num_codebooks": 32, "backbone_hidden_size": 2048, "hidden_act": "silu"}, "codec_config": {})"},
    {"openbmb/MiniCPM-V-2_6", "apart", 8'099'175'152, "",
     R"("architectures": ["MiniCPMV"], "model_type": "minicpmv", "version": 2.6, "batch_vision_input": true, )"
     R"("drop_vision_last_layer": false, "hidden_act": "silu", "hidden_size": 3584, "image_size": 448, )"
     R"("intermediate_size": 18944, "max_window_layers": 28, "num_attention_heads": 28, "num_hidden_layers": )"
     R"(28, "num_key_value_heads": 4, "patch_size": 14, "query_num": 64, "slice_config": {"max_slice_nums": 9, )"
     R"("patch_size": 14, "model_type": "minicpmv"}, "slice_mode": true, "tie_word_embeddings": false, )"
     R"("use_image_id": true, "use_sliding_window": false, "vision_batch_size": 16, "vision_config": )"
     R"({"hidden_size": 1152, "image_size": 980, "intermediate_size": 4304, "model_type": )"
     R"("siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14}, )"
     R"("vocab_size": 151666)"},
    {"openbmb/MiniCPM-V-4_5", "apart", 8'695'895'280, "",
     R"("architectures": ["MiniCPMV"], "model_type": "minicpmv", "version": 4.5, "batch_vision_input": true, )"
     R"("drop_vision_last_layer": false, "hidden_act": "silu", "hidden_size": 4096, "image_size": 448, )"
     R"("intermediate_size": 12288, "max_window_layers": 28, "num_attention_heads": 32, "num_hidden_layers": )"
     R"(36, "num_key_value_heads": 8, "patch_size": 14, "query_num": 64, "slice_config": {"max_slice_nums": 9, )"
     R"("patch_size": 14, "model_type": "minicpmv"}, "slice_mode": true, "tie_word_embeddings": false, )"
     R"("use_image_id": true, "use_sliding_window": false, "vision_batch_size": 16, "vision_config": )"
     R"({"hidden_size": 1152, "image_size": 980, "intermediate_size": 4304, "model_type": )"
     R"("siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14}, )"
     R"("vocab_size": 151748, "head_dim": 128, "attention_bias": false, "batch_3d_resampler": true)"},
    {"rednote-hilab/dots.ocr", "apart", 3'039'179'264, "",
     R"("architectures": ["DotsOCRForCausalLM"], "model_type": "dots_ocr", "attention_bias": true, )"
     R"("hidden_act": "silu", "hidden_size": 1536, "intermediate_size": 8960, "max_window_layers": 28, )"
     R"("num_attention_heads": 12, "num_hidden_layers": 28, "num_key_value_heads": 2, "sliding_window": 131072, )"
     R"("tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936, "vision_config": )"
     R"({"embed_dim": 1536, "hidden_size": 1536, "intermediate_size": 4224, "num_hidden_layers": 42, )"
     R"("num_attention_heads": 12, "num_channels": 3, "patch_size": 14, "post_norm": true, )"
     R"("spatial_merge_size": 2, "temporal_patch_size": 1, "use_bias": false, "attn_implementation": )"
     R"("flash_attention_2", "init_merger_std": 0.02, "is_causal": false})"},
    {"stepfun-ai/GOT-OCR-2.0-hf", "apart", 560'528'640, "",
     R"("architectures": ["GotOcr2ForConditionalGeneration"], "model_type": "got_ocr2", "text_config": )"
     R"({"model_type": "qwen2", "vocab_size": 151860, "hidden_size": 1024, "intermediate_size": 2816, )"
     R"("num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16, "tie_word_embeddings": )"
     R"(true}, "vision_config": {"model_type": "", "global_attn_indexes": [2, 5, 8, 11], "hidden_act": "gelu", )"
     R"("hidden_size": 768, "image_size": 1024, "mlp_dim": 3072, "num_attention_heads": 12, "num_channels": 3, )"
     R"("num_hidden_layers": 12, "output_channels": 256, "patch_size": 16, "qkv_bias": true, "use_abs_pos": )"
     R"(true, "use_rel_pos": true, "window_size": 14})"},
    {"tencent/HunyuanOCR", "apart", 996'208'112, "",
     R"("architectures": ["HunYuanVLForConditionalGeneration"], "model_type": "hunyuan_vl", "attention_bias": )"
     R"(false, "attention_head_dim": 128, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, )"
     R"("intermediate_size": 3584, "mlp_bias": false, "norm_type": "rms", "num_attention_heads": 16, )"
     R"("num_experts": 1, "num_hidden_layers": 24, "num_key_value_heads": 8, "org_vocab_size": 120818, )"
     R"("pad_id": 120002, "routed_scaling_factor": false, "tie_word_embeddings": true, "use_cla": false, )"
     R"("use_qk_norm": true, "vocab_size": 120818, "text_start_id": 7, "text_end_id": 8, "vision_config": )"
     R"({"adaptor_patch_size": 16, "add_patchemb_bias": true, "cat_extra_token": 1, "hidden_act": "gelu", )"
     R"("hidden_size": 1152, "img_max_token_num": 4096, "intermediate_size": 4304, "interpolate_mode": )"
     R"("bilinear", "max_image_size": 2048, "max_vit_seq_len": 16384, "num_attention_heads": 16, )"
     R"("num_channels": 3, "num_hidden_layers": 27, "out_hidden_size": 1024, "patch_size": 16, )"
     R"("spatial_merge_size": 2})"},
    {"AIDC-AI/Ovis2.5-2B", "apart", 2'570'429'672, "",
     R"("architectures": ["Ovis2_5"], "model_type": "ovis2_5", "hidden_size": 2048, "visual_vocab_size": 65536, )"
     R"("llm_config": {"model_type": "qwen3", "attention_bias": false, "head_dim": 128, "hidden_act": "silu", )"
     R"("hidden_size": 2048, "intermediate_size": 6144, "num_attention_heads": 16, "num_hidden_layers": 28, )"
     R"("num_key_value_heads": 8, "tie_word_embeddings": true, "vocab_size": 151936, "max_position_embeddings": )"
     R"(40960}, "vit_config": {"model_type": "siglip2_navit", "hidden_act": "gelu_pytorch_tanh", "hidden_size": )"
     R"(1152, "hidden_stride": 2, "image_size": 512, "intermediate_size": 4304, "num_attention_heads": 16, )"
     R"("num_channels": 3, "num_hidden_layers": 27, "num_patches": -1, "patch_size": 16, )"
     R"("preserve_original_pe": true, "temporal_patch_size": 1, "use_rope": true, "window_size": 112})"},
    {"Kwai-Keye/Keye-VL-8B-Preview", "apart", 8'696'828'736, "",
     R"("architectures": ["KeyeForConditionalGeneration"], "model_type": "Keye", "attention_bias": false, )"
     R"("head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288, )"
     R"("max_window_layers": 36, "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8, )"
     R"("tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936, "vision_config": )"
     R"({"hidden_size": 1152, "image_size": 384, "intermediate_size": 4304, "model_type": )"
     R"("siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, )"
     R"("spatial_merge_size": 2, "tokens_per_second": 2, "temporal_patch_size": 2})"},
    {"internlm/Intern-S1-mini", "apart", 8'538'804'224, "",
     R"("architectures": ["InternS1ForConditionalGeneration"], "model_type": "interns1", "downsample_ratio": )"
     R"(0.5, "projector_hidden_act": "gelu", "vision_feature_layer": -1, "vision_feature_select_strategy": )"
     R"("default", "tie_word_embeddings": false, "text_config": {"model_type": "qwen3", "attention_bias": )"
     R"(false, "head_dim": 128, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, )"
     R"("num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 153216, "tie_word_embeddings": )"
     R"(false, "hidden_act": "silu"}, "vision_config": {"model_type": "interns1_vision", "attention_bias": )"
     R"(true, "drop_path_rate": 0.1, "dropout": 0.0, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, )"
     R"("hidden_size": 1024, "image_size": [448, 448], "intermediate_size": 4096, "layer_scale_init_value": )"
     R"(0.1, "norm_type": "layer_norm", "num_attention_heads": 16, "num_channels": 3, "num_hidden_layers": 24, )"
     R"("patch_size": [14, 14], "projection_dropout": 0.0, "use_absolute_position_embeddings": true, )"
     R"("use_mask_token": false, "use_mean_pooling": true, "use_qk_norm": false})"},
    {"LGAI-EXAONE/EXAONE-4.5-33B", "apart", 33'813'987'328, "",
     R"("architectures": ["Exaone4_5_ForConditionalGeneration"], "model_type": "exaone4_5", "text_config": )"
     R"({"model_type": "exaone4_5_text", "hidden_size": 5120, "intermediate_size": 27392, "num_hidden_layers": )"
     R"(64, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 153600, )"
     R"("sliding_window": 4096, "sliding_window_pattern": "LLLG", "tie_word_embeddings": false}, )"
     R"("vision_config": {"model_type": "exaone4_5_vision", "depth": 28, "hidden_size": 2048, )"
     R"("intermediate_size": 5120, "num_heads": 32, "num_key_value_heads": 8, "out_hidden_size": 5120, )"
     R"("patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, )"
     R"("fullatt_block_indexes": [6, 13, 20, 27]})"},
    {"allenai/Molmo2-8B", "apart", 8'661'703'120, "",
     R"("architectures": ["Molmo2ForConditionalGeneration"], "model_type": "molmo2", "adapter_config": )"
     R"({"model_type": "", "float32_attention": true, "head_dim": 72, "hidden_act": "silu", "hidden_size": )"
     R"(1152, "intermediate_size": 12288, "num_attention_heads": 16, "num_key_value_heads": 16, )"
     R"("pooling_attention_mask": true, "text_hidden_size": 4096, "vit_layers": [-3, -9]}, "image_col_id": )"
     R"(151939, "image_patch_id": 151938, "tie_word_embeddings": false, "use_frame_special_tokens": true, )"
     R"("text_config": {"model_type": "molmo2_text", "additional_vocab_size": 128, "attn_implementation": )"
     R"("sdpa", "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288, )"
     R"("norm_after": false, "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8, )"
     R"("qk_norm_type": "qwen3", "qkv_bias": false, "use_qk_norm": true, "vocab_size": 151936}, "vit_config": )"
     R"({"model_type": "molmo2", "attn_implementation": "sdpa", "float32_attention": true, "head_dim": 72, )"
     R"("hidden_act": "gelu_pytorch_tanh", "hidden_size": 1152, "image_default_input_size": [378, 378], )"
     R"("image_num_pos": 729, "image_patch_size": 14, "intermediate_size": 4304, "num_attention_heads": 16, )"
     R"("num_hidden_layers": 27, "num_key_value_heads": 16})"},
    {"LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct", "apart", 7'818'448'896, "",
     R"("architectures": ["ExaoneForCausalLM"], "model_type": "exaone", "activation_function": "silu", )"
     R"("head_dim": 128, "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "num_layers": 32, "tie_word_embeddings": false, "vocab_size": 102400)"},
    {"Tele-AI/TeleChat2-7B", "apart", 7'617'351'680, "",
     R"("architectures": ["TeleChat2ForCausalLM"], "model_type": "telechat", )"
     R"("apply_residual_connection_post_layernorm": false, "attention_softmax_in_fp32": true, )"
     R"("embed_layernorm": false, "ffn_hidden_size": 12288, "flash_attn": true, "hidden_size": 4096, "n_head": )"
     R"(32, "n_layer": 30, "num_key_value_heads": 32, "seq_length": 8192, "skip_bias_add": false, )"
     R"("skip_bias_add_qkv": false, "vocab_size": 131072, "tie_word_embeddings": false)"},
    {"inceptionai/Jais-2-8B-Chat", "apart", 8'090'401'280, "",
     R"("architectures": ["Jais2ForCausalLM"], "model_type": "jais2", "hidden_size": 3328, "intermediate_size": )"
     R"(26624, "num_hidden_layers": 32, "num_attention_heads": 26, "num_key_value_heads": 26, "head_dim": 128, )"
     R"("hidden_act": "relu2", "attention_bias": true, "mlp_bias": true, "vocab_size": 150272, )"
     R"("tie_word_embeddings": false)"},
    {"OrionStarAI/Orion-14B-Chat OrionStarAI/Orion-14B-Base", "apart", 14'498'703'360, "",
     R"("architectures": ["OrionForCausalLM"], "model_type": "orion", "attention_bias": false, "hidden_act": )"
     R"("silu", "hidden_size": 5120, "intermediate_size": 15360, "num_attention_heads": 40, )"
     R"("num_hidden_layers": 40, "num_key_value_heads": 40, "vocab_size": 84608, "tie_word_embeddings": false, )"
     R"("max_sequence_length": 4096)"},
    {"internlm/internlm-7b internlm/internlm-chat-7b", "apart", 7'321'948'160, "",
     R"("architectures": ["InternLMForCausalLM"], "model_type": "internlm", "bias": true, "hidden_act": "silu", )"
     R"("hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "num_hidden_layers": 32, )"
     R"("tie_word_embeddings": false, "vocab_size": 103168)"},
    {"jhu-clsp/ettin-decoder-400m", "apart", 395'881'664, "",
     R"("architectures": ["ModernBertDecoderForCausalLM"], "model_type": "modernbert-decoder", )"
     R"("attention_bias": false, "classifier_activation": "gelu", "classifier_bias": false, "decoder_bias": )"
     R"(true, "global_attn_every_n_layers": 3, "hidden_activation": "gelu", "hidden_size": 1024, )"
     R"("intermediate_size": 2624, "local_attention": 128, "mlp_bias": false, "norm_bias": false, )"
     R"("num_attention_heads": 16, "num_hidden_layers": 28, "vocab_size": 50368, "tie_word_embeddings": true)"},
    {"google/pegasus-xsum", "pegasus", 569'748'480, "96103 512"},
    {"google/pegasus-large google/pegasus-cnn_dailymail", "pegasus", 570'797'056, "96103 1024"},
    {"Helsinki-NLP/opus-mt-en-de", "apart", 74'410'496, "",
     R"("model_type": "marian", "architectures": ["MarianMTModel"], "d_model": 512, "encoder_layers": 6, )"
     R"("decoder_layers": 6, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "encoder_attention_heads": 8, )"
     R"("decoder_attention_heads": 8, "vocab_size": 58101, "max_position_embeddings": 512, "scale_embedding": )"
     R"(true, "activation_function": "swish")"}};

}  // namespace gpumem::summary::published_models_detail
