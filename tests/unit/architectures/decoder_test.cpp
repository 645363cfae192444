#include "gpumem/architectures/decoder.hpp"

#include <map>
#include <span>
#include <string>

#include "gpumem/architectures/architectures.hpp"
#include "plans.hpp"

namespace gpumem::architectures {
namespace {

using testing::fails;
using testing::succeeds;

/// A Llama of two blocks with grouped keys, in training.
TrainingJob small_llama(std::string_view more = "") {
  const auto graph = read_config(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100)" +
                                     std::string(more) + "}",
                                 ops::vocabulary());
  EXPECT_TRUE(succeeds(graph));
  TrainingJob job(graph ? *graph : ModelGraph(), 2);
  job.sequence_length = 16;
  return job;
}

/// The shape of the layer of this path, for the job's sequence length.
std::string shape_of(const connect::WiredGraph& wired, std::string_view path) {
  for (std::size_t index = 0; index < wired.graph().layers().size(); ++index) {
    const auto outputs = wired.outputs(index);
    if (wired.graph().path(wired.graph().layers()[index]) == path && !outputs.empty()) {
      return core::to_string(outputs[0]);
    }
  }
  return "none";
}

TEST(Decoder, TakesItsLengthFromTheJob) {
  TrainingJob job = small_llama();
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(succeeds(wired));
  EXPECT_EQ(wired->edges(), "given");
  EXPECT_EQ(shape_of(*wired, "model.layers.1.self_attn.k_proj"), "[N, 16, 32]");
  EXPECT_EQ(shape_of(*wired, "model.layers.1.self_attn.scaled_dot_product_attention"), "[N, 4, 16, 16]");
  EXPECT_EQ(shape_of(*wired, "model.rotary_emb.rotary_table"), "[1, 1, 16, 16]");
  EXPECT_EQ(shape_of(*wired, "lm_head"), "[N, 16, 100]");
  EXPECT_EQ(shape_of(*wired, "contiguous"), "[N, 15, 100]") << "all but the last token's";
  job.sequence_length = 32;
  EXPECT_EQ(shape_of(*connect::connect(job, ops::catalogue()), "lm_head"), "[N, 32, 100]");
}

TEST(Decoder, AsksForALength) {
  TrainingJob job = small_llama();
  job.sequence_length = {};
  EXPECT_TRUE(
      fails(connect::connect(job, ops::catalogue()), core::ErrorCode::missing_information, 0, "`seq_length=512`"));
}

TEST(Decoder, ComputesItsLossAndHandsOutLogitsAndCache) {
  TrainingJob job = small_llama();
  const auto pass = testing::forward(job);
  ASSERT_TRUE(succeeds(pass));
  EXPECT_EQ(pass->model_functions, pass->tape.functions().size()) << "no loss behind the model";
  EXPECT_EQ(pass->held.size(), 6U) << "a key and a value of each block, the logits, the loss";
  EXPECT_EQ(pass->tape.tensor(pass->loss).size.elements.value(), 1);
}

/// Bytes that stand when the second step's forward begins: parameters, states, gradients, and what the loop holds.
std::int64_t standing(const TrainingJob& job) {
  const testing::Planned made = testing::planned(job);
  std::int64_t live = 0;
  std::vector<std::int64_t> slots(made.plan.slots);
  for (std::size_t at = 0; at < made.plan.events.size(); ++at) {
    const plan::PhaseMark& mark = made.plan.phase_of(at);
    if (mark.step == 2 && mark.phase == plan::Phase::batch) break;
    const plan::Event& event = made.plan.events[at];
    if (event.kind == plan::Event::Kind::call) continue;
    const bool made_now = event.kind == plan::Event::Kind::allocate;
    live += made_now ? event.bytes : -slots[event.slot];
    if (made_now) slots[event.slot] = event.bytes;
  }
  return live;
}

TEST(Decoder, MakesNoCacheWhereBlocksAreCheckpointed) {
  TrainingJob job = small_llama();
  const std::int64_t with_cache = standing(job);
  job.activation_checkpointing = true;
  constexpr std::int64_t kKeysAndValues = 2 * 2 * (2 * 16 * 32 * 4);  // two blocks, of 2 samples of 16 tokens
  EXPECT_EQ(with_cache - standing(job), kKeysAndValues);
}

TEST(Decoder, UpcastsItsLogitsForTheLoss) {
  TrainingJob job = small_llama();
  job.precision = Precision::bf16;
  const auto pass = testing::forward(job);
  ASSERT_TRUE(succeeds(pass));
  std::int64_t wide = 0;
  for (const ops::Function& function : pass->tape.functions()) {
    const ops::TapeTensor& output = pass->tape.tensor(function.output);
    const bool logits = output.size.elements.value() == 16 * 100 || output.size.elements.value() == 15 * 100;
    if (logits && output.storage == function.output && output.size.dtype == core::DType::float32) ++wide;
  }
  EXPECT_EQ(wide, 3) << "the float32 logits, the copy of all but the last token's, the log-softmax";
}

/// The attentions of a model that are causal: the module and how many of it, "decoder self_attn 2".
std::string causal_attentions(std::string_view config) {
  const auto graph = read_config(config, ops::vocabulary());
  EXPECT_TRUE(succeeds(graph));
  std::map<std::string, int> found;
  for (const model::Layer& layer : graph ? graph->layers() : std::span<const model::Layer>()) {
    const std::string path = graph->path(layer);
    if (!graph->attributes(layer).flag("is_causal", false)) continue;
    const std::string side = path.find("decoder") != std::string::npos ? "decoder " : "encoder ";
    ++found[side + (path.find("encoder_attn") != std::string::npos ? "encoder_attn" : "self_attn")];
  }
  std::string text;
  for (const auto& [name, count] : found) text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
  return text;
}

TEST(Decoder, OnlyTheDecodersSelfAttentionIsCausalInModelsThatHaveBoth) {
  // BartAttention and WhisperAttention, is_causal=True in the decoder's self_attn alone.
  constexpr std::string_view kSizes = R"("d_model": 64, "vocab_size": 100, "max_position_embeddings": 32,
    "encoder_layers": 3, "encoder_attention_heads": 4, "encoder_ffn_dim": 128,
    "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 128})";
  for (const std::string type :
       {"bart", "mbart", "marian", "m2m_100", "pegasus", "plbart", "blenderbot", "blenderbot-small", "whisper"}) {
    EXPECT_EQ(causal_attentions(R"({"model_type": ")" + type + R"(", )" + std::string(kSizes)), "decoder self_attn 2")
        << type;
  }
}

// MarianConfig.share_encoder_decoder_embeddings: without it each side has a table, and the head is the decoder's.
TEST(Decoder, SidesMayHaveTablesOfTheirOwn) {
  constexpr std::string_view kMarian = R"({"model_type": "marian", "d_model": 64, "vocab_size": 100,
    "decoder_vocab_size": 80, "max_position_embeddings": 32, "encoder_layers": 1, "encoder_attention_heads": 4,
    "encoder_ffn_dim": 128, "decoder_layers": 1, "decoder_attention_heads": 4, "decoder_ffn_dim": 128)";
  const auto parameters = [&](std::string_view more) {
    const auto graph = read_config(std::string(kMarian) + std::string(more), ops::vocabulary());
    EXPECT_TRUE(graph);
    return graph ? graph->parameters() : 0;
  };
  EXPECT_EQ(parameters(R"(, "share_encoder_decoder_embeddings": false})") - parameters("}"), 80 * 64);
}

TEST(Decoder, LeavesHeadsAloneThatAreNotWhole) {
  const auto graph = read_config(R"({"model_type": "llama", "hidden_size": 100, "num_hidden_layers": 2,
    "num_attention_heads": 3, "intermediate_size": 128, "vocab_size": 100})",
                                 ops::vocabulary());
  EXPECT_TRUE(fails(graph, core::ErrorCode::malformed_input, 0, "does not divide hidden_size"));
}

}  // namespace
}  // namespace gpumem::architectures
