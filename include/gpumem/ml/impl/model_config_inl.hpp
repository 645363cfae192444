#pragma once

#include "gpumem/ml/model_config.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gpumem/core/json.hpp"

namespace gpumem::ml {

namespace model_config_detail {

using core::JsonValue;
using Kind = JsonValue::Kind;

// Test vectors are most of a config: one of the longest sequences takes a megabyte or two.
inline constexpr std::size_t kLargest = std::size_t{16} << 20;
inline constexpr core::JsonLimits kLimits = {.depth = 8, .values = std::size_t{1} << 22};

using core::malformed;

// ---- values: what is in `json` goes to `to`

GPUMEM_INLINE core::Status read(const JsonValue& json, double& to) {
  switch (json.kind()) {
    case Kind::integer: to = static_cast<double>(json.integer()); return core::Done{};
    case Kind::beyond_int64: to = static_cast<double>(json.unsigned_integer()); return core::Done{};
    case Kind::real: to = json.real(); return core::Done{};
    default: return malformed("must be a number");
  }
}

GPUMEM_INLINE core::Status read(const JsonValue& json, std::int64_t& to) {
  if (!json.is(Kind::integer)) return malformed("must be a whole number");
  to = json.integer();
  return core::Done{};
}

GPUMEM_INLINE core::Status read(const JsonValue& json, std::string& to) {
  if (!json.is(Kind::text) || json.text().empty()) return malformed("must be a text that is not empty");
  to = json.text();
  return core::Done{};
}

template <typename Enum, std::size_t Count>
core::Status read_name(const JsonValue& json, const std::array<model::Named<Enum>, Count>& list, Enum& to) {
  const auto value = json.is(Kind::text) ? model::value_of(list, json.text()) : std::nullopt;
  if (value) {
    to = *value;
    return core::Done{};
  }
  std::string names;
  for (const model::Named<Enum>& row : list) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return malformed("must be one of " + names);
}

template <typename Value>
core::Status read(const JsonValue& json, std::vector<Value>& to);

/// A field that an object of a config may have, and what reads it.
template <typename Target>
struct Field {
  std::string_view name;
  bool required;
  core::Status (*read)(const JsonValue& json, Target& to);
};

template <typename Target, std::size_t Count>
core::Status read_fields(const JsonValue& json, const std::array<Field<Target>, Count>& fields, Target& to) {
  if (!json.is(Kind::object)) return malformed("must be an object");
  std::array<bool, Count> seen{};
  for (const JsonValue& item : json.items()) {
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const Field<Target>& row) { return row.name == item.key(); });
    if (field == fields.end()) return core::below(item.key(), malformed("is not a field of a model's config"));
    seen[static_cast<std::size_t>(field - fields.begin())] = true;
    core::Status status = field->read(item, to);
    if (!status) return core::below(item.key(), std::move(status.error()));
  }
  for (std::size_t row = 0; row < Count; ++row) {
    if (fields[row].required && !seen[row]) return core::below(fields[row].name, malformed("is missing"));
  }
  return core::Done{};
}

GPUMEM_INLINE core::Status read(const JsonValue& json, EncoderShape& to) {
  using Row = Field<EncoderShape>;
  static constexpr std::array<Row, 7> kFields = {
      {{"width", true, [](const JsonValue& item, EncoderShape& shape) { return read(item, shape.width); }},
       {"layers", true, [](const JsonValue& item, EncoderShape& shape) { return read(item, shape.layers); }},
       {"heads", true, [](const JsonValue& item, EncoderShape& shape) { return read(item, shape.heads); }},
       {"feed_forward", true,
        [](const JsonValue& item, EncoderShape& shape) { return read(item, shape.feed_forward); }},
       {"embedding", true,
        [](const JsonValue& item, EncoderShape& shape) { return read_name(item, kEmbeddings, shape.embedding); }},
       {"attention", true,
        [](const JsonValue& item, EncoderShape& shape) { return read_name(item, kAttentions, shape.attention); }},
       {"pooling", true,
        [](const JsonValue& item, EncoderShape& shape) { return read_name(item, kPoolings, shape.pooling); }}}};
  return read_fields(json, kFields, to);
}

