// Input: the object of a config.json.
// Output: its fields, checked for type and bounds; the fields that were asked for and are missing; and the fields that
// nobody asked for, those that can hold parameters or activations apart.
// Units: elements, layers, heads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::architectures {

/// How a config.json is parsed, which transformers writes with Python's NaN and Infinity.
inline constexpr core::JsonLimits kConfigLimits = {.depth = 12, .values = std::size_t{1} << 16, .python_numbers = true};

/// Remembers what is missing and the first fault: an architecture reads its fields plainly, and looks for the fault
/// when all are read. A config is untrusted: every size is positive and fits 32 bits.
class ConfigFields {
 public:
  /// `config` must be an object, and outlive this.
  explicit ConfigFields(const core::JsonValue& config);

  /// A size that must be there under one of these names, the first of them for messages; 1 if it is not.
  std::int64_t size(std::initializer_list<std::string_view> names);
  /// The same, and `otherwise` if it is not there or null.
  std::int64_t size_or(std::initializer_list<std::string_view> names, std::int64_t otherwise);
  /// A number of layers: at most kMostLayers.
  std::int64_t layers(std::initializer_list<std::string_view> names);
  /// The same, and `otherwise` if it is not there or null.
  std::int64_t layers_or(std::string_view name, std::int64_t otherwise);
  /// A size, 0 if it is there as 0 or null.
  std::int64_t count_or(std::string_view name, std::int64_t otherwise);
  /// A size that may be a list of one a layer, all the same; layers that differ are a fault.
  std::int64_t size_of_layers(std::string_view name, std::int64_t otherwise);
  /// A list of sizes, or one size as a list of its own; `otherwise` if it is not there or null.
  std::vector<std::int64_t> sizes_or(std::string_view name, std::vector<std::int64_t> otherwise);
  /// A list of texts; `otherwise` if it is not there or null.
  std::vector<std::string> texts_or(std::string_view name, std::vector<std::string> otherwise);
  /// Which layers have this entry in a list of one a layer, where the others have `other`; empty: the field is no list,
  /// or an empty one. A shorter list, and any other entry, is a fault.
  template <typename Value>
  std::vector<bool> layers_with(std::string_view name, std::int64_t layers, Value value, Value other);
  /// Which layers a list of their numbers names, where the first is `first`; empty: the field is no list. A number of
  /// no layer is a fault.
  std::vector<bool> layers_listed(std::string_view name, std::int64_t layers, std::int64_t first = 0);
  bool flag(std::string_view name, bool otherwise);
  double number(std::initializer_list<std::string_view> names, double otherwise);
  std::string_view text(std::initializer_list<std::string_view> names, std::string_view otherwise);
  /// The first class in "architectures"; empty: it names none.
  std::string_view class_name();
  /// The field of this name, counted as read; null: it is not there, or is null.
  const core::JsonValue* find(std::string_view name);
  /// The same; if it is not there, that of the first part that has it.
  const core::JsonValue* find_within(std::string_view name);
  /// The same, and it does not count as read.
  [[nodiscard]] const core::JsonValue* peek(std::string_view name) const;
  /// Whether the field is there, and not null. Does not count as read.
  [[nodiscard]] bool has(std::string_view name) const;
  /// Whether the field, or that of "text_config", is there as false. Does not count as read.
  [[nodiscard]] bool turns_off(std::string_view name) const;
  /// Whether the field is there, and null: where that means nothing of the kind, and not the class's default.
  [[nodiscard]] bool is_null(std::string_view name) const;
  /// These fields change no memory here.
  void ignore(std::initializer_list<std::string_view> names);

