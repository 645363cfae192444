// Trees as print(model) shows them, of classes whose code is their publisher's or has images among its tokens: what a
// config of the same model answers.
#include "gpumem/architectures/module_tree.hpp"

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "printed_tree.hpp"

namespace gpumem::testing {
namespace {

constexpr std::string_view kChatGlm = R"(ChatGLMForConditionalGeneration(
  (transformer): ChatGLMModel(
    (embedding): Embedding(
      (word_embeddings): Embedding(65024, 4096)
    )
    (rotary_pos_emb): RotaryEmbedding()
    (encoder): GLMTransformer(
      (layers): ModuleList(
        (0-3): 4 x GLMBlock(
          (input_layernorm): RMSNorm()
          (self_attention): SelfAttention(
            (query_key_value): Linear(in_features=4096, out_features=4608, bias=True)
            (core_attention): CoreAttention(
              (attention_dropout): Dropout(p=0.0, inplace=False)
            )
            (dense): Linear(in_features=4096, out_features=4096, bias=False)
          )
          (post_attention_layernorm): RMSNorm()
          (mlp): MLP(
            (dense_h_to_4h): Linear(in_features=4096, out_features=27392, bias=False)
            (dense_4h_to_h): Linear(in_features=13696, out_features=4096, bias=False)
          )
        )
      )
      (final_layernorm): RMSNorm()
    )
    (output_layer): Linear(in_features=4096, out_features=65024, bias=False)
  )
)
)";

TEST(PrintedTrees, OfChatGlm) {
  expect_one_answer(
      R"({"model_type": "chatglm", "architectures": ["ChatGLMModel"], "hidden_size": 4096, "num_layers": 4,
          "num_attention_heads": 32, "kv_channels": 128, "multi_query_attention": true, "multi_query_group_num": 2,
          "ffn_hidden_size": 13696, "add_qkv_bias": true, "padded_vocab_size": 65024})",
      kChatGlm);
}

TEST(PrintedTrees, OfMiniCpm) {
  expect_one_answer(
      R"({"model_type": "minicpm", "architectures": ["MiniCPMForCausalLM"], "hidden_size": 2304,
          "num_hidden_layers": 4, "num_attention_heads": 36, "num_key_value_heads": 36, "intermediate_size": 5760,
          "vocab_size": 122753})",
      R"(MiniCPMForCausalLM(
  (model): MiniCPMModel(
    (embed_tokens): Embedding(122753, 2304)
    (layers): ModuleList(
      (0-3): 4 x MiniCPMDecoderLayer(
        (self_attn): MiniCPMSdpaAttention(
          (q_proj): Linear(in_features=2304, out_features=2304, bias=False)
          (k_proj): Linear(in_features=2304, out_features=2304, bias=False)
          (v_proj): Linear(in_features=2304, out_features=2304, bias=False)
          (o_proj): Linear(in_features=2304, out_features=2304, bias=False)
          (rotary_emb): MiniCPMRotaryEmbedding()
        )
        (mlp): MiniCPMMLP(
          (gate_proj): Linear(in_features=2304, out_features=5760, bias=False)
          (up_proj): Linear(in_features=2304, out_features=5760, bias=False)
          (down_proj): Linear(in_features=5760, out_features=2304, bias=False)
          (act_fn): SiLU()
        )
        (input_layernorm): MiniCPMRMSNorm()
        (post_attention_layernorm): MiniCPMRMSNorm()
      )
    )
    (norm): MiniCPMRMSNorm()
  )
  (lm_head): Linear(in_features=2304, out_features=122753, bias=False)
)
)");
}