GPUMEM_INLINE core::Status read(const JsonValue& json, BranchShape& to) {
  static constexpr std::array<Field<BranchShape>, 2> kFields = {
      {{"encoder", false,
        [](const JsonValue& item, BranchShape& shape) { return read(item, shape.encoder.emplace()); }},
       {"members", true, [](const JsonValue& item, BranchShape& shape) { return read(item, shape.members); }}}};
  return read_fields(json, kFields, to);
}

GPUMEM_INLINE core::Status read_sequence_shape(const JsonValue& json, NetworkShape& to) {
  static constexpr std::array<Field<NetworkShape>, 2> kFields = {
      {{"length", true, [](const JsonValue& item, NetworkShape& shape) { return read(item, shape.sequence_length); }},
       {"columns", true,
        [](const JsonValue& item, NetworkShape& shape) { return read(item, shape.sequence_columns); }}}};
  return read_fields(json, kFields, to);
}

GPUMEM_INLINE core::Status read(const JsonValue& json, NetworkShape& to) {
  static constexpr std::array<Field<NetworkShape>, 4> kFields = {
      {{"features", true, [](const JsonValue& item, NetworkShape& shape) { return read(item, shape.features); }},
       {"outputs", true, [](const JsonValue& item, NetworkShape& shape) { return read(item, shape.outputs); }},
       {"sequence", false, read_sequence_shape},
       {"branches", true, [](const JsonValue& item, NetworkShape& shape) { return read(item, shape.branches); }}}};
  core::Status status = read_fields(json, kFields, to);
  if (!status) return status;
  status = validate(to);
  if (!status) status.error().code = core::ErrorCode::malformed_input;
  return status;
}

GPUMEM_INLINE core::Status read(const JsonValue& json, FeatureSpec& to) {
  using Row = Field<FeatureSpec>;
  static constexpr std::array<Row, 6> kFields = {
      {{"name", true, [](const JsonValue& item, FeatureSpec& spec) { return read(item, spec.name); }},
       {"transform", false,
        [](const JsonValue& item, FeatureSpec& spec) { return read_name(item, kTransforms, spec.transform); }},
       {"mean", false, [](const JsonValue& item, FeatureSpec& spec) { return read(item, spec.mean); }},
       {"scale", false, [](const JsonValue& item, FeatureSpec& spec) { return read(item, spec.scale); }},
       {"min", false, [](const JsonValue& item, FeatureSpec& spec) { return read(item, spec.min.emplace()); }},
       {"max", false, [](const JsonValue& item, FeatureSpec& spec) { return read(item, spec.max.emplace()); }}}};
  core::Status status = read_fields(json, kFields, to);
  if (!status) return status;
  if (to.scale == 0.0) return core::below("scale", malformed("must not be 0: figures are divided by it"));
  if (to.min && to.max && *to.min > *to.max) return core::below("max", malformed("is below \"min\""));
  return core::Done{};
}

GPUMEM_INLINE core::Status check_mixture(const Head& head, bool mixture) {
  if (!mixture) {
    const bool none =
        head.spread == 0.0 && head.wide_spread == 0.0 && head.lower_share == 0.0 && head.upper_share == 0.0;
    return none ? core::Status(core::Done{}) : malformed("has figures of a mixture, but has another type");
  }
  constexpr double kHalf = 0.5;
  if (!(head.spread > 0.0)) return core::below("spread", malformed("must be above 0"));
  const bool wide = std::find(head.names.begin(), head.names.end(), kWideComponent) != head.names.end();
  if (wide != (head.wide_spread > 0.0) || !std::isfinite(head.wide_spread)) {
    return core::below("wide_spread", malformed("must be above 0 if \"wide\" is among the names, and absent if not"));
  }
  if (!(head.lower_share > 0.0 && head.lower_share < kHalf)) {
    return core::below("lower_share", malformed("must lie between 0 and 0.5"));
  }
  if (!(head.upper_share > kHalf && head.upper_share < 1.0)) {
    return core::below("upper_share", malformed("must lie between 0.5 and 1"));
  }
  return core::Done{};
}

