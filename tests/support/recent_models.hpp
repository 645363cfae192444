// Language models of 2024 to 2026, as published_models.hpp has older ones. Where a model's card or its files say the
// number of parameters to the digit, it is that one; else the card's rounded size, with the digits counted from its
// config. Parameters that transformers does not build, layers for further tokens and towers, are not counted.
#pragma once

#include <vector>

#include "published_models.hpp"

namespace gpumem::testing {

inline constexpr Published kRecent[] = {
    {"seed-oss-36b", 36'151'104'512,
     R"({"model_type": "seed_oss", "hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 27648, "vocab_size": 155136, "attention_bias": true, "attention_out_bias": false, "attention_dropout": 0.1, "residual_dropout": 0.1})"},
    {"ernie-4.5-0.3b", 360'748'032,
     R"({"model_type": "ernie4_5", "hidden_size": 1024, "num_hidden_layers": 18, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 103424, "use_bias": false, "tie_word_embeddings": true})"},
    {"ernie-4.5-21b-a3b", 21'825'437'888,
     R"({"model_type": "ernie4_5_moe", "hidden_size": 2560, "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4, "intermediate_size": 12288, "vocab_size": 103424, "tie_word_embeddings": true, "use_bias": false, "moe_intermediate_size": 1536, "moe_k": 6, "moe_num_experts": 64, "moe_num_shared_experts": 2, "moe_layer_start_index": 1, "moe_layer_end_index": 27, "moe_layer_interval": 1})"},
    {"hunyuan-7b", 7'504'568'320,
     R"({"model_type": "hunyuan_v1_dense", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 14336, "vocab_size": 128167, "tie_word_embeddings": true})"},
    {"hunyuan-a13b", 80'393'183'232,
     R"({"model_type": "hunyuan_v1_moe", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 128167, "num_experts": 64, "moe_topk": [8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8], "num_shared_expert": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "tie_word_embeddings": true})"},
    {"helium-1-preview-2b", 2'172'643'840,
     R"({"model_type": "helium", "hidden_size": 2560, "num_hidden_layers": 24, "num_attention_heads": 20, "num_key_value_heads": 20, "head_dim": 128, "intermediate_size": 7040, "vocab_size": 48000})"},
    {"afm-4.5b", 4'619'184'640,
     R"({"model_type": "arcee", "hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 20, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 18432, "vocab_size": 128004, "hidden_act": "relu2"})"},
    {"mimo-7b", 7'833'409'536, R"({"model_type": "mimo", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 11008, "vocab_size": 151680, "attention_bias": true, "num_nextn_predict_layers": 1})"},
    {"exaone-4.0-1.2b", 1'279'391'488,
     R"({"model_type": "exaone4", "hidden_size": 2048, "num_hidden_layers": 30, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 4096, "vocab_size": 102400, "tie_word_embeddings": true})"},
    {"command-r", 34'980'831'232,
     R"({"model_type": "cohere", "hidden_size": 8192, "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": 64, "intermediate_size": 22528, "vocab_size": 256000})"},
    {"command-r7b", 8'028'033'024,
     R"({"model_type": "cohere2", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 256000})"},
    {"minitron-4b", 4'190'509'056,
     R"({"model_type": "nemotron", "hidden_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 9216, "vocab_size": 256000, "partial_rotary_factor": 0.5})"},
    {"nemotron-super-49b", 49'867'145'216,
     R"({"model_type": "nemotron-nas", "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "vocab_size": 128256, "block_configs": [{"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 2.625}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 2.625}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 2.625}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 3.28125}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.3125}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 2.625}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 2.625}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.3125}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.3125}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 2.625}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.3125}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.3125}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.3125}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.3125}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.0}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.0}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.3125}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.0}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.0}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.0}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.3125}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.3125}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 0.5}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 0.5}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.0}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.0}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 0.5}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 0.5}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 1.0}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 0.5}}, {"attention": {"no_op": true}, "ffn": {"ffn_mult": 0.5}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}, {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}]})"},
    {"olmoe-1b-7b", 6'919'161'856,
     R"({"model_type": "olmoe", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 1024, "vocab_size": 50304, "num_experts": 64, "num_experts_per_tok": 8})"},
    {"phi-3.5-moe", 41'873'153'344,
     R"({"model_type": "phimoe", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 6400, "vocab_size": 32064, "num_local_experts": 16, "num_experts_per_tok": 2, "attention_bias": true, "lm_head_bias": true})"},
    {"glm-4.5-air", 106'852'245'504,
     R"({"model_type": "glm4_moe", "hidden_size": 4096, "num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 10944, "vocab_size": 151552, "attention_bias": true, "first_k_dense_replace": 1, "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 1408, "num_nextn_predict_layers": 1, "partial_rotary_factor": 0.5})"},
    {"minimax-m2", 228'689'748'992,
     R"({"model_type": "minimax_m2", "hidden_size": 3072, "num_hidden_layers": 62, "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 1536, "vocab_size": 200064, "num_local_experts": 256, "num_experts_per_tok": 8, "rotary_dim": 64})"},
    {"gpt-oss-20b", 20'914'757'184,
     R"({"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "vocab_size": 201088, "num_local_experts": 32, "num_experts_per_tok": 4})"},
    {"gpt-oss-120b", 116'829'156'672,
     R"({"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 36, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "vocab_size": 201088, "num_local_experts": 128, "num_experts_per_tok": 4})"},
    {"llama-4-scout-text", 107'769'861'120,
     R"({"model_type": "llama4_text", "architectures": ["Llama4ForCausalLM"], "hidden_size": 5120, "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "vocab_size": 202048, "num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1})"},
    {"mimo-v2-flash", 308'778'768'832,
     R"({"model_type": "mimo_v2_flash", "hidden_size": 4096, "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 4, "swa_num_key_value_heads": 8, "head_dim": 192, "v_head_dim": 128, "intermediate_size": 16384, "vocab_size": 152576, "n_routed_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 2048})"},
    {"kimi-k2", 1'026'408'232'448,
     R"({"model_type": "kimi_k2", "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 64, "num_key_value_heads": 64, "intermediate_size": 18432, "vocab_size": 163840, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 1})"},
    {"glm-5", 743'911'199'232,
     R"({"model_type": "glm_moe_dsa", "hidden_size": 6144, "num_hidden_layers": 78, "num_attention_heads": 64, "num_key_value_heads": 64, "intermediate_size": 12288, "vocab_size": 154880, "q_lora_rank": 2048, "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "index_n_heads": 32, "index_head_dim": 128})"}};

