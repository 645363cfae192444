#pragma once

#include "gpumem/ml/model_config_writer.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace gpumem::ml {

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
