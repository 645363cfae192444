// Parameters of published models, from the fields of their config.json: each number is the one that its model card, its
// paper or transformers' num_parameters() gives.
#include "gpumem/architectures/architectures.hpp"

#include <set>

#include "expect.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::architectures {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

core::Result<model::ModelGraph> read(std::string_view config) { return read_config(config, ops::vocabulary()); }

struct Published {
  std::string_view name;
  std::int64_t parameters;
  std::string_view config;
};

constexpr Published kPublished[] =
    {
        {"llama-2-7b", 6'738'415'616,
         R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 32000})"},
        {"llama-2-13b", 13'015'864'320,
         R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 40, "intermediate_size": 13824, "vocab_size": 32000})"},
        {"llama-2-70b", 68'976'648'192,
         R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 32000})"},
        {"llama-3-8b", 8'030'261'248,
         R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256})"},
        {"llama-3-70b", 70'553'706'496,
         R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256})"},
        {"llama-3.1-405b", 405'853'388'800,
         R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 16384, "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "intermediate_size": 53248, "vocab_size": 128256})"},
        {"llama-3.2-1b", 1'235'814'400,
         R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": true})"},
        {"llama-3.2-3b", 3'212'749'824,
         R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 24, "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": true})"},
        {"mistral-7b", 7'241'732'096,
         R"({"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000})"},
        {"mistral-nemo", 12'247'782'400,
         R"({"model_type": "mistral", "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 131072, "head_dim": 128})"},
        {"qwen2.5-0.5b", 494'032'768,
         R"({"model_type": "qwen2", "hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936, "tie_word_embeddings": true})"},
        {"qwen2.5-1.5b", 1'543'714'304,
         R"({"model_type": "qwen2", "hidden_size": 1536, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "intermediate_size": 8960, "vocab_size": 151936, "tie_word_embeddings": true})"},
        {"qwen2.5-7b", 7'615'616'512,
         R"({"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064})"},
        {"qwen3-0.6b",
         596'049'920, R"({"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "intermediate_size": 3072, "vocab_size": 151936, "head_dim": 128, "tie_word_embeddings": true})"},
        {"qwen3-8b", 8'190'735'360,
         R"({"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 12288, "vocab_size": 151936, "head_dim": 128})"},
        {"powerlm-3b", 3'510'819'072,
         R"({"model_type": "granite", "hidden_size": 2304, "num_hidden_layers": 40, "num_attention_heads": 36, "num_key_value_heads": 36, "intermediate_size": 9216, "vocab_size": 49152, "tie_word_embeddings": true})"},
        {"gemma-2b", 2'506'172'416,
         R"({"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 8, "num_key_value_heads": 1, "intermediate_size": 16384, "vocab_size": 256000, "head_dim": 256})"},
        {"gemma-7b", 8'537'680'896,
         R"({"model_type": "gemma", "hidden_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 24576, "vocab_size": 256000, "head_dim": 256})"},
        {"gemma-2-2b", 2'614'341'888,
         R"({"model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 9216, "vocab_size": 256000, "head_dim": 256})"},
        {"gemma-2-9b", 9'241'705'984,
         R"({"model_type": "gemma2", "hidden_size": 3584, "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 256000, "head_dim": 256})"},
        {"gemma-3-1b", 999'885'952,
         R"({"model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers": 26, "num_attention_heads": 4, "num_key_value_heads": 1, "intermediate_size": 6912, "vocab_size": 262144, "head_dim": 256})"},
        {"phi-1.5", 1'418'270'720,
         R"({"model_type": "phi", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 8192, "vocab_size": 51200, "partial_rotary_factor": 0.5})"},
        {"phi-2", 2'779'683'840,
         R"({"model_type": "phi", "hidden_size": 2560, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 10240, "vocab_size": 51200, "partial_rotary_factor": 0.4})"},
        {"phi-3-mini", 3'821'079'552,
         R"({"model_type": "phi3", "hidden_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 8192, "vocab_size": 32064})"},
        {"phi-4", 14'659'507'200,
         R"({"model_type": "phi3", "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 10, "intermediate_size": 17920, "vocab_size": 100352})"},
        {"gpt2", 124'439'808,
         R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257})"},
        {"gpt2-medium", 354'823'168,
         R"({"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_positions": 1024, "vocab_size": 50257})"},
        {"gpt2-xl", 1'557'611'200,
         R"({"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25, "n_positions": 1024, "vocab_size": 50257})"},
        {"pythia-70m", 70'426'624,
         R"({"model_type": "gpt_neox", "hidden_size": 512, "num_hidden_layers": 6, "num_attention_heads": 8, "intermediate_size": 2048, "vocab_size": 50304})"},
        {"pythia-410m", 405'334'016,
         R"({"model_type": "gpt_neox", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 50304})"},
        {"gpt-neox-20b", 20'554'567'680,
         R"({"model_type": "gpt_neox", "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64, "intermediate_size": 24576, "vocab_size": 50432})"},
        {"gpt-j-6b", 6'050'882'784,
         R"({"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_positions": 2048, "rotary_dim": 64, "vocab_size": 50400})"},
        {"gpt-neo-125m", 125'198'592,
         R"({"model_type": "gpt_neo", "hidden_size": 768, "num_layers": 12, "num_heads": 12, "max_position_embeddings": 2048, "vocab_size": 50257})"},
        {"gpt-neo-1.3b", 1'315'575'808,
         R"({"model_type": "gpt_neo", "hidden_size": 2048, "num_layers": 24, "num_heads": 16, "max_position_embeddings": 2048, "vocab_size": 50257})"},
        {"opt-125m", 125'239'296,
         R"({"model_type": "opt", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "ffn_dim": 3072, "max_position_embeddings": 2048, "word_embed_proj_dim": 768, "vocab_size": 50272})"},
        {"opt-350m", 331'196'416,
         R"({"model_type": "opt", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "ffn_dim": 4096, "max_position_embeddings": 2048, "word_embed_proj_dim": 512, "vocab_size": 50272, "do_layer_norm_before": false})"},
        {"opt-1.3b", 1'315'758'080, R"({"model_type": "opt", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "ffn_dim": 8192, "max_position_embeddings": 2048, "word_embed_proj_dim": 2048, "vocab_size": 50272})"},
        {"opt-6.7b", 6'658'473'984,
         R"({"model_type": "opt", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "ffn_dim": 16384, "max_position_embeddings": 2048, "word_embed_proj_dim": 4096, "vocab_size": 50272})"},
        {"santacoder", 1'124'886'528,
         R"({"model_type": "gpt_bigcode", "n_embd": 2048, "n_layer": 24, "n_head": 16, "n_inner": 8192, "n_positions": 2048, "vocab_size": 49280, "multi_query": true})"},
        {"stablelm-2-1.6b", 1'644'515'328,
         R"({"model_type": "stablelm", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 5632, "vocab_size": 100352, "use_qkv_bias": true, "partial_rotary_factor": 0.25})"},
        {"stablelm-3b-4e1t", 2'795'443'200,
         R"({"model_type": "stablelm", "hidden_size": 2560, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 6912, "vocab_size": 50304, "partial_rotary_factor": 0.25})"},
        {"starcoder2-3b", 3'030'371'328,
         R"({"model_type": "starcoder2", "hidden_size": 3072, "num_hidden_layers": 30, "num_attention_heads": 24, "num_key_value_heads": 2, "intermediate_size": 12288, "vocab_size": 49152, "use_bias": true})"},
        {"olmo-1b", 1'176'764'416,
         R"({"model_type": "olmo", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 8192, "vocab_size": 50304, "tie_word_embeddings": true})"},
        {"olmo-7b", 6'888'095'744,
         R"({"model_type": "olmo", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 50304})"},
        {"olmo-2-7b", 7'298'617'344,
         R"({"model_type": "olmo2", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 100352})"},
        {"bert-base", 109'482'240,
         R"({"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2})"},
        {"bert-base-mlm", 109'514'298,
         R"({"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2})"},
        {"bert-large-cls", 335'143'938,
         R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"], "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2})"},
        {"roberta-base", 124'645'632,
         R"({"model_type": "roberta", "architectures": ["RobertaModel"], "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1})"},
        {"roberta-base-mlm", 124'697'433,
         R"({"model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1})"},
        {"electra-base", 108'891'648, R"({"model_type": "electra", "architectures": ["ElectraModel"], "hidden_size": 768, "embedding_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2})"},
        {"distilbert", 66'362'880,
         R"({"model_type": "distilbert", "architectures": ["DistilBertModel"], "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "vocab_size": 30522, "max_position_embeddings": 512})"},
        {"distilbert-cls", 66'955'010,
         R"({"model_type": "distilbert", "architectures": ["DistilBertForSequenceClassification"], "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "vocab_size": 30522, "max_position_embeddings": 512})"},
        {"vit-base-cls", 86'567'656,
         R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "image_size": 224, "patch_size": 16, "num_labels": 1000})"},
        {"vit-large-cls", 304'326'632,
         R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "image_size": 224, "patch_size": 16, "num_labels": 1000})"},
        {"t5-small", 60'506'624,
         R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "vocab_size": 32128})"},
        {"t5-base", 222'903'552,
         R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12, "vocab_size": 32128})"},
        {"flan-t5-base", 247'577'856,
         R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 768, "d_kv": 64, "d_ff": 2048, "num_layers": 12, "num_decoder_layers": 12, "num_heads": 12, "vocab_size": 32128, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})"},
        {"bart-base", 139'420'416,
         R"({"model_type": "bart", "architectures": ["BartForConditionalGeneration"], "d_model": 768, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 12, "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "max_position_embeddings": 1024, "vocab_size": 50265})"},
        {"bart-large", 406'291'456,
         R"({"model_type": "bart", "architectures": ["BartModel"], "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096, "max_position_embeddings": 1024, "vocab_size": 50265})"},
        {"bloom-560m", 559'214'592,
         R"({"model_type": "bloom", "hidden_size": 1024, "n_layer": 24, "n_head": 16, "vocab_size": 250880})"},
        {"bloom-7b1", 7'069'016'064,
         R"({"model_type": "bloom", "hidden_size": 4096, "n_layer": 30, "n_head": 32, "vocab_size": 250880})"},
        {"mixtral-8x7b", 46'702'792'704,
         R"({"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2})"},
        {"qwen1.5-moe-a2.7b",
         14'315'784'192, R"({"model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 5632, "vocab_size": 151936, "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632})"},
        {"qwen3-30b-a3b", 30'532'122'624,
         R"({"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768})"},
        {"falcon-7b", 6'921'720'704,
         R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "vocab_size": 65024, "multi_query": true, "parallel_attn": true, "new_decoder_architecture": false, "alibi": false, "bias": false})"},
        {"falcon-40b", 41'303'293'952,
         R"({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8, "vocab_size": 65024, "new_decoder_architecture": true})"},
        {"falcon-rw-1b", 1'311'625'216,
         R"({"model_type": "falcon", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "vocab_size": 50304, "multi_query": false, "parallel_attn": false, "alibi": true, "bias": true})"},
        {"mpt-7b", 6'649'286'656,
         R"({"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "expansion_ratio": 4, "vocab_size": 50432, "attn_config": {"alibi": true, "attn_pdrop": 0, "qk_ln": false, "clip_qkv": null}})"},
        {"deepseek-v2-lite", 15'706'484'224,
         R"({"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 10944, "vocab_size": 102400, "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "moe_layer_freq": 1, "topk_method": "greedy"})"},
        {"deepseek-v2", 235'741'434'880,
         R"({"model_type": "deepseek_v2", "hidden_size": 5120, "num_hidden_layers": 60, "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 12288, "vocab_size": 102400, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1536, "first_k_dense_replace": 1, "moe_layer_freq": 1, "topk_method": "group_limited_greedy", "n_group": 8, "topk_group": 3})"},
        {"deepseek-v3", 671'026'419'200,
         R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432, "vocab_size": 129280, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "moe_layer_freq": 1, "topk_method": "noaux_tc", "n_group": 8, "topk_group": 4, "num_nextn_predict_layers": 1})"},
        {"glm-4-9b", 9'399'951'360,
         R"({"model_type": "glm", "hidden_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 13696, "vocab_size": 151552, "attention_bias": true})"},
        {"glm-4-9b-0414", 9'400'279'040,
         R"({"model_type": "glm4", "hidden_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 13696, "vocab_size": 151552, "attention_bias": true, "partial_rotary_factor": 0.5})"},
        {"albert-base-v2", 11'683'584,
         R"({"model_type": "albert", "architectures": ["AlbertModel"], "hidden_size": 768, "embedding_size": 128, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30000, "max_position_embeddings": 512, "type_vocab_size": 2})"},
        {"albert-xxlarge-v2", 222'595'584,
         R"({"model_type": "albert", "architectures": ["AlbertModel"], "hidden_size": 4096, "embedding_size": 128, "num_hidden_layers": 12, "num_attention_heads": 64, "intermediate_size": 16384, "vocab_size": 30000, "max_position_embeddings": 512, "type_vocab_size": 2})"},
        {"deberta-v3-base", 183'831'552,
         R"({"model_type": "deberta-v2", "architectures": ["DebertaV2Model"], "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 128100, "max_position_embeddings": 512, "type_vocab_size": 0, "relative_attention": true, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": true, "pos_att_type": "p2c|c2p", "position_biased_input": false, "max_relative_positions": -1})"},
        {"deberta-v3-large", 434'012'160,
         R"({"model_type": "deberta-v2", "architectures": ["DebertaV2Model"], "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 128100, "max_position_embeddings": 512, "type_vocab_size": 0, "relative_attention": true, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": true, "pos_att_type": "p2c|c2p", "position_biased_input": false, "max_relative_positions": -1})"},
        {"modernbert-base", 149'014'272,
         R"({"model_type": "modernbert", "architectures": ["ModernBertModel"], "hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12, "intermediate_size": 1152, "vocab_size": 50368})"},
        {"modernbert-base-mlm", 149'655'232,
         R"({"model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"], "hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12, "intermediate_size": 1152, "vocab_size": 50368, "tie_word_embeddings": true})"},
        {"deit-base-distilled-teacher", 87'338'192,
         R"({"model_type": "deit", "architectures": ["DeiTForImageClassificationWithTeacher"], "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "image_size": 224, "patch_size": 16, "num_labels": 1000})"},
        {"swin-tiny", 28'288'354,
         R"({"model_type": "swin", "architectures": ["SwinForImageClassification"], "image_size": 224, "patch_size": 4, "embed_dim": 96, "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24], "window_size": 7, "num_labels": 1000})"},
        {"swin-base", 87'768'224,
         R"({"model_type": "swin", "architectures": ["SwinForImageClassification"], "image_size": 224, "patch_size": 4, "embed_dim": 128, "depths": [2, 2, 18, 2], "num_heads": [4, 8, 16, 32], "window_size": 7, "num_labels": 1000})"},
        {"clip-vit-base-patch32", 151'277'313,
         R"({"model_type": "clip", "architectures": ["CLIPModel"], "projection_dim": 512, "text_config": {"hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8, "num_hidden_layers": 12, "max_position_embeddings": 77, "vocab_size": 49408}, "vision_config": {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12, "image_size": 224, "patch_size": 32}})"},
        {"clip-vit-large-patch14", 427'616'513,
         R"({"model_type": "clip", "projection_dim": 768, "text_config": {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12}, "vision_config": {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14}})"},
        {"whisper-small", 241'734'912,
         R"({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "d_model": 768, "encoder_layers": 12, "decoder_layers": 12, "encoder_attention_heads": 12, "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "num_mel_bins": 80, "max_source_positions": 1500, "max_target_positions": 448, "vocab_size": 51865})"},
        {"whisper-large-v3", 1'543'490'560,
         R"({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "d_model": 1280, "encoder_layers": 32, "decoder_layers": 32, "encoder_attention_heads": 20, "decoder_attention_heads": 20, "encoder_ffn_dim": 5120, "decoder_ffn_dim": 5120, "num_mel_bins": 128, "max_source_positions": 1500, "max_target_positions": 448, "vocab_size": 51866})"},
        {"xlnet-base-cased", 116'718'336,
         R"({"model_type": "xlnet", "architectures": ["XLNetModel"], "attn_type": "bi", "bi_data": false, "clamp_len": -1, "d_head": 64, "d_inner": 3072, "d_model": 768, "dropout": 0.1, "ff_activation": "gelu", "mem_len": null, "n_head": 12, "n_layer": 12, "reuse_len": null, "same_length": false, "summary_activation": "tanh", "summary_last_dropout": 0.1, "summary_type": "last", "summary_use_proj": true, "untie_r": true, "vocab_size": 32000})"},
        {"xlnet-base-cased-lm", 116'750'336,
         R"({"model_type": "xlnet", "architectures": ["XLNetLMHeadModel"], "attn_type": "bi", "bi_data": false, "clamp_len": -1, "d_head": 64, "d_inner": 3072, "d_model": 768, "dropout": 0.1, "ff_activation": "gelu", "mem_len": null, "n_head": 12, "n_layer": 12, "reuse_len": null, "same_length": false, "summary_activation": "tanh", "summary_last_dropout": 0.1, "summary_type": "last", "summary_use_proj": true, "untie_r": true, "vocab_size": 32000})"},
        {"xlnet-large-cased", 360'268'800,
         R"({"model_type": "xlnet", "architectures": ["XLNetModel"], "attn_type": "bi", "bi_data": false, "clamp_len": -1, "d_head": 64, "d_inner": 4096, "d_model": 1024, "dropout": 0.1, "ff_activation": "gelu", "mem_len": null, "n_head": 16, "n_layer": 24, "reuse_len": null, "same_length": false, "summary_activation": "tanh", "summary_last_dropout": 0.1, "summary_type": "last", "summary_use_proj": true, "untie_r": true, "vocab_size": 32000})"},
        {"granite-3.0-1b-a400m", 1'334'628'352,
         R"({"model_type": "granitemoe", "architectures": ["GraniteMoeForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 8, "intermediate_size": 512, "num_local_experts": 32, "num_experts_per_tok": 8, "vocab_size": 49155, "attention_multiplier": 0.015625, "embedding_multiplier": 12.0, "logits_scaling": 6.0, "residual_multiplier": 0.22, "tie_word_embeddings": true})"},
        {"powermoe-3b", 3'298'788'864,
         R"({"model_type": "granitemoe", "architectures": ["GraniteMoeForCausalLM"], "hidden_size": 1536, "num_hidden_layers": 32, "num_attention_heads": 24, "num_key_value_heads": 8, "intermediate_size": 512, "num_local_experts": 40, "num_experts_per_tok": 8, "vocab_size": 49152, "attention_multiplier": 0.015625, "embedding_multiplier": 12.0, "logits_scaling": 6.0, "residual_multiplier": 0.22, "tie_word_embeddings": true})"},
        {"megatron-gpt3-345m", 354'871'296,
         R"({"model_type": "megatron_gpt", "num_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "padded_vocab_size": 50304, "max_position_embeddings": 1024})"},
        // 12 x (12 h² + 13 h) + 12 x (16 h² + 19 h) + 2 x 2 h, the words and their bias, 512 positions: "t5_220m"
        {"megatron-t5-220m", 222'397'312,
         R"({"model_type": "megatron_t5", "encoder_num_layers": 12, "decoder_num_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "ffn_hidden_size": 3072, "padded_vocab_size": 30592, "max_position_embeddings": 512, "decoder_seq_length": 128})"},
};

