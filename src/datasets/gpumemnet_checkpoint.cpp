#include "gpumem_datasets/gpumemnet_checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpumem/ml/trained_model.hpp"
#include "gpumem_datasets/lightning_checkpoint.hpp"

namespace gpumem::datasets {

using namespace ml;

namespace {

constexpr std::array<std::string_view, 8> kMlp4Mlp = {"depth",          "batch_size",        "parameters",
                                                      "activations",    "batch_norm_layers", "dropout_layers",
                                                      "activation_sin", "activation_cos"};
constexpr std::array<std::string_view, 10> kMlp4Cnn = {
    "depth",         "activations",       "activations_times_batch", "parameters",     "batch_size",
    "conv2d_layers", "batch_norm_layers", "dropout_layers",          "activation_sin", "activation_cos"};
constexpr std::array<std::string_view, 9> kMlp4Transformer = {
    "depth",         "activations",       "activations_times_batch", "parameters", "batch_size", "ndq_linear_layers",
    "linear_layers", "layer_norm_layers", "dropout_layers"};
constexpr std::array<std::string_view, 4> kTransformer4Mlp = {"batch_size", "parameters", "activations",
                                                              "activations_times_batch"};
constexpr std::array<std::string_view, 9> kTransformer4Cnn = {"batch_size",
                                                              "parameters",
                                                              "activations",
                                                              "activations_times_batch",
                                                              "conv2d_layers",
                                                              "batch_norm_layers",
                                                              "dropout_layers",
                                                              "activation_sin_truncated",
                                                              "activation_cos_truncated"};
constexpr std::array<std::string_view, 9> kTransformer4Transformer = {"depth",
                                                                      "activations",
                                                                      "parameters",
                                                                      "batch_size",
                                                                      "ndq_linear_layers",
                                                                      "linear_layers",
                                                                      "activations_times_batch",
                                                                      "layer_norm_layers",
                                                                      "dropout_layers"};

/// How many hidden layers each member of an ensemble has.
constexpr std::array<std::int64_t, 13> kThirteenMembers = {1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6};
constexpr std::array<std::int64_t, 16> kSixteenMembers = {1, 2, 3, 4, 5, 6, 7, 8, 4, 5, 6, 7, 8, 4, 5, 6};

constexpr std::array<double, 6> kNarrowBins = {1000, 2000, 3000, 4000, 5000, 6000};
constexpr std::array<double, 7> kWideBins = {0, 8000, 16000, 24000, 32000, 40000, 50000};

/// One of the six.
struct Published {
  std::string_view name;
  NetKind nets = NetKind::any;
  std::span<const std::string_view> features;
  std::span<const std::int64_t> members;
  std::span<const double> edges_mib;
  std::int64_t sequence_length = 0;  ///< 0: no encoder
  std::int64_t codes = 0;            ///< columns of a layer's code
  std::string_view data;
};

constexpr std::string_view kMlpRuns = "GPUMemNet's MLP runs";
constexpr std::string_view kCnnRuns = "GPUMemNet's CNN runs, without residual and dense nets";
constexpr std::string_view kTransformerRuns = "GPUMemNet's Transformer runs";

constexpr std::array<Published, 6> kPublished = {
    {{"mlp4mlp", NetKind::mlp, kMlp4Mlp, kThirteenMembers, kNarrowBins, 0, 0, kMlpRuns},
     {"mlp4cnn", NetKind::cnn, kMlp4Cnn, kSixteenMembers, kWideBins, 0, 0, kCnnRuns},
     {"mlp4transformer", NetKind::transformer, kMlp4Transformer, kThirteenMembers, kWideBins, 0, 0, kTransformerRuns},
     {"transformer4mlp", NetKind::mlp, kTransformer4Mlp, kThirteenMembers, kNarrowBins, 46, 2, kMlpRuns},
     {"transformer4cnn", NetKind::cnn, kTransformer4Cnn, kThirteenMembers, kWideBins, 119, 2, kCnnRuns},
     {"transformer4transformer", NetKind::transformer, kTransformer4Transformer, kThirteenMembers, kWideBins, 314, 4,
      kTransformerRuns}}};

/// 8, and half of it from then on.
std::vector<std::int64_t> hidden_widths(std::int64_t layers) {
  constexpr std::int64_t kWidest = 8;
  constexpr std::int64_t kNarrowest = 4;
  std::vector<std::int64_t> widths;
  for (std::int64_t width = kWidest; std::ssize(widths) < layers; width = std::max(width / 2, kNarrowest)) {
    widths.push_back(width);
  }
  return widths;
}

EncoderShape encoder_of(std::int64_t width, std::int64_t layers) {
  return {.width = width,
          .layers = layers,
          .heads = 1,
          .feed_forward = 4,
          .embedding = Embedding::position_batch_norm,
          .attention = Attention::self,
          .pooling = Pooling::sum};
}

NetworkShape shape_of(const Published& model) {
  BranchShape branch;
  for (const std::int64_t layers : model.members) branch.members.push_back(hidden_widths(layers));
  NetworkShape shape;
  shape.features = std::ssize(model.features);
  shape.outputs = std::ssize(model.edges_mib) - 1;
  shape.branches = {branch};
  if (model.sequence_length == 0) return shape;
  constexpr std::int64_t kFigures = 2;
  shape.sequence_length = model.sequence_length;
  shape.sequence_columns = model.codes + kFigures;
  shape.branches = {branch, branch};
  shape.branches[0].encoder = encoder_of(6, 3);
  shape.branches[1].encoder = encoder_of(4, 2);
  return shape;
}

/// GPUMemNet's names of tensors_of(shape), one for one.
class Names {
 public:
  explicit Names(const NetworkShape& shape) {
    for (std::size_t index = 0; index < shape.branches.size(); ++index) {
      const BranchShape& branch = shape.branches[index];
      std::string members;
      if (branch.encoder) {
        const std::string prefix = "models." + std::to_string(index) + ".";
        add_encoder(prefix, branch.encoder->layers);
        members = prefix + "fc_out.";
      }
      for (std::size_t member = 0; member < branch.members.size(); ++member) {
        add_member(members + "models." + std::to_string(member) + ".model.", branch.members[member].size());
      }
    }
  }
  [[nodiscard]] std::vector<std::string> take() && { return std::move(all_); }

