#include "random_jobs.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>

#include "nets.hpp"
#include "random.hpp"

namespace gpumem::train {

namespace {

using ml::NetKind;

constexpr std::int64_t kSamples = 4096;  ///< an epoch of the MLPs and CNNs

/// "_depth-7"
std::string part(std::string_view name, std::int64_t value) {
  return "_" + std::string(name) + "-" + std::to_string(value);
}
std::string part(std::string_view name, std::string_view value) {
  return "_" + std::string(name) + "-" + std::string(value);
}
/// "_dropout-0.35"; of 0 to 99 per cent
std::string dropout_part(std::int64_t percent) {
  return part("dropout", percent == 0 ? "no" : (percent < 10 ? "0.0" : "0.") + std::to_string(percent));
}
std::string batch_norm_part(bool batch_norm) { return part("batchnorm", batch_norm ? "yes" : "no"); }

std::int64_t dropout_percent(Random& random) {
  const std::int64_t percent = random.whole(10, 50);
  return random.coin() ? percent : 0;
}

std::string_view activation(Random& random, std::size_t count) {
  return random.pick(std::span(kActivations).first(count));
}

Architecture architecture(Random& random, std::size_t count) {
  return random.pick(std::span(kArchitectures).first(count)).value;
}

core::Result<RandomJob> job_of(core::Result<model::ModelGraph> graph, NetKind kind, std::int64_t batch,
                               std::string name) {
  if (!graph) return graph.error();
  RandomJob made;
  made.name = std::move(name);
  made.kind = kind;
  made.job = model::TrainingJob(*std::move(graph), batch);
  return made;
}

core::Result<RandomJob> draw_mlp(Random& random) {
  constexpr std::size_t kMlpArchitectures = 4;
  constexpr std::int64_t kMostHidden = 11;
  MlpNet net;
  net.inputs = random.spread(4, 4096);
  net.outputs = random.spread(1, std::min<std::int64_t>(net.inputs, 1024));
  net.architecture = architecture(random, kMlpArchitectures);
  net.depth = random.whole(1, net.architecture == Architecture::bottleneck ? kMostHidden - 1 : kMostHidden);
  net.activation = activation(random, kActivations.size());
  net.dropout_percent = dropout_percent(random);
  net.batch_norm = random.coin();
  const std::int64_t batch = random.spread(4, 1024);
  auto made =
      job_of(build(net), NetKind::mlp, batch,
             part("input", net.inputs) + part("output", net.outputs) + part("depth", net.depth) +
                 part("arch", model::name_of(kArchitectures, net.architecture)) + part("batch", batch) +
                 part("act", net.activation) + dropout_part(net.dropout_percent) + batch_norm_part(net.batch_norm));
  if (!made) return made;
  made->job.samples_per_epoch = kSamples;
  made->job.summary_pass = true;
  if (net.outputs == 1) made->job.loss = model::Loss::bce_with_logits;
  return made;
}

/// The least depth that gives the net a convolution.
std::int64_t least_depth(Architecture architecture) {
  if (architecture == Architecture::dense) return 4;
  return architecture == Architecture::residual ? 2 : 1;
}

/// The other interval of GPUMemNet's scripts: as many halvings over the depth as take the image to 7.
std::int64_t depth_interval(const CnnNet& net) {
  constexpr std::int64_t kLastSide = 7;
  const auto ratio = static_cast<std::uint64_t>(net.side / kLastSide);
  const std::int64_t halvings = std::max<std::int64_t>(static_cast<std::int64_t>(std::bit_width(ratio)) - 1, 1);
  return (net.depth + halvings - 1) / halvings;
}

core::Result<RandomJob> draw_cnn(Random& random) {
  constexpr std::array<std::int64_t, 2> kChannels = {1, 3};
  constexpr std::array<std::int64_t, 4> kKernels = {3, 3, 5, 7};
  constexpr std::int64_t kDeepestDrawn = 29;
  CnnNet net;
  net.channels = random.pick(std::span<const std::int64_t>(kChannels));
  net.side = 2 * random.whole(4, 112);
  net.classes = random.spread(2, 22000);
  net.architecture = architecture(random, kArchitectures.size());
  net.depth = random.whole(least_depth(net.architecture), kDeepestDrawn);
  net.base_filters = random.spread(16, 512);
  net.kernel = random.pick(std::span<const std::int64_t>(kKernels));
  net.activation = activation(random, kActivations.size() - 1);
  net.dropout_percent = dropout_percent(random);
  net.batch_norm = random.coin();
  if (random.coin()) net.pooling_interval = depth_interval(net);
  const std::int64_t batch = random.spread(2, 62);
  std::string name = part("channels", net.channels) + part("classes", net.classes) + part("depth", net.depth) +
                     part("arch", model::name_of(kArchitectures, net.architecture)) +
                     part("filters", net.base_filters) + part("kernel", net.kernel) + part("batch", batch) +
                     part("size", net.side) + part("act", net.activation) + dropout_part(net.dropout_percent) +
                     batch_norm_part(net.batch_norm);
  if (net.architecture == Architecture::dense) name += part("pooling", net.pooling_interval);
  auto made = job_of(build(net), NetKind::cnn, batch, std::move(name));
  if (!made) return made;
  made->job.samples_per_epoch = kSamples;
  made->job.summary_pass = true;
  return made;
}

core::Result<RandomJob> draw_transformer(Random& random) {
  constexpr std::array<std::int64_t, 4> kSequences = {128, 256, 512, 1024};
  constexpr std::array<std::int64_t, 5> kHeads = {2, 4, 8, 16, 12};
  constexpr std::array<std::string_view, 2> kTransformerActivations = {"relu", "gelu"};
  // With the classifier 9 to 157 linear layers of four an encoder layer, or 13 to 157 of six.
  constexpr std::int64_t kLeastLayers = 2;
  constexpr std::int64_t kMostPacked = 39;
  constexpr std::int64_t kMostParted = 26;
  TransformerNet net;
  net.vocabulary = random.spread(50000, 1000000);
  net.sequence = random.pick(std::span<const std::int64_t>(kSequences));
  net.embedding = 64 * random.spread(2, 32);
  net.heads = random.pick(std::span(kHeads).first(net.embedding % 12 == 0 ? 5 : 4));
  net.feed_forward = random.whole(2 * net.embedding, 4 * net.embedding);
  net.packed = random.coin();
  net.layers = random.spread(kLeastLayers, net.packed ? kMostPacked : kMostParted);
  net.classes = random.spread(2, 1000);
  net.activation = random.pick(std::span<const std::string_view>(kTransformerActivations));
  net.dropout_percent = dropout_percent(random);
  const std::int64_t batch = random.spread(1, 128);
  auto made =
      job_of(build(net), NetKind::transformer, batch,
             part("classes", net.classes) + part("embedding", net.embedding) + part("layers", net.layers) +
                 part("heads", net.heads) + part("ff", net.feed_forward) + part("proj", net.packed ? "packed" : "qkv") +
                 part("act", net.activation) + dropout_part(net.dropout_percent) + part("seq", net.sequence) +
                 part("vocab", net.vocabulary) + part("batch", batch));
  if (!made) return made;
  made->job.sequence_length = net.sequence;
  made->job.samples_per_epoch = random.whole(1000, 5000);
  return made;
}

core::Result<RandomJob> draw(NetKind kind, Random& random) {
  switch (kind) {
    case NetKind::mlp: return draw_mlp(random);
    case NetKind::cnn: return draw_cnn(random);
    case NetKind::transformer:
    case NetKind::any: break;
  }
  return draw_transformer(random);
}

/// The first ones of the lists, which jobs were always drawn from: more of them would make other jobs of a seed.
constexpr std::size_t kDrawnOptimizers = 9;
constexpr std::size_t kDrawnPrecisions = 5;

void vary_training(Random& random, RandomJob& made) {
  const std::span<const model::Named<model::Optimizer>> optimizers(model::kOptimizers);
  const std::span<const model::Named<model::Precision>> precisions(model::kPrecisions);
  made.job.optimizer = random.pick(optimizers.first(kDrawnOptimizers)).value;
  made.job.precision = random.pick(precisions.first(kDrawnPrecisions)).value;
  made.name += part("optimizer", model::name_of(model::kOptimizers, made.job.optimizer)) +
               part("precision", model::name_of(model::kPrecisions, made.job.precision));
}

}  // namespace

core::Result<RandomJob> RandomJobs::at(std::uint64_t index, std::uint64_t attempt) const {
  constexpr std::array<NetKind, 3> kKinds = {NetKind::mlp, NetKind::cnn, NetKind::transformer};
  Random of_index(options_.seed, index);
  Random random(of_index.next(), attempt);
  const NetKind drawn = random.pick(std::span<const NetKind>(kKinds));
  const NetKind kind = options_.kind == NetKind::any ? drawn : options_.kind;
  auto made = draw(kind, random);
  if (!made) return made;
  if (options_.vary_training) vary_training(random, *made);
  made->name = std::string(model::name_of(ml::kNetKinds, kind)) + "-" + std::to_string(index) + made->name;
  made->job.software = options_.software;
  return made;
}

}  // namespace gpumem::train