TEST(Architectures, HaveThePublishedParameters) {
  for (const Published& model : kPublished) {
    const auto graph = read(model.config);
    ASSERT_TRUE(succeeds(graph)) << model.name;
    EXPECT_EQ(graph->parameters(), model.parameters) << model.name;
    EXPECT_FALSE(graph->edges_inferred()) << model.name;
    EXPECT_EQ(graph->unknown_layers(), 0) << model.name;
    const bool mixes = model.config.find("experts_per_tok") != std::string_view::npos;
    EXPECT_EQ(graph->warnings().size(), mixes ? 1U : 0U) << model.name << ": the routing depends on the data";
  }
}

TEST(Architectures, AnswerEachForTypesOfTheirOwn) {
  std::set<std::string_view> types;
  for (const Architecture* architecture : architectures()) {
    EXPECT_NE(architecture->write, nullptr) << architecture->name;
    EXPECT_FALSE(architecture->model_types.empty()) << architecture->name;
    for (const std::string_view type : architecture->model_types) EXPECT_TRUE(types.insert(type).second) << type;
  }
}

TEST(Architectures, EveryTypeIsAmongThePublishedModels) {
  std::string configs;
  for (const Published& model : kPublished) configs += model.config;
  for (const Architecture* architecture : architectures()) {
    bool any = false;
    for (const std::string_view type : architecture->model_types) {
      any = any || configs.find("\"model_type\": \"" + std::string(type) + "\"") != std::string::npos;
    }
    EXPECT_TRUE(any) << architecture->name;
  }
}