/// "head" while it is read: the field "type" says which list it must have.
struct HeadText {
  std::string type;
  Head head;
  bool edges = false;
  bool in_mib = false;
  bool names = false;
};

GPUMEM_INLINE core::Status read(const JsonValue& json, Residuals& to) {
  static constexpr std::array<Field<Residuals>, 3> kFields = {
      {{"lower", true, [](const JsonValue& item, Residuals& residuals) { return read(item, residuals.lower); }},
       {"upper", true, [](const JsonValue& item, Residuals& residuals) { return read(item, residuals.upper); }},
       {"coverage", true, [](const JsonValue& item, Residuals& residuals) { return read(item, residuals.coverage); }}}};
  core::Status status = read_fields(json, kFields, to);
  if (!status) return status;
  if (!(to.coverage > 0.0 && to.coverage <= 1.0))
    return core::below("coverage", malformed("must lie above 0, up to 1"));
  return core::Done{};
}

GPUMEM_INLINE core::Status read_head(const JsonValue& json, Head& to) {
  static constexpr std::array<Field<HeadText>, 10> kFields = {
      {{"spread", false, [](const JsonValue& item, HeadText& text) { return read(item, text.head.spread); }},
       {"wide_spread", false, [](const JsonValue& item, HeadText& text) { return read(item, text.head.wide_spread); }},
       {"lower_share", false, [](const JsonValue& item, HeadText& text) { return read(item, text.head.lower_share); }},
       {"upper_share", false, [](const JsonValue& item, HeadText& text) { return read(item, text.head.upper_share); }},
       {"type", true, [](const JsonValue& item, HeadText& text) { return read(item, text.type); }},
       {"edges_mib", false,
        [](const JsonValue& item, HeadText& text) {
          text.in_mib = true;
          return read(item, text.head.edges_mib);
        }},
       {"edges", false,
        [](const JsonValue& item, HeadText& text) {
          text.edges = true;
          return read(item, text.head.edges_mib);
        }},
       {"of", false, [](const JsonValue& item, HeadText& text) { return read(item, text.head.of); }},
       {"residuals", false, [](const JsonValue& item, HeadText& text) { return read(item, text.head.residuals); }},
       {"names", false, [](const JsonValue& item, HeadText& text) {
          text.names = true;
          return read(item, text.head.names);
        }}}};
  HeadText text;
  core::Status status = read_fields(json, kFields, text);
  if (!status) return status;
  if (text.type != "bins" && text.type != "values" && text.type != "mixture") {
    return core::below("type", malformed("must be bins, values or mixture"));
  }
  status = check_mixture(text.head, text.type == "mixture");
  if (!status) return status;
  const bool bins = text.type == "bins";
  if ((text.edges || text.in_mib) != bins || text.names == bins) {
    return malformed(bins ? "of type bins has \"edges_mib\" and no \"names\""
                          : "of this type has \"names\" and no \"edges_mib\"");
  }
  if (text.edges && text.in_mib) return malformed("has both \"edges_mib\" and \"edges\"");
  if (text.edges == text.head.of.empty())
    return malformed("has only one of \"edges\" and \"of\" (the figure that the edges divide)");
  if (bins && text.head.edges_mib.empty()) {
    return core::below(text.edges ? "edges" : "edges_mib", malformed("is empty"));
  }
  const bool residuals = !text.head.residuals.lower.empty() || !text.head.residuals.upper.empty();
  if (residuals && text.type != "values") return core::below("residuals", malformed("are for heads of values"));
  to = std::move(text.head);
  return core::Done{};
}

GPUMEM_INLINE core::Status read(const JsonValue& json, TestVector& to) {
  static constexpr std::array<Field<TestVector>, 3> kFields = {
      {{"features", true, [](const JsonValue& item, TestVector& vector) { return read(item, vector.features); }},
       {"sequence", false, [](const JsonValue& item, TestVector& vector) { return read(item, vector.sequence); }},
       {"outputs", true, [](const JsonValue& item, TestVector& vector) { return read(item, vector.outputs); }}}};
  return read_fields(json, kFields, to);
}

