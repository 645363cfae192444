#include "gpumem/ops/scan.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::output;
using testing::output_text;
using testing::parameters;
using testing::shape;

/// A layer's op on a tape of bfloat16 tensors that need gradients, of one sample each.
class Recorded {
 public:
  Recorded(std::string_view name, std::string_view arguments, const std::vector<core::Shape>& shapes,
           std::int64_t held = 0)
      : rule_(testing::op(name)), attributes_(testing::attributes(rule_, arguments)), shapes_(shapes) {
    tape.begin_layer(0);
    const TensorId source = tape.add_parameter(1);
    for (const core::Shape& each : shapes_) {
      inputs.push_back(tape.record({.output = size_of(each)->as(core::DType::bfloat16), .parameters = {&source, 1}}));
    }
    tape.begin_layer(1);
    OpCall call;
    call.attributes = model::Attributes(attributes_);
    const auto shape = rule_.output_shape({call.attributes, shapes_});
    EXPECT_TRUE(testing::succeeds(shape));
    call.shapes = shapes_;
    call.tensors = inputs;
    call.output = *shape;
    call.size = *size_of(*shape);
    call.parameters = held;
    const auto made = rule_.record(call, tape);
    EXPECT_TRUE(testing::succeeds(made));
    if (made) left = *made;
  }

  [[nodiscard]] const Function& function() const { return tape.functions().back(); }
  /// Bytes that backward keeps in addition to what the inputs hold, of one sample.
  [[nodiscard]] std::int64_t kept() const {
    core::Checked bytes = 0;
    for (const TensorId id : tape.list(function().saved)) {
      if (std::ranges::find(inputs, id) == inputs.end()) bytes += tape.tensor(id).size.bytes(1);
    }
    return bytes.value().value_or(-1);
  }
  [[nodiscard]] bool keeps(std::size_t input) const {
    return std::ranges::find(tape.list(function().saved), inputs[input]) != tape.list(function().saved).end();
  }

  Tape tape{model::Precision::bf16};
  std::vector<TensorId> inputs;
  TensorId left = kNoTensor;

 private:
  const Op& rule_;
  std::vector<model::Attribute> attributes_;
  std::vector<core::Shape> shapes_;
};

constexpr std::string_view kScan = "heads=8, head_dim=64, groups=2, state=16, chunk=128";

TEST(Scan, ConvolvesEachChannelForItself) {
  EXPECT_EQ(parameters("causal_conv1d", "channels=96, kernel_size=4"), 96 * 4 + 96);
  EXPECT_EQ(parameters("causal_conv1d", "channels=96, kernel_size=4, bias=False"), 96 * 4);
  EXPECT_EQ(parameters("causal_conv1d", "kernel_size=4"), -1);
  EXPECT_EQ(output_text("causal_conv1d", "channels=96, kernel_size=4", {shape({N, 100, 96})}), "[N, 100, 96]");
  const Recorded layer("causal_conv1d", "channels=96, kernel_size=4", {shape({N, 100, 96})}, 480);
  EXPECT_TRUE(layer.keeps(0));
  EXPECT_EQ(layer.kept(), 0) << "its input alone";
  EXPECT_EQ(layer.tape.layer_parameters().size(), 2U);
}

TEST(Scan, ScansInChunksWithinOneFunctionKeepOnlyTheirOutput) {
  const std::vector<core::Shape> inputs = {shape({N, 256, 576}), shape({N, 256, 8})};
  EXPECT_EQ(output_text("ssd_scan", kScan, inputs), "[N, 256, 512]");
  const Recorded apart("ssd_scan", kScan, inputs);
  constexpr std::int64_t kOutput = 256 * 512 * 2;
  EXPECT_TRUE(apart.keeps(0) && apart.keeps(1));
  EXPECT_EQ(apart.kept(), kOutput + 256 * 8 * 4) << "and the running decay in float32";
  const Recorded within("ssd_scan", std::string(kScan) + ", recomputed=True", inputs);
  EXPECT_FALSE(within.keeps(0) || within.keeps(1));
  EXPECT_EQ(within.kept(), kOutput);
  EXPECT_GT(within.function().backward_scratch.count, apart.function().backward_scratch.count);
}

TEST(Scan, AChunkThatIsNotFullHoldsAWholeState) {
  const auto largest = [](std::int64_t tokens) {
    const Recorded scan("ssd_scan", kScan, {shape({N, tokens, 576}), shape({N, tokens, 8})});
    std::int64_t most = 0;
    for (const TensorId id : scan.tape.list(scan.function().scratch)) {
      most = std::max(most, scan.tape.tensor(id).size.bytes(1).value().value_or(0));
    }
    return most;
  };
  EXPECT_EQ(largest(129), 2 * largest(128));
  EXPECT_EQ(largest(256), largest(129));
}