constexpr std::string_view kSmall = R"("hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
  "intermediate_size": 128, "vocab_size": 100)";

std::string small(std::string_view more) { return "{" + std::string(kSmall) + ", " + std::string(more) + "}"; }

TEST(ReadConfig, TellsTheHeadByTheClass) {
  const auto parameters = [](std::string_view name) {
    const auto graph = read(small(R"("model_type": "llama", "architectures": [")" + std::string(name) + "\"]"));
    EXPECT_TRUE(succeeds(graph));
    return graph ? graph->parameters() : 0;
  };
  const std::int64_t body = parameters("LlamaModel");
  EXPECT_EQ(parameters("LlamaForCausalLM"), body + 64 * 100);
  EXPECT_EQ(parameters("LlamaForSequenceClassification"), body + 64 * 2);
  EXPECT_EQ(parameters("LlamaForTokenClassification"), body + 64 * 2 + 2);
  EXPECT_EQ(parameters("LlamaForQuestionAnswering"), body + 64 * 2 + 2);
  EXPECT_EQ(parameters("LlamaForSomethingElse"), body + 64 * 100) << "what it usually is";
}

TEST(ReadConfig, GivesXLNetTheHeadOfItsClass) {
  const auto parameters = [](std::string_view name, std::string_view more = "") {
    const auto graph = read(R"({"model_type": "xlnet", "d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128,
      "vocab_size": 100, "architectures": [")" +
                            std::string(name) + "\"]" + std::string(more) + "}");
    EXPECT_TRUE(succeeds(graph)) << name;
    return graph ? graph->parameters() : 0;
  };
  const std::int64_t body = parameters("XLNetModel");
  constexpr std::int64_t kSquare = 64 * 64 + 64;
  EXPECT_EQ(parameters("XLNetLMHeadModel"), body + 100) << "the weight is the embedding's";
  EXPECT_EQ(parameters("XLNetForTokenClassification"), body + 64 * 2 + 2);
  EXPECT_EQ(parameters("XLNetForSequenceClassification"), body + kSquare + 64 * 2 + 2);
  EXPECT_EQ(parameters("XLNetForSequenceClassification", R"(, "summary_use_proj": false)"), body + 64 * 2 + 2);
  EXPECT_EQ(parameters("XLNetForQuestionAnsweringSimple"), body + 64 * 2 + 2);
  constexpr std::int64_t kTwice = 2 * 64 * 64 + 64;
  EXPECT_EQ(parameters("XLNetForQuestionAnswering"), body + 65 + (kTwice + 2 * 64 + 65) + (kTwice + 64))
      << "logits of the start, of the end, of whether there is an answer";
}

TEST(ReadConfig, RefusesAnXLNetThatIsNotFineTunedSo) {
  const auto xlnet = [](std::string_view more) {
    return read(R"({"model_type": "xlnet", "d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128,
      "vocab_size": 100, )" +
                std::string(more) + "}");
  };
  EXPECT_TRUE(fails(xlnet(R"("d_head": 32)"), ErrorCode::malformed_input, 0, "d_model / n_head"));
  EXPECT_TRUE(fails(xlnet(R"("attn_type": "uni")"), ErrorCode::malformed_input, 0, "both directions"));
  EXPECT_TRUE(fails(xlnet(R"("summary_type": "attn")"), ErrorCode::malformed_input, 0, "last, first, mean"));
}