template <typename Value>
core::Status read(const JsonValue& json, std::vector<Value>& to) {
  if (!json.is(Kind::list)) return malformed("must be a list");
  to.reserve(json.size());
  std::size_t index = 0;
  for (const JsonValue& item : json.items()) {
    core::Status status = read(item, to.emplace_back());
    if (!status) return core::below(index, std::move(status.error()));
    ++index;
  }
  return core::Done{};
}

/// An object of values of one kind, in their order in the text.
template <typename Value>
core::Status read_named(const JsonValue& json, std::vector<std::pair<std::string, Value>>& to) {
  if (!json.is(Kind::object)) return malformed("must be an object");
  for (const JsonValue& item : json.items()) {
    core::Status status = read(item, to.emplace_back(std::string(item.key()), Value()).second);
    if (!status) return core::below(item.key(), std::move(status.error()));
  }
  return core::Done{};
}

GPUMEM_INLINE core::Status read(const JsonValue& json, ModelConfig& to) {
  using Row = Field<ModelConfig>;
  static constexpr std::array<Row, 11> kFields = {
      {{"format", true,
        [](const JsonValue& item, ModelConfig&) -> core::Status {
          if (item.is(kModelConfigFormat)) return core::Done{};
          return malformed("must be \"gpumem-model\"");
        }},
       {"version", true,
        [](const JsonValue& item, ModelConfig&) -> core::Status {
          if (item.is(static_cast<int>(kModelConfigVersion))) return core::Done{};
          return malformed("must be 1; a newer gpumem may read it");
        }},
       {"name", true, [](const JsonValue& item, ModelConfig& config) { return read(item, config.name); }},
       {"nets", true,
        [](const JsonValue& item, ModelConfig& config) { return read_name(item, kNetKinds, config.nets); }},
       {"network", true, [](const JsonValue& item, ModelConfig& config) { return read(item, config.network); }},
       {"features", true, [](const JsonValue& item, ModelConfig& config) { return read(item, config.features); }},
       {"sequence", false, [](const JsonValue& item, ModelConfig& config) { return read(item, config.sequence); }},
       {"head", true, [](const JsonValue& item, ModelConfig& config) { return read_head(item, config.head); }},
       {"provenance", true,
        [](const JsonValue& item, ModelConfig& config) { return read_named(item, config.provenance); }},
       {"accuracy", false,
        [](const JsonValue& item, ModelConfig& config) { return read_named(item, config.accuracy); }},
       {"test_vectors", true,
        [](const JsonValue& item, ModelConfig& config) { return read(item, config.test_vectors); }}}};
  return read_fields(json, kFields, to);
}

// ---- the parts against each other

GPUMEM_INLINE core::Status check_size(std::size_t size, std::int64_t wanted, std::string_view what) {
  if (static_cast<std::int64_t>(size) == wanted) return core::Done{};
  return malformed("has " + std::to_string(size) + " items; the network has " + std::to_string(wanted) + " " +
                   std::string(what));
}

/// Done if no two items are equal.
template <typename Item, typename Name>
core::Status check_unique(const std::vector<Item>& items, Name name) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const Item& item : items) names.push_back(name(item));
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return core::Done{};
  return malformed("names " + core::quoted(*twice) + " twice");
}

GPUMEM_INLINE core::Status check_specs(const std::vector<FeatureSpec>& specs, std::int64_t wanted,
                                       std::string_view what) {
  core::Status status = check_size(specs.size(), wanted, what);
  if (!status) return status;
  return check_unique(specs, [](const FeatureSpec& spec) { return std::string_view(spec.name); });
}