constexpr std::string_view kLingTree = R"(BailingMoeV2ForCausalLM(
  (model): BailingMoeV2Model(
    (word_embeddings): Embedding(157184, 2048, padding_idx=156892)
    (layers): ModuleList(
      (0): BailingMoeV2DecoderLayer(
        (attention): BailingMoeV2SdpaAttention(
          (query_key_value): Linear(in_features=2048, out_features=3072, bias=False)
          (query_layernorm): BailingMoeV2RMSNorm()
          (key_layernorm): BailingMoeV2RMSNorm()
          (dense): Linear(in_features=2048, out_features=2048, bias=False)
        )
        (mlp): BailingMoeV2MLP(
          (gate_proj): Linear(in_features=2048, out_features=5120, bias=False)
          (up_proj): Linear(in_features=2048, out_features=5120, bias=False)
          (down_proj): Linear(in_features=5120, out_features=2048, bias=False)
          (act_fn): SiLU()
        )
        (input_layernorm): BailingMoeV2RMSNorm()
        (post_attention_layernorm): BailingMoeV2RMSNorm()
      )
      (1-2): 2 x BailingMoeV2DecoderLayer(
        (attention): BailingMoeV2SdpaAttention(
          (query_key_value): Linear(in_features=2048, out_features=3072, bias=False)
          (query_layernorm): BailingMoeV2RMSNorm()
          (key_layernorm): BailingMoeV2RMSNorm()
          (dense): Linear(in_features=2048, out_features=2048, bias=False)
        )
        (mlp): BailingMoeV2SparseMoeBlock(
          (experts): ModuleList(
            (0-15): 16 x BailingMoeV2MLP(
              (gate_proj): Linear(in_features=2048, out_features=512, bias=False)
              (up_proj): Linear(in_features=2048, out_features=512, bias=False)
              (down_proj): Linear(in_features=512, out_features=2048, bias=False)
              (act_fn): SiLU()
            )
          )
          (gate): BailingMoeV2Gate()
          (shared_experts): BailingMoeV2MLP(
            (gate_proj): Linear(in_features=2048, out_features=512, bias=False)
            (up_proj): Linear(in_features=2048, out_features=512, bias=False)
            (down_proj): Linear(in_features=512, out_features=2048, bias=False)
            (act_fn): SiLU()
          )
        )
        (input_layernorm): BailingMoeV2RMSNorm()
        (post_attention_layernorm): BailingMoeV2RMSNorm()
      )
    )
    (norm): BailingMoeV2RMSNorm()
    (rotary_emb): BailingMoeV2RotaryEmbedding()
  )
  (lm_head): Linear(in_features=2048, out_features=157184, bias=False)
)
)";

TEST(PrintedTrees, OfLing) {
  expect_one_answer(
      R"({"model_type": "bailing_moe", "architectures": ["BailingMoeV2ForCausalLM"], "hidden_size": 2048,
          "num_hidden_layers": 3, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128,
          "intermediate_size": 5120, "num_experts": 16, "num_experts_per_tok": 8, "num_shared_experts": 1,
          "moe_intermediate_size": 512, "first_k_dense_replace": 1, "vocab_size": 157184,
          "partial_rotary_factor": 0.5, "tie_word_embeddings": false})",
      kLingTree);
}

constexpr std::string_view kLlavaText = R"((embed_tokens): Embedding(32064, 4096)
      (layers): ModuleList(
        (0-1): 2 x LlamaDecoderLayer(
          (self_attn): LlamaAttention(
            (q_proj): Linear(in_features=4096, out_features=4096, bias=False)
            (k_proj): Linear(in_features=4096, out_features=4096, bias=False)
            (v_proj): Linear(in_features=4096, out_features=4096, bias=False)
            (o_proj): Linear(in_features=4096, out_features=4096, bias=False)
          )
          (mlp): LlamaMLP(
            (gate_proj): Linear(in_features=4096, out_features=11008, bias=False)
            (up_proj): Linear(in_features=4096, out_features=11008, bias=False)
            (down_proj): Linear(in_features=11008, out_features=4096, bias=False)
            (act_fn): SiLU()
          )
          (input_layernorm): LlamaRMSNorm((4096,), eps=1e-05)
          (post_attention_layernorm): LlamaRMSNorm((4096,), eps=1e-05)
        )
      )
      (norm): LlamaRMSNorm((4096,), eps=1e-05)
      (rotary_emb): LlamaRotaryEmbedding()
)";

