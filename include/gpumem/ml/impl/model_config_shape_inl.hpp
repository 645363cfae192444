#pragma once

#include "gpumem/ml/model_config.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "gpumem/core/bytes.hpp"

namespace gpumem::ml {

namespace network_shape_detail {

constexpr std::int64_t kWidest = 4096;
constexpr std::int64_t kLongest = 65536;
constexpr std::int64_t kDeepest = 64;
constexpr std::int64_t kMostBranches = 16;
constexpr std::int64_t kMostMembers = 256;
constexpr std::int64_t kMostElements = std::int64_t{1} << 26;

struct Bounds {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

GPUMEM_INLINE core::Error fault(std::string field, std::string message) {
  return {core::ErrorCode::invalid_argument, std::move(message), {{}, 0, std::move(field)}};
}

GPUMEM_INLINE core::Status within(std::int64_t value, Bounds bounds, std::string field) {
  if (value >= bounds.least && value <= bounds.most) return core::Done();
  return fault(std::move(field), std::to_string(value) + " is out of range: from " + std::to_string(bounds.least) +
                                     " to " + std::to_string(bounds.most));
}

GPUMEM_INLINE std::int64_t size_of(const auto& list) { return static_cast<std::int64_t>(list.size()); }

GPUMEM_INLINE core::Status check(const EncoderShape& encoder, const std::string& field) {
  for (const auto& [name, value, bounds] : {std::tuple{"/width", encoder.width, Bounds{1, kWidest}},
                                            std::tuple{"/layers", encoder.layers, Bounds{1, kDeepest}},
                                            std::tuple{"/heads", encoder.heads, Bounds{1, kWidest}},
                                            std::tuple{"/feed_forward", encoder.feed_forward, Bounds{1, kWidest}}}) {
    if (auto status = within(value, bounds, field + name); !status) return status;
  }
  if (encoder.width % encoder.heads == 0) return core::Done();
  return fault(field + "/heads", std::to_string(encoder.heads) + " heads do not divide a width of " +
                                     std::to_string(encoder.width) + " evenly");
}

GPUMEM_INLINE core::Status check(const std::vector<std::int64_t>& member, const std::string& field) {
  if (auto status = within(size_of(member), {0, kDeepest}, field); !status) return status;
  for (std::size_t hidden = 0; hidden < member.size(); ++hidden) {
    if (auto status = within(member[hidden], {1, kWidest}, field + "/" + std::to_string(hidden)); !status) {
      return status;
    }
  }
  return core::Done();
}

GPUMEM_INLINE core::Status check(const BranchShape& branch, std::int64_t features, const std::string& field) {
  if (branch.encoder) {
    if (auto status = check(*branch.encoder, field + "/encoder"); !status) return status;
  } else if (features == 0) {
    return fault(field, "it has neither features nor an encoder: nothing enters its members");
  }
  if (auto status = within(size_of(branch.members), {1, kMostMembers}, field + "/members"); !status) return status;
  for (std::size_t member = 0; member < branch.members.size(); ++member) {
    const std::string name = field + "/members/" + std::to_string(member);
    if (auto status = check(branch.members[member], name); !status) return status;
  }
  return core::Done();
}

GPUMEM_INLINE core::Status check_sequence(const NetworkShape& shape) {
  const bool read = std::any_of(shape.branches.begin(), shape.branches.end(),
                                [](const BranchShape& branch) { return branch.encoder.has_value(); });
  const bool given = shape.sequence_length != 0 || shape.sequence_columns != 0;
  if (given && !read) return fault("/sequence", "no branch has an encoder that reads it: leave it out");
  if (!read) return core::Done();
  auto status = within(shape.sequence_length, {1, kLongest}, "/sequence/length");
  return status ? within(shape.sequence_columns, {1, kWidest}, "/sequence/columns") : status;
}

/// Each size by itself may be sensible and their product not.
GPUMEM_INLINE core::Status check_total(const NetworkShape& shape) {
  core::Checked weights = 0;
  for (const TensorSpec& tensor : tensors_of(shape)) {
    core::Checked elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= size;
    weights += elements;
  }
  if (!weights.valid() || *weights.value() > kMostElements) {
    return fault("/branches", "the weights have more than " + std::to_string(kMostElements) + " elements");
  }
  for (std::size_t branch = 0; branch < shape.branches.size(); ++branch) {
    const auto& encoder = shape.branches[branch].encoder;
    if (!encoder || shape.sequence_length * std::max(encoder->width, encoder->feed_forward) <= kMostElements) continue;
    return fault("/branches/" + std::to_string(branch) + "/encoder/width",
                 "a sequence of this length and width has more than " + std::to_string(kMostElements) + " elements");
  }
  return core::Done();
}

/// Writes down tensors by name, in order.
class TensorList {
 public:
  void linear(const std::string& name, std::int64_t out, std::int64_t in) {
    tensors_.push_back({name + ".weight", {out, in}});
    tensors_.push_back({name + ".bias", {out}});
  }