GPUMEM_INLINE core::Status check_edges(const std::vector<double>& edges, std::int64_t outputs) {
  if (static_cast<std::int64_t>(edges.size()) != outputs + 1) {
    return malformed("has " + std::to_string(edges.size()) + " edges; the bins of the network's " +
                     std::to_string(outputs) + " outputs need one more than these");
  }
  if (edges.front() < 0.0) return malformed("begins below 0");
  for (std::size_t index = 1; index < edges.size(); ++index) {
    if (!(edges[index - 1] < edges[index])) return core::below(index, malformed("is not above the edge before it"));
  }
  return core::Done{};
}

GPUMEM_INLINE core::Status check_head(const Head& head, std::int64_t outputs) {
  if (!head.edges_mib.empty()) {
    core::Status status = check_edges(head.edges_mib, outputs);
    return status ? status : core::below(head.of.empty() ? "edges_mib" : "edges", std::move(status.error()));
  }
  if (const Residuals& residuals = head.residuals; residuals.coverage > 0.0) {
    for (const auto* quantiles : {&residuals.lower, &residuals.upper}) {
      const core::Status one_each = check_size(quantiles->size(), outputs, "outputs");
      if (!one_each) return core::below("residuals", core::Error(one_each.error()));
    }
  }
  core::Status status = check_size(head.names.size(), outputs, "outputs");
  if (status) status = check_unique(head.names, [](const std::string& name) { return std::string_view(name); });
  return status ? status : core::below("names", std::move(status.error()));
}

GPUMEM_INLINE core::Status check_vector(const TestVector& vector, const NetworkShape& network) {
  core::Status status = check_size(vector.features.size(), network.features, "features");
  if (!status) return core::below("features", std::move(status.error()));
  status = check_size(vector.outputs.size(), network.outputs, "outputs");
  if (!status) return core::below("outputs", std::move(status.error()));
  if (network.sequence_columns == 0 && !vector.sequence.empty()) {
    return core::below("sequence", malformed("is there, but the network reads none"));
  }
  for (std::size_t row = 0; row < vector.sequence.size(); ++row) {
    status = check_size(vector.sequence[row].size(), network.sequence_columns, "columns");
    if (!status) return core::below("sequence", core::below(row, std::move(status.error())));
  }
  return core::Done{};
}

GPUMEM_INLINE core::Status check(const ModelConfig& config) {
  core::Status status = check_specs(config.features, config.network.features, "features");
  if (!status) return core::below("features", std::move(status.error()));
  status = check_specs(config.sequence, config.network.sequence_columns, "columns a row");
  if (!status) return core::below("sequence", std::move(status.error()));
  status = check_head(config.head, config.network.outputs);
  if (!status) return core::below("head", std::move(status.error()));
  if (config.test_vectors.empty()) {
    return core::below("test_vectors", malformed("must hold at least one, so that damage to the weights is seen"));
  }
  for (std::size_t index = 0; index < config.test_vectors.size(); ++index) {
    status = check_vector(config.test_vectors[index], config.network);
    if (!status) return core::below("test_vectors", core::below(index, std::move(status.error())));
  }
  return core::Done{};
}

GPUMEM_INLINE core::Result<ModelConfig> parse(std::string_view text) {
  if (text.size() > kLargest) return malformed("is larger than 16 MiB; no model's config is");
  const core::Result<core::JsonDocument> json = core::JsonDocument::parse(text, kLimits);
  if (!json) return json.error();
  ModelConfig config;
  core::Status status = read(json->root(), config);
  if (status) status = check(config);
  if (!status) return std::move(status.error());
  return config;
}

}  // namespace model_config_detail

GPUMEM_INLINE core::Result<ModelConfig> parse_model_config(std::string_view text, std::string_view file) {
  core::Result<ModelConfig> config = model_config_detail::parse(text);
  if (!config) return std::move(config.error()).in_file(file);
  return config;
}

GPUMEM_INLINE std::vector<double> spreads_of(const Head& head) {
  std::vector<double> spreads;
  for (const std::string& name : head.names) {
    spreads.push_back(name == kWideComponent && head.wide_spread > 0.0 ? head.wide_spread : head.spread);
  }
  return spreads;
}

}  // namespace gpumem::ml