constexpr std::string_view kLlavaTower = R"((vision_tower): CLIPVisionModel(
    (vision_model): CLIPVisionTransformer(
      (embeddings): CLIPVisionEmbeddings(
        (patch_embedding): Conv2d(3, 1024, kernel_size=(14, 14), stride=(14, 14), bias=False)
        (position_embedding): Embedding(577, 1024)
      )
      (pre_layrnorm): LayerNorm((1024,), eps=1e-05, elementwise_affine=True)
      (encoder): CLIPEncoder(
        (layers): ModuleList(
          (0-3): 4 x CLIPEncoderLayer(
            (self_attn): CLIPAttention(
              (k_proj): Linear(in_features=1024, out_features=1024, bias=True)
              (v_proj): Linear(in_features=1024, out_features=1024, bias=True)
              (q_proj): Linear(in_features=1024, out_features=1024, bias=True)
              (out_proj): Linear(in_features=1024, out_features=1024, bias=True)
            )
            (layer_norm1): LayerNorm((1024,), eps=1e-05, elementwise_affine=True)
            (mlp): CLIPMLP(
              (activation_fn): QuickGELUActivation()
              (fc1): Linear(in_features=1024, out_features=4096, bias=True)
              (fc2): Linear(in_features=4096, out_features=1024, bias=True)
            )
            (layer_norm2): LayerNorm((1024,), eps=1e-05, elementwise_affine=True)
          )
        )
      )
      (post_layernorm): LayerNorm((1024,), eps=1e-05, elementwise_affine=True)
    )
  )
  (multi_modal_projector): LlavaMultiModalProjector(
    (linear_1): Linear(in_features=1024, out_features=4096, bias=True)
    (act): GELUActivation()
    (linear_2): Linear(in_features=4096, out_features=4096, bias=True)
  )
)";

/// A LLaVA of few layers, as transformers names its modules since 4.52, or as it did before.
std::string llava_tree(bool before) {
  const std::string text(kLlavaText);
  const std::string tower(kLlavaTower);
  const std::string head = "(lm_head): Linear(in_features=4096, out_features=32064, bias=False)\n";
  if (before) {
    return "LlavaForConditionalGeneration(\n" + tower + "(language_model): LlamaForCausalLM(\n(model): LlamaModel(\n" +
           text + ")\n" + head + ")\n)\n";
  }
  return "LlavaForConditionalGeneration(\n(model): LlavaModel(\n" + tower + "(language_model): LlamaModel(\n" + text +
         ")\n)\n" + head + ")\n";
}

TEST(PrintedTrees, OfLlavaInEitherOrder) {
  constexpr std::string_view kConfig = R"({"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"],
      "text_config": {"model_type": "llama", "vocab_size": 32064, "num_hidden_layers": 2},
      "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336,
      "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 4, "patch_size": 14}})";
  expect_one_answer(kConfig, llava_tree(false));
  expect_one_answer(kConfig, llava_tree(true));
  const auto read = parse_summary(llava_tree(true));
  ASSERT_TRUE(succeeds(read));
  EXPECT_EQ(read->architecture(), "llava");
  EXPECT_GT(read->picture_tokens(), 0);
  EXPECT_FALSE(read->edges_inferred());
  // What was chosen is said whatever the job's images.
  TrainingJob job(*read, 1);
  job.sequence_length = 1024;
  job.image = {336, 336};
  const auto answer = (*make_estimator("replay"))->estimate(job, *find_profile("b200"));
  ASSERT_TRUE(succeeds(answer));
  const auto says = [](const auto& each) { return each.text.find("16 heads, as published") != std::string::npos; };
  EXPECT_TRUE(std::ranges::any_of(answer->assumed, says));
}