  void batch_norm(const std::string& name, std::int64_t channels) {
    for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"}) {
      tensors_.push_back({name + part, {channels}});
    }
  }

  void layer_norm(const std::string& name, std::int64_t width) {
    tensors_.push_back({name + ".weight", {width}});
    tensors_.push_back({name + ".bias", {width}});
  }

  [[nodiscard]] std::vector<TensorSpec> take() && { return std::move(tensors_); }

 private:
  std::vector<TensorSpec> tensors_;
};

GPUMEM_INLINE void list_embedding(const NetworkShape& shape, const EncoderShape& encoder, const std::string& name,
                                  TensorList& tensors) {
  const bool norms = encoder.embedding == Embedding::position_batch_norm;
  std::int64_t in = shape.sequence_columns;
  for (int step = 0; step < (norms ? 2 : 1); ++step) {
    const std::string prefix = name + std::to_string(step);
    tensors.linear(prefix + ".linear", encoder.width, in);
    if (norms) tensors.batch_norm(prefix + ".norm", shape.sequence_length);
    in = encoder.width;
  }
}

GPUMEM_INLINE void list_encoder(const NetworkShape& shape, const EncoderShape& encoder, const std::string& name,
                                TensorList& tensors) {
  list_embedding(shape, encoder, name + "embedding.", tensors);
  const std::int64_t width = encoder.width;
  for (std::int64_t layer = 0; layer < encoder.layers; ++layer) {
    const std::string prefix = name + "layers." + std::to_string(layer);
    tensors.linear(prefix + ".attention.in_proj", 3 * width, width);
    tensors.linear(prefix + ".attention.out_proj", width, width);
    tensors.layer_norm(prefix + ".norm1", width);
    tensors.linear(prefix + ".linear1", encoder.feed_forward, width);
    tensors.linear(prefix + ".linear2", width, encoder.feed_forward);
    tensors.layer_norm(prefix + ".norm2", width);
  }
}

GPUMEM_INLINE void list_member(const std::vector<std::int64_t>& widths, std::int64_t in, std::int64_t outputs,
                               const std::string& name, TensorList& tensors) {
  for (std::size_t hidden = 0; hidden < widths.size(); ++hidden) {
    const std::string prefix = name + "hidden." + std::to_string(hidden);
    tensors.linear(prefix + ".linear", widths[hidden], in);
    tensors.batch_norm(prefix + ".norm", widths[hidden]);
    in = widths[hidden];
  }
  tensors.linear(name + "output", outputs, in);
}

}  // namespace network_shape_detail

GPUMEM_INLINE core::Status validate(const NetworkShape& shape) {
  namespace detail = network_shape_detail;
  auto status = detail::within(shape.features, {0, detail::kWidest}, "/features");
  if (status) status = detail::within(shape.outputs, {1, detail::kWidest}, "/outputs");
  if (status) status = detail::within(detail::size_of(shape.branches), {1, detail::kMostBranches}, "/branches");
  if (status) status = detail::check_sequence(shape);
  if (!status) return status;
  std::int64_t members = 0;
  for (std::size_t branch = 0; branch < shape.branches.size(); ++branch) {
    status = detail::check(shape.branches[branch], shape.features, "/branches/" + std::to_string(branch));
    if (!status) return status;
    members += detail::size_of(shape.branches[branch].members);
  }
  status = detail::within(members, {1, detail::kMostMembers}, "/branches");
  return status ? detail::check_total(shape) : status;
}

GPUMEM_INLINE std::vector<TensorSpec> tensors_of(const NetworkShape& shape) {
  namespace detail = network_shape_detail;
  detail::TensorList tensors;
  for (std::size_t at = 0; at < shape.branches.size(); ++at) {
    const BranchShape& branch = shape.branches[at];
    const std::string name = "branches." + std::to_string(at) + ".";
    const std::int64_t in = shape.features + (branch.encoder ? branch.encoder->width : 0);
    if (branch.encoder) detail::list_encoder(shape, *branch.encoder, name + "encoder.", tensors);
    for (std::size_t member = 0; member < branch.members.size(); ++member) {
      detail::list_member(branch.members[member], in, shape.outputs, name + "members." + std::to_string(member) + ".",
                          tensors);
    }
  }
  return std::move(tensors).take();
}

namespace model_config_writer_detail {

using Json = nlohmann::ordered_json;

/// Whole numbers are written as such, so that edges read 8000 and not 8000.0; -0.0 stays.
GPUMEM_INLINE Json number(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const bool whole = std::abs(value) < kExact && std::trunc(value) == value;
  if (whole && !(value == 0.0 && std::signbit(value))) return static_cast<std::int64_t>(value);
  return value;
}

GPUMEM_INLINE Json to_json(double value) { return number(value); }
GPUMEM_INLINE Json to_json(std::int64_t value) { return value; }
GPUMEM_INLINE Json to_json(const std::string& text) { return text; }

template <typename Value>
Json to_json(const std::vector<Value>& list);

GPUMEM_INLINE Json to_json(const EncoderShape& encoder) {
  return {{"width", encoder.width},
          {"layers", encoder.layers},
          {"heads", encoder.heads},
          {"feed_forward", encoder.feed_forward},
          {"embedding", std::string(model::name_of(kEmbeddings, encoder.embedding))},
          {"attention", std::string(model::name_of(kAttentions, encoder.attention))},
          {"pooling", std::string(model::name_of(kPoolings, encoder.pooling))}};
}

GPUMEM_INLINE Json to_json(const BranchShape& branch) {
  Json json = Json::object();
  if (branch.encoder) json["encoder"] = to_json(*branch.encoder);
  json["members"] = to_json(branch.members);
  return json;
}

GPUMEM_INLINE Json to_json(const NetworkShape& network) {
  Json json = {{"features", network.features}, {"outputs", network.outputs}};
  if (network.sequence_columns != 0 || network.sequence_length != 0) {
    json["sequence"] = {{"length", network.sequence_length}, {"columns", network.sequence_columns}};
  }
  json["branches"] = to_json(network.branches);
  return json;
}

GPUMEM_INLINE Json to_json(const FeatureSpec& spec) {
  Json json = {{"name", spec.name},
               {"transform", std::string(model::name_of(kTransforms, spec.transform))},
               {"mean", number(spec.mean)},
               {"scale", number(spec.scale)}};
  if (spec.min) json["min"] = number(*spec.min);
  if (spec.max) json["max"] = number(*spec.max);
  return json;
}

GPUMEM_INLINE Json to_json(const Head& head) {
  if (!head.edges_mib.empty() && head.of.empty()) return {{"type", "bins"}, {"edges_mib", to_json(head.edges_mib)}};
  if (!head.of.empty()) return {{"type", "bins"}, {"of", head.of}, {"edges", to_json(head.edges_mib)}};
  if (head.spread == 0.0) {
    Json json = {{"type", "values"}, {"names", to_json(head.names)}};
    if (const Residuals& of = head.residuals; of.coverage > 0.0) {
      json["residuals"] = {{"lower", to_json(of.lower)}, {"upper", to_json(of.upper)}, {"coverage", of.coverage}};
    }
    return json;
  }
  Json json = {{"type", "mixture"}, {"names", to_json(head.names)}, {"spread", head.spread}};
  if (head.wide_spread > 0.0) json["wide_spread"] = head.wide_spread;
  json["lower_share"] = head.lower_share;
  json["upper_share"] = head.upper_share;
  return json;
}

GPUMEM_INLINE Json to_json(const TestVector& vector) {
  Json json = {{"features", to_json(vector.features)}};
  if (!vector.sequence.empty()) json["sequence"] = to_json(vector.sequence);
  json["outputs"] = to_json(vector.outputs);
  return json;
}

template <typename Value>
Json to_json(const std::vector<Value>& list) {
  Json json = Json::array();
  for (const Value& item : list) json.push_back(to_json(item));
  return json;
}

template <typename Value>
Json to_json(const std::vector<std::pair<std::string, Value>>& named) {
  Json json = Json::object();
  for (const auto& [name, value] : named) json[name] = to_json(value);
  return json;
}

/// On one line, with a blank after each comma and colon.
GPUMEM_INLINE std::string line_of(const Json& json) {
  const auto plain = [](const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); };
  if (!json.is_structured()) return plain(json);
  std::string text;
  for (const auto& [key, item] : json.items()) {
    if (!text.empty()) text += ", ";
    if (json.is_object()) text += plain(key) + ": ";
    text += line_of(item);
  }
  return json.is_object() ? "{" + text + "}" : "[" + text + "]";
}

/// What fits a line is on one line, from this column on; otherwise each item has its line. A long list of numbers stays
/// on one all the same: a line a number helps nobody.
GPUMEM_INLINE std::string pretty(const Json& json, std::size_t indent, std::size_t column) {
  constexpr std::size_t kWidth = 118;  // and a comma
  constexpr std::size_t kStep = 2;
  std::string line = line_of(json);
  const bool numbers =
      json.is_array() && std::all_of(json.begin(), json.end(), [](const Json& item) { return item.is_number(); });
  if (!json.is_structured() || json.empty() || numbers) return line;
  if (indent > 0 && column + line.size() <= kWidth) return line;
  const std::string inner(indent + kStep, ' ');
  std::string text;
  for (const auto& [key, item] : json.items()) {
    const std::string name = json.is_object() ? line_of(Json(key)) + ": " : "";
    text += text.empty() ? "\n" : ",\n";
    text += inner;
    text += name;
    text += pretty(item, inner.size(), inner.size() + name.size());
  }
  text += "\n" + std::string(indent, ' ');
  return json.is_object() ? "{" + text + "}" : "[" + text + "]";
}

}  // namespace model_config_writer_detail

GPUMEM_INLINE std::string write_model_config(const ModelConfig& config) {
  namespace detail = model_config_writer_detail;
  detail::Json json = {{"format", std::string(kModelConfigFormat)},
                       {"version", kModelConfigVersion},
                       {"name", config.name},
                       {"nets", std::string(model::name_of(kNetKinds, config.nets))},
                       {"network", detail::to_json(config.network)},
                       {"features", detail::to_json(config.features)}};
  if (!config.sequence.empty()) json["sequence"] = detail::to_json(config.sequence);
  json["head"] = detail::to_json(config.head);
  json["provenance"] = detail::to_json(config.provenance);
  if (!config.accuracy.empty()) json["accuracy"] = detail::to_json(config.accuracy);
  json["test_vectors"] = detail::to_json(config.test_vectors);
  return detail::pretty(json, 0, 0) + "\n";
}

}  // namespace gpumem::ml