TEST(ReadConfig, ReadsAnEncoderAlone) {
  const auto parameters = [](std::string_view name) {
    const auto graph =
        read(R"({"model_type": "t5", "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4,
      "vocab_size": 100, "architectures": [")" +
             std::string(name) + "\"]}");
    EXPECT_TRUE(succeeds(graph));
    return graph ? graph->parameters() : 0;
  };
  constexpr std::int64_t kBlock = 4 * 64 * 64 + 2 * 64 * 128 + 2 * 64;  // attention, feed-forward layer, norms
  EXPECT_EQ(parameters("T5EncoderModel"), 64 * 100 + 2 * kBlock + 32 * 4 + 64);
  EXPECT_EQ(parameters("T5Model"), parameters("T5ForConditionalGeneration")) << "the output layer is the embedding";
}

TEST(ReadConfig, CountsLabelsByTheirNames) {
  const auto graph = read(small(R"("model_type": "llama", "architectures": ["LlamaForSequenceClassification"],
    "id2label": {"0": "a", "1": "b", "2": "c"})"));
  ASSERT_TRUE(succeeds(graph));
  const auto two = read(small(R"("model_type": "llama", "architectures": ["LlamaForSequenceClassification"])"));
  EXPECT_EQ(graph->parameters() - two->parameters(), 64);
}

TEST(ReadConfig, TakesAnUnknownTypeWithALlamasFieldsForOneAndSaysSo) {
  const auto graph = read(small(R"("model_type": "newcomer", "rms_norm_eps": 1e-5)"));
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->warnings().size(), 1U);
  EXPECT_NE(graph->warnings()[0].message.find("'newcomer' is not known"), std::string::npos);
  const auto llama = read(small(R"("model_type": "llama")"));
  EXPECT_EQ(graph->parameters(), llama->parameters());
}

TEST(ReadConfig, RefusesAnUnknownTypeWithOtherFields) {
  const std::string mixture = small(R"("model_type": "newcomer", "rms_norm_eps": 1e-5, "num_experts": 8)");
  EXPECT_TRUE(fails(read(mixture), ErrorCode::missing_information, 0, "'newcomer'"))
      << "most of its weights are experts'";
  EXPECT_TRUE(fails(read(small(R"("model_type": "newcomer")")), ErrorCode::missing_information, 0, "'newcomer'"));
  EXPECT_TRUE(fails(read(R"({"model_type": "newcomer", "d_state": 16})"), ErrorCode::missing_information, 0, "llama"));
}

TEST(ReadConfig, NamesWhatIsMissing) {
  EXPECT_TRUE(fails(read(R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 64})"),
                    ErrorCode::missing_information, 0, "num_hidden_layers, num_attention_heads, intermediate_size"));
  EXPECT_TRUE(fails(read(R"({"model_type": "t5"})"), ErrorCode::missing_information, 0, "vocab_size, d_model"));
}