constexpr std::string_view kQwenTower = R"((visual): Qwen2_5_VisionTransformerPretrainedModel(
    (patch_embed): Qwen2_5_VisionPatchEmbed(
      (proj): Conv3d(3, 1280, kernel_size=(2, 14, 14), stride=(2, 14, 14), bias=False)
    )
    (rotary_pos_emb): Qwen2_5_VisionRotaryEmbedding()
    (blocks): ModuleList(
      (0-3): 4 x Qwen2_5_VLVisionBlock(
        (norm1): Qwen2RMSNorm((1280,), eps=1e-06)
        (norm2): Qwen2RMSNorm((1280,), eps=1e-06)
        (attn): Qwen2_5_VLVisionSdpaAttention(
          (qkv): Linear(in_features=1280, out_features=3840, bias=True)
          (proj): Linear(in_features=1280, out_features=1280, bias=True)
        )
        (mlp): Qwen2_5_VLMLP(
          (gate_proj): Linear(in_features=1280, out_features=3420, bias=True)
          (up_proj): Linear(in_features=1280, out_features=3420, bias=True)
          (down_proj): Linear(in_features=3420, out_features=1280, bias=True)
          (act_fn): SiLU()
        )
      )
    )
    (merger): Qwen2_5_VLPatchMerger(
      (ln_q): Qwen2RMSNorm((1280,), eps=1e-06)
      (mlp): Sequential(
        (0): Linear(in_features=5120, out_features=5120, bias=True)
        (1): GELU(approximate='none')
        (2): Linear(in_features=5120, out_features=2048, bias=True)
      )
    )
  )
)";

constexpr std::string_view kQwenText = R"((embed_tokens): Embedding(151936, 2048)
    (layers): ModuleList(
      (0-1): 2 x Qwen2_5_VLDecoderLayer(
        (self_attn): Qwen2_5_VLSdpaAttention(
          (q_proj): Linear(in_features=2048, out_features=2048, bias=True)
          (k_proj): Linear(in_features=2048, out_features=256, bias=True)
          (v_proj): Linear(in_features=2048, out_features=256, bias=True)
          (o_proj): Linear(in_features=2048, out_features=2048, bias=False)
          (rotary_emb): Qwen2_5_VLRotaryEmbedding()
        )
        (mlp): Qwen2MLP(
          (gate_proj): Linear(in_features=2048, out_features=11008, bias=False)
          (up_proj): Linear(in_features=2048, out_features=11008, bias=False)
          (down_proj): Linear(in_features=11008, out_features=2048, bias=False)
          (act_fn): SiLU()
        )
        (input_layernorm): Qwen2RMSNorm((2048,), eps=1e-06)
        (post_attention_layernorm): Qwen2RMSNorm((2048,), eps=1e-06)
      )
    )
    (norm): Qwen2RMSNorm((2048,), eps=1e-06)
    (rotary_emb): Qwen2_5_VLRotaryEmbedding()
)";

/// Of Qwen2.5-VL, whose tower and text model stood beside each other until transformers 4.52.
std::string qwen_tree(bool before) {
  const std::string tower(kQwenTower);
  const std::string text(kQwenText);
  const std::string head = "(lm_head): Linear(in_features=2048, out_features=151936, bias=False)\n)\n";
  const std::string root = "Qwen2_5_VLForConditionalGeneration(\n";
  if (before) return root + tower + "(model): Qwen2_5_VLModel(\n" + text + ")\n" + head;
  return root + "(model): Qwen2_5_VLModel(\n" + tower + "(language_model): Qwen2_5_VLTextModel(\n" + text + ")\n)\n" +
         head;
}

TEST(PrintedTrees, OfQwen25VlInEitherOrder) {
  constexpr std::string_view kConfig = R"({"model_type": "qwen2_5_vl",
      "architectures": ["Qwen2_5_VLForConditionalGeneration"], "hidden_act": "silu", "hidden_size": 2048,
      "intermediate_size": 11008, "num_attention_heads": 16, "num_hidden_layers": 2, "num_key_value_heads": 2,
      "tie_word_embeddings": true, "vocab_size": 151936, "vision_config": {"depth": 4, "hidden_size": 1280,
      "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 2048}})";
  expect_one_answer(kConfig, qwen_tree(false));
  expect_one_answer(kConfig, qwen_tree(true));
}

}  // namespace
}  // namespace gpumem::testing