  /// Whatever model_type says, the model is of this type.
  void take_type(std::string_view type) { type_ = type; }
  /// The model is one whose experts are one tensor each, which no field of a config says; so are its parts' that are
  /// read from now on.
  void fuse_experts() { fuses_experts_ = true; }
  [[nodiscard]] bool fuses_experts() const { return fuses_experts_; }
  /// Experts are modules of their own, whatever transformers' class has: in Megatron, or in the publisher's own code.
  void list_experts() {
    fuses_experts_ = false;
    lists_experts_ = true;
  }
  [[nodiscard]] bool lists_experts() const { return lists_experts_; }
  /// The fields of the object of this name, with those that it leaves out as this JSON object has them (the defaults of
  /// its class). It lives as long as this, which reports what is wrong or not read in it under the name's path. Null:
  /// no such object is there.
  ConfigFields* part(std::string_view name, std::string_view usual = {});
  /// The same of an object that the config may leave out: all of its fields are then as its class has them.
  ConfigFields* part_or_usual(std::string_view name);
  /// Fields that are not there are as this JSON object has them.
  void complete(std::string_view usual);
  /// Fields are as this JSON object has them, whatever the config says.
  void replace(std::string_view fields);
  /// Fields of this that `part` has too: its own count.
  void ignore_those_of(const ConfigFields& part);

  /// The config cannot be taken for what it says.
  void fail(std::string message, std::string_view field = {});

  /// Done if all that was asked for was there. Errors: missing_information, with the names of all that is not; or
  /// malformed_input, with the JSON pointer of the first field that is wrong.
  [[nodiscard]] core::Status status() const;
  /// Fields that nobody asked for and that may change memory: not those that only tokenizers, generation and training
  /// scripts read, nor texts, nulls and false.
  [[nodiscard]] std::vector<std::string> unread() const;
  /// Those of them that can hold parameters or activations, by their names: experts, towers, states, ranks, further
  /// heads. Where the model type itself is not known, any size, list or object can.
  [[nodiscard]] std::vector<std::string> unread_parts(bool known_type) const;

  static constexpr std::int64_t kMostLayers = 4096;
  static constexpr std::int64_t kLargestSize = INT32_MAX;

 private:
  struct Field {
    const core::JsonValue* value = nullptr;
    bool read = false;
  };
  /// Fields that do not come from the config.
  struct Added {
    std::string text;
    std::optional<core::JsonDocument> document = {};
  };
  const core::JsonValue* add(std::string_view fields);
  const core::JsonValue* find_any(std::initializer_list<std::string_view> names);
  std::optional<std::int64_t> positive(std::initializer_list<std::string_view> names);

  std::vector<Field> fields_;
  std::vector<std::string_view> missing_;
  std::optional<core::Error> fault_;
  std::string_view type_ = {};  ///< in place of model_type; empty: that counts
  bool fuses_experts_ = false;
  bool lists_experts_ = false;
  std::string name_;  ///< of the object in the config around it
  std::list<ConfigFields> parts_;
  std::vector<std::shared_ptr<const Added>> added_;
};

template <typename Value>
std::vector<bool> ConfigFields::layers_with(std::string_view name, std::int64_t layers, Value value, Value other) {
  std::vector<bool> found;
  const core::JsonValue* list = find(name);
  if (list == nullptr || !list->is(core::JsonValue::Kind::list) || list->size() == 0) return found;
  for (const core::JsonValue& entry : list->items()) {
    if (static_cast<std::int64_t>(found.size()) == layers) break;
    found.push_back(entry.is(value));
    if (!entry.is(value) && !entry.is(other)) fail("names a kind of layer that is not known", name);
  }
  if (static_cast<std::int64_t>(found.size()) < layers) fail("has fewer entries than the model has layers", name);
  found.resize(static_cast<std::size_t>(layers), false);
  return found;
}

/// The parameters that a name says: "Llama-3.1-8B" has 8e9, "OLMoE-1B-7B" the larger of both, "bloom-7b1" 7.1e9.
/// Nothing where it says none, or counts experts ("8x7B"). Experts that a token uses ("A3B") are no size.
[[nodiscard]] std::optional<double> size_in_name(std::string_view name);

}  // namespace gpumem::architectures