TEST(ReadConfig, NamesFieldsThatItDoesNotUnderstand) {
  const auto graph = read(small(R"("model_type": "llama", "num_experts": 8, "quantization_config": {"bits": 4},
    "rope_theta": 10000.0, "torch_dtype": "bfloat16", "mystery": false, "adapter": "none")"));
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->warnings().size(), 1U);
  const std::string& message = graph->warnings()[0].message;
  EXPECT_NE(message.find("'num_experts', 'quantization_config'"), std::string::npos) << message;
  EXPECT_EQ(message.find("rope_theta"), std::string::npos) << message;
  EXPECT_EQ(message.find("mystery"), std::string::npos) << message;
}

TEST(ReadConfig, ChecksSizes) {
  EXPECT_TRUE(fails(read(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1000000000,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100})"),
                    ErrorCode::malformed_input, 0, "4096 layers"));
  for (const std::string_view width : {"0", "-64", "1.5", "\"64\"", "true", "4294967296", "99999999999999999999"}) {
    const std::string config = R"({"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4,
      "intermediate_size": 128, "vocab_size": 100, "hidden_size": )" +
                               std::string(width) + "}";
    EXPECT_TRUE(fails(read(config), ErrorCode::malformed_input, 0, "whole number")) << width;
  }
  EXPECT_TRUE(fails(read(small(R"("model_type": "llama", "num_key_value_heads": 3)")), ErrorCode::malformed_input, 0,
                    "does not divide"));
  EXPECT_TRUE(fails(read(small(R"("model_type": "llama", "hidden_act": "soft")")), ErrorCode::malformed_input, 0,
                    "unknown activation 'soft'"));
  EXPECT_TRUE(fails(read(small(R"("model_type": "phi", "partial_rotary_factor": 0.01)")), ErrorCode::malformed_input, 0,
                    "rotary"));
}