 private:
  void add_pair(const std::string& prefix) {
    all_.push_back(prefix + "weight");
    all_.push_back(prefix + "bias");
  }
  void add_batch_norm(const std::string& prefix) {
    add_pair(prefix);
    all_.push_back(prefix + "running_mean");
    all_.push_back(prefix + "running_var");
  }
  /// (Linear, BatchNorm, ReLU) repeated, as the steps of one Sequential.
  void add_blocks(const std::string& prefix, std::size_t blocks) {
    for (std::size_t block = 0; block < blocks; ++block) {
      add_pair(prefix + std::to_string(3 * block) + ".");
      add_batch_norm(prefix + std::to_string(3 * block + 1) + ".");
    }
  }
  void add_member(const std::string& prefix, std::size_t hidden) {
    add_blocks(prefix, hidden);
    add_pair(prefix + std::to_string(3 * hidden) + ".");
  }
  void add_encoder(const std::string& prefix, std::int64_t layers) {
    add_blocks(prefix + "embedding.", 2);
    for (std::int64_t index = 0; index < layers; ++index) {
      const std::string layer = prefix + "transformer_encoder.layers." + std::to_string(index) + ".";
      add_pair(layer + "self_attn.in_proj_");
      add_pair(layer + "self_attn.out_proj.");
      add_pair(layer + "norm1.");
      add_pair(layer + "linear1.");
      add_pair(layer + "linear2.");
      add_pair(layer + "norm2.");
    }
  }