/// Hybrids, and models with classes of their own code.
inline constexpr Published kFurther[] = {
    {"baichuan-7b", 7'000'559'616,
     R"({"model_type": "baichuan", "architectures": ["BaiChuanForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 64000, "max_position_embeddings": 4096})"},
    {"baichuan2-7b", 7'505'973'248,
     R"({"model_type": "baichuan", "architectures": ["BaichuanForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 125696, "max_position_embeddings": 4096, "model_max_length": 4096, "z_loss_weight": 0})"},
    {"baichuan2-13b", 13'896'668'160,
     R"({"model_type": "baichuan", "architectures": ["BaichuanForCausalLM"], "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 40, "intermediate_size": 13696, "vocab_size": 125696, "model_max_length": 4096, "z_loss_weight": 0})"},
    {"internlm2.5-7b", 7'737'708'544,
     R"({"model_type": "internlm2", "architectures": ["InternLM2ForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 92544, "bias": false, "tie_word_embeddings": false})"},
    {"minimax-text-01", 456'089'655'296,
     R"({"model_type": "minimax_text_01", "architectures": ["MiniMaxForCausalLM"], "hidden_size": 6144, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "rotary_dim": 64, "intermediate_size": 9216, "vocab_size": 200064, "num_local_experts": 32, "num_experts_per_tok": 2, "attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]})"},
    {"recurrentgemma-2b", 2'682'862'080,
     R"({"model_type": "recurrent_gemma", "hidden_size": 2560, "num_hidden_layers": 26, "num_attention_heads": 10, "num_key_value_heads": 1, "intermediate_size": 15360, "vocab_size": 256000, "lru_width": 2560, "conv1d_width": 4, "block_types": ["recurrent", "recurrent", "attention"], "partial_rotary_factor": 0.5})"},
    {"zamba2-1.2b", 1'215'064'704, R"({"model_type": "zamba2", "hidden_size": 2048, "num_hidden_layers": 38, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 8192, "vocab_size": 32000, "mamba_d_state": 128, "mamba_headdim": 64, "n_mamba_heads": 64, "mamba_ngroups": 1, "mamba_expand": 2, "num_mem_blocks": 1, "adapter_rank": 128, "use_shared_attention_adapter": true, "use_mem_rope": true, "layers_block_type": ["mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba"]})"},
    {"chatglm3-6b", 6'243'584'000,
     R"({"model_type": "chatglm", "architectures": ["ChatGLMForConditionalGeneration"], "hidden_size": 4096, "num_layers": 28, "num_attention_heads": 32, "kv_channels": 128, "multi_query_attention": true, "multi_query_group_num": 2, "ffn_hidden_size": 13696, "add_qkv_bias": true, "padded_vocab_size": 65024})"},
    {"glm-4-9b-chatglm", 9'399'951'360,
     R"({"model_type": "chatglm", "architectures": ["ChatGLMModel"], "hidden_size": 4096, "num_layers": 40, "num_attention_heads": 32, "kv_channels": 128, "multi_query_attention": true, "multi_query_group_num": 2, "ffn_hidden_size": 13696, "add_qkv_bias": true, "padded_vocab_size": 151552})"},
    {"minicpm-2b", 2'724'880'896,
     R"({"model_type": "minicpm", "architectures": ["MiniCPMForCausalLM"], "hidden_size": 2304, "num_hidden_layers": 40, "num_attention_heads": 36, "num_key_value_heads": 36, "intermediate_size": 5760, "vocab_size": 122753, "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256})"},
    // Its 16,255,643,392 stored figures include the biases of choice, 256 a layer, which are buffers.
    {"ling-mini-2.0", 16'255'638'528,
     R"({"model_type": "bailing_moe", "architectures": ["BailingMoeV2ForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 20, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 5120, "num_experts": 256, "num_experts_per_tok": 8, "num_shared_experts": 1, "moe_intermediate_size": 512, "first_k_dense_replace": 1, "vocab_size": 157184, "partial_rotary_factor": 0.5, "tie_word_embeddings": false})"},
};

inline std::vector<Published> all_published() {
  std::vector<Published> all(std::begin(kPublished), std::end(kPublished));
  all.insert(all.end(), std::begin(kRecent), std::end(kRecent));
  all.insert(all.end(), std::begin(kFurther), std::end(kFurther));
  return all;
}

}  // namespace gpumem::testing