TEST(ReadConfig, RefusesMoreExpertsThanAnyModelHas) {
  const auto mixture = [](std::string_view layers, std::string_view experts) {
    return read(R"({"model_type": "mixtral", "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128,
      "vocab_size": 100, "num_experts_per_tok": 2, "num_hidden_layers": )" +
                std::string(layers) + R"(, "num_local_experts": )" + std::string(experts) + "}");
  };
  EXPECT_TRUE(succeeds(mixture("2", "8")));
  EXPECT_TRUE(fails(mixture("2", "5000"), ErrorCode::malformed_input, 0, "this many experts"));
  EXPECT_TRUE(fails(mixture("4096", "4096"), ErrorCode::malformed_input, 0, "this many experts"));
  EXPECT_TRUE(fails(mixture("2", "1"), ErrorCode::malformed_input, 0, "more than there are experts"));
  EXPECT_TRUE(fails(read(R"({"model_type": "swin", "image_size": 4096, "patch_size": 1, "window_size": 4096})"),
                    ErrorCode::malformed_input, 0, "too wide"));
}

TEST(ReadConfig, RefusesWhatIsNoObject) {
  EXPECT_TRUE(fails(read("[1, 2]"), ErrorCode::malformed_input, 0, "object"));
  EXPECT_TRUE(fails(read(R"({"model_type": )"), ErrorCode::malformed_input, 1, "not JSON"));
}

}  // namespace
}  // namespace gpumem::architectures