TEST(Scan, MambasScanKeepsWhatItReads) {
  const std::vector<core::Shape> inputs = {shape({N, 64, 4096}), shape({N, 64, 4096}), shape({N, 16, 4096}),
                                           shape({N, 16, 4096}), shape({N, 64, 4096})};
  constexpr std::int64_t kStates = 64 * 2 * 2 * 16 * 4;  // two of each 2048 tokens, in float32
  constexpr std::int64_t kOutput = 64 * 4096 * 2;
  const Recorded apart("selective_scan", "state=16", inputs);
  for (std::size_t input = 0; input < inputs.size(); ++input) EXPECT_TRUE(apart.keeps(input)) << input;
  EXPECT_EQ(apart.kept(), kStates + kOutput);
  const Recorded within("selective_scan", "state=16, recomputed=True", inputs);
  EXPECT_FALSE(within.keeps(0) || within.keeps(1));
  EXPECT_TRUE(within.keeps(2) && within.keeps(3) && within.keeps(4));
}

TEST(Scan, TheDeltaRuleKeepsNormedKeysAndTheInverseOfEachChunk) {
  const core::Shape heads = shape({N, 128, 4, 32});
  const core::Shape rates = shape({N, 128, 4});
  const Recorded rule("gated_delta_rule", "", {heads, heads, heads, rates, rates});
  constexpr std::int64_t kHeads = 128 * 4 * 32 * 2;
  constexpr std::int64_t kRows = 128 * 4 * 4;
  constexpr std::int64_t kInverse = 128 * 4 * 64 * 2;
  EXPECT_FALSE(rule.keeps(0) || rule.keeps(1)) << "their normed forms instead";
  EXPECT_TRUE(rule.keeps(2) && rule.keeps(4));
  EXPECT_EQ(rule.kept(), 2 * kHeads + 3 * kRows + kInverse);
  const Recorded by_channel("gated_delta_rule", "per_channel=True", {heads, heads, heads, heads, rates});
  EXPECT_TRUE(by_channel.keeps(3)) << "the raw decays, of which it makes the running ones again";
  EXPECT_EQ(by_channel.kept(), 2 * kHeads + 2 * kRows + 2 * kInverse);
}

TEST(Scan, LightningAttentionKeepsWhatEachBlockMultiplies) {
  const core::Shape heads = shape({N, 4, 300, 32});
  const Recorded blocks("lightning_attention", "block=128", {heads, heads, heads});
  EXPECT_FALSE(blocks.keeps(0) || blocks.keeps(1) || blocks.keeps(2)) << "copies of blocks instead";
  constexpr std::int64_t kHeads = 4 * 300 * 32;
  constexpr std::int64_t kScores = 4 * (2 * 128 * 128 + 44 * 44);
  constexpr std::int64_t kStates = 4 * 3 * 32 * 32;
  constexpr std::int64_t kDecayed = 4 * (172 + 2 * 256) * 32;  // queries after the first block, the others but the last
  EXPECT_EQ(blocks.kept(), 2 * (3 * kHeads + kDecayed + kScores + kStates));
  const Recorded one("lightning_attention", "block=512", {heads, heads, heads});
  EXPECT_EQ(one.kept(), 2 * (3 * kHeads + 4 * 300 * 300 + 4 * 32 * 32)) << "a block longer than the samples";
}

TEST(Scan, ARecurrenceKeepsAStateAToken) {
  const core::Shape rows = shape({N, 10, 64});
  const Recorded scanned("gated_recurrence", "", {rows, rows});
  EXPECT_FALSE(scanned.keeps(0) || scanned.keeps(1));
  EXPECT_EQ(scanned.kept(), 10 * 64 * 4 * 2) << "states, and gates in float32";
}

TEST(Scan, AGatedNormKeepsAFigureARowAndGroup) {
  const core::Shape rows = shape({N, 10, 64});
  EXPECT_EQ(parameters("gated_norm", "normalized_shape=64"), 64);
  EXPECT_EQ(parameters("gated_norm", "normalizes=False"), 0);
  const Recorded norm("gated_norm", "normalized_shape=64, groups=4", {rows, rows}, 64);
  EXPECT_TRUE(norm.keeps(0) && norm.keeps(1));
  EXPECT_EQ(norm.kept(), 10 * 4 * 4);
  const Recorded gate("gated_norm", "normalizes=False", {rows, rows});
  EXPECT_EQ(gate.kept(), 0);
}

TEST(Scan, RefusesShapesThatItCannotScan) {
  EXPECT_FALSE(output("ssd_scan", "heads=8", {shape({N, 256, 576}), shape({N, 256, 8})}));
  EXPECT_FALSE(output("ssd_scan", kScan, {shape({N, 576})}));
  EXPECT_FALSE(output("ssd_scan", "heads=4611686018427387904, head_dim=8", {shape({N, 2, 2})}));
  EXPECT_FALSE(output("gated_delta_rule", "", {shape({N, 2, 2, 2})}));
}

}  // namespace
}  // namespace gpumem::ops