  std::vector<std::string> all_;
};

/// A tensor of a checkpoint: what is wanted of it, and what it becomes here.
struct Wanted {
  std::string name;
  std::vector<std::int64_t> shape;
  core::DType dtype = core::DType::float32;
  std::string ours;  ///< empty: it only has to be there
};

std::string encoding_name(std::size_t branch) { return "models." + std::to_string(branch) + ".positional_encoding"; }

/// Every tensor of a published checkpoint.
std::vector<Wanted> wanted_of(const NetworkShape& shape) {
  constexpr std::string_view kVariance = "running_var";
  std::vector<Wanted> all;
  const std::vector<TensorSpec> ours = tensors_of(shape);
  const std::vector<std::string> theirs = Names(shape).take();
  for (std::size_t index = 0; index < ours.size(); ++index) {
    const std::string& name = theirs[index];
    all.push_back({name, ours[index].shape, core::DType::float32, ours[index].name});
    // How often a batch norm was trained is of no use.
    if (!name.ends_with(kVariance)) continue;
    const std::string prefix = name.substr(0, name.size() - kVariance.size());
    all.push_back({prefix + "num_batches_tracked", {}, core::DType::int64, {}});
  }
  for (std::size_t branch = 0; branch < shape.branches.size(); ++branch) {
    const auto& encoder = shape.branches[branch].encoder;
    if (!encoder) continue;
    all.push_back({encoding_name(branch), {1, shape.sequence_length, encoder->width}, core::DType::float32, {}});
  }
  return all;
}

using StateByName = std::unordered_map<std::string_view, const StateTensor*>;

std::string text_of(core::DType dtype, const std::vector<std::int64_t>& shape) {
  std::string text = std::string(core::to_string(dtype)) + " [";
  for (const std::int64_t size : shape) text += (text.ends_with('[') ? "" : ", ") + std::to_string(size);
  return text + "]";
}

/// How well a checkpoint fits a model.
struct Match {
  std::size_t same = 0;          ///< tensors
  std::string first_difference;  ///< empty: it is this model
};

Match match(const StateByName& state, const std::vector<Wanted>& model) {
  Match found;
  const auto differs = [&](std::string how) {
    if (found.first_difference.empty()) found.first_difference = std::move(how);
  };
  for (const Wanted& wanted : model) {
    const auto tensor = state.find(wanted.name);
    if (tensor == state.end()) {
      differs(wanted.name + " is missing");
    } else if (tensor->second->shape != wanted.shape || tensor->second->dtype != wanted.dtype) {
      differs(wanted.name + " is " + text_of(tensor->second->dtype, tensor->second->shape) + ", not " +
              text_of(wanted.dtype, wanted.shape));
    } else {
      ++found.same;
    }
  }
  if (state.size() != model.size()) {
    differs("it has " + std::to_string(state.size()) + " tensors, not " + std::to_string(model.size()));
  }
  return found;
}

core::Error malformed(std::string message, std::string_view file) {
  return {core::ErrorCode::malformed_input, std::move(message), core::Place{std::string(file), 0, {}}};
}

/// The model that the checkpoint is, or which one it comes closest to.
core::Result<const Published*> recognise(const StateByName& state, std::string_view file) {
  const Published* closest = nullptr;
  Match best;
  for (const Published& model : kPublished) {
    Match found = match(state, wanted_of(shape_of(model)));
    if (found.first_difference.empty()) return &model;
    if (closest != nullptr && found.same <= best.same) continue;
    closest = &model;
    best = std::move(found);
  }
  return malformed("holds " + std::to_string(state.size()) +
                       " tensors that match none of GPUMemNet's six published models; " + std::string(closest->name) +
                       " comes closest with " + std::to_string(best.same) + " of them, but " +
                       core::shortened(best.first_difference, 200),
                   file);
}

/// Vaswani et al. 2017, 3.5.
bool is_sinusoidal(const std::vector<float>& values, std::int64_t width) {
  constexpr double kTolerance = 1e-4;  // PyTorch makes it in float32
  constexpr double kBase = 10'000.0;
  for (std::int64_t index = 0; index < std::ssize(values); ++index) {
    const std::int64_t position = index / width;
    const std::int64_t column = index % width;
    const double exponent = static_cast<double>(column - column % 2) / static_cast<double>(width);
    const double angle = static_cast<double>(position) / std::pow(kBase, exponent);
    const double expected = column % 2 == 0 ? std::sin(angle) : std::cos(angle);
    // Written so that a value that is not a number fails.
    if (!(std::abs(static_cast<double>(values[static_cast<std::size_t>(index)]) - expected) <= kTolerance))
      return false;
  }
  return true;
}

core::Result<TensorFile> weights_of(const StateByName& state, const NetworkShape& shape, std::string_view file) {
  for (std::size_t branch = 0; branch < shape.branches.size(); ++branch) {
    const auto& encoder = shape.branches[branch].encoder;
    if (!encoder) continue;
    const std::string name = encoding_name(branch);
    if (!is_sinusoidal(float32_values(*state.at(name)), encoder->width)) {
      return malformed("its tensor " + core::quoted(name) + " is not the sinusoidal encoding of positions", file);
    }
  }
  TensorFile weights;
  for (Wanted& wanted : wanted_of(shape)) {
    if (wanted.ours.empty()) continue;
    const StateTensor& tensor = *state.at(wanted.name);
    weights.tensors.push_back({std::move(wanted.ours), tensor.shape, float32_values(tensor)});
  }
  return weights;
}

/// A made-up job, for the test vectors; sizes as they are in GPUMemNet's data.
struct ExampleJob {
  double depth, batch, parameters, activations, batch_norms, dropouts, convolutions, linears, ndq_linears, layer_norms;
  double activation;  ///< number of the activation function
  std::int64_t rows;
};
constexpr std::array<ExampleJob, 3> kExamples = {{{4, 8, 120'000, 2'000, 0, 2, 3, 1, 0, 2, 0, 5},
                                                  {12, 64, 3'500'000, 45'000, 5, 0, 10, 2, 6, 13, 3, 40},
                                                  {30, 256, 60'000'000, 9'000'000, 14, 9, 28, 36, 12, 25, 6, 150}}};

double example_feature(const ExampleJob& job, std::string_view name, NetKind nets) {
  const double functions = nets == NetKind::mlp ? 11.0 : 10.0;
  const double angle = job.activation * std::numbers::pi / functions;
  const std::array<std::pair<std::string_view, double>, 15> figures = {
      {{"depth", job.depth},
       {"batch_size", job.batch},
       {"parameters", job.parameters},
       {"activations", job.activations},
       {"activations_times_batch", job.activations * job.batch},
       {"batch_norm_layers", job.batch_norms},
       {"dropout_layers", job.dropouts},
       {"conv2d_layers", job.convolutions},
       {"linear_layers", job.linears},
       {"ndq_linear_layers", job.ndq_linears},
       {"layer_norm_layers", job.layer_norms},
       {"activation_sin", std::sin(angle)},
       {"activation_cos", std::cos(angle)},
       {"activation_sin_truncated", std::trunc(std::sin(angle))},
       {"activation_cos_truncated", std::trunc(std::cos(angle))}}};
  const auto found =
      std::find_if(figures.begin(), figures.end(), [&](const auto& figure) { return figure.first == name; });
  return found == figures.end() ? 0.0 : found->second;
}

TestVector example_of(const ExampleJob& job, const Published& model) {
  TestVector example;
  for (const std::string_view name : model.features) {
    example.features.push_back(example_feature(job, name, model.nets));
  }
  const std::int64_t rows = std::min(job.rows, model.sequence_length);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<double> layer(static_cast<std::size_t>(model.codes), 0.0);
    layer[static_cast<std::size_t>(row % model.codes)] = 1.0;
    layer.push_back(std::floor(job.activations / static_cast<double>(rows)));
    layer.push_back(row % 2 == 0 ? std::floor(2.0 * job.parameters / static_cast<double>(rows)) : 0.0);
    example.sequence.push_back(std::move(layer));
  }
  return example;
}

/// What the network gives for the made-up jobs.
core::Result<std::vector<TestVector>> test_vectors(const Published& published, const TrainedModel& model) {
  std::vector<TestVector> all;
  for (const ExampleJob& job : kExamples) {
    TestVector example = example_of(job, published);
    const auto outputs = run_raw(model, example.features, example.sequence);
    if (!outputs) return outputs.error();
    example.outputs.assign(outputs->begin(), outputs->end());
    all.push_back(std::move(example));
  }
  return all;
}

ModelConfig config_of(const Published& model, const LightningCheckpoint& checkpoint) {
  const auto raw = [](std::string_view name) { return FeatureSpec{.name = "gpumemnet." + std::string(name)}; };
  ModelConfig config;
  config.name = "gpumemnet-" + std::string(model.name);
  config.nets = model.nets;
  config.network = shape_of(model);
  for (const std::string_view name : model.features) config.features.push_back(raw(name));
  for (std::int64_t code = 0; code < model.codes; ++code) {
    config.sequence.push_back(raw("code_" + std::to_string(code)));
  }
  if (model.sequence_length > 0) {
    config.sequence.push_back(raw("layer_activations"));
    config.sequence.push_back(raw("layer_parameters"));
  }
  config.head.edges_mib.assign(model.edges_mib.begin(), model.edges_mib.end());
  config.provenance = {
      {"source", "GPUMemNet's published checkpoint " + std::string(model.name) +
                     " (recognised by the names and shapes of its tensors), repository itu-rad/GPUMemNet"},
      {"data", std::string(model.data)},
      {"gpu", "A100-40GB"},
      {"software", "PyTorch Lightning " + checkpoint.lightning_version + ", epoch " + std::to_string(checkpoint.epoch)},
      {"licence", "see the source"},
  };
  return config;
}

}  // namespace

core::Result<ImportedModel> import_gpumemnet(std::string_view bytes, std::string_view file) {
  const auto checkpoint = read_lightning_checkpoint(bytes, file);
  if (!checkpoint) return checkpoint.error();
  StateByName state;
  for (const StateTensor& tensor : checkpoint->tensors) state.emplace(tensor.name, &tensor);
  const auto model = recognise(state, file);
  if (!model) return model.error();
  ModelConfig config = config_of(**model, *checkpoint);
  auto weights = weights_of(state, config.network, file);
  if (!weights) return weights.error();
  auto network = Network::create(config.network, *weights);
  if (!network) return std::move(network.error()).in_file(file);
  TrainedModel trained = {std::move(config), *std::move(network)};
  auto examples = test_vectors(**model, trained);
  if (!examples) return malformed("its weights make no network: " + examples.error().message, file);
  trained.config.test_vectors = *std::move(examples);
  return ImportedModel{std::move(trained.config), *std::move(weights)};
}

}  // namespace gpumem::datasets
