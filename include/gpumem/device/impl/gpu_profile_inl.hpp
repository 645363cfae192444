#pragma once

#include "gpumem/device/gpu_profile.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpumem/core/file.hpp"
#include "gpumem/device/workspace.hpp"

#if __has_include("gpumem/device/impl/builtin_gpus.hpp")
#include "gpumem/device/impl/builtin_gpus.hpp"
#else
namespace gpumem::device::builtin {
inline constexpr std::array<BuiltinProfile, 0> kProfiles = {};
}
#endif

namespace gpumem::device {

namespace gpu_profile_detail {

using Json = nlohmann::json;

inline constexpr std::size_t kLongestKey = 60;  // in messages
/// A profile is a few KiB; the bound keeps a wrong file from becoming a tree of gigabytes.
inline constexpr std::size_t kLargestProfile = std::size_t{1} << 20;

using core::malformed;

/// A positive 64-bit integer; figures are sizes, counts and rates, none of which is zero.
GPUMEM_INLINE std::optional<std::int64_t> positive(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  const auto value = json.get<std::int64_t>();
  return value > 0 ? std::optional(value) : std::nullopt;
}

GPUMEM_INLINE core::Result<Figure> figure_from(const std::string& name, const Json& json) {
  const bool shaped = json.is_object() && json.size() == 2 && json.contains("value") && json.contains("source") &&
                      json["source"].is_string() && !json["source"].get_ref<const std::string&>().empty();
  const auto value = shaped ? positive(json["value"]) : std::nullopt;
  if (!value) {
    return malformed("/figures/" + core::shortened(name, kLongestKey) +
                     " must be {\"value\": a positive integer, \"source\": text}");
  }
  return Figure{*value, json["source"].get<std::string>()};
}

GPUMEM_INLINE core::Status read_figures(const Json& json, GpuProfile& profile) {
  if (!json.is_object()) return malformed("/figures must be an object");
  struct Slot {
    std::string_view name;
    std::optional<Figure>* figure;
  };
  std::optional<Figure> memory;
  const std::array<Slot, 9> slots = {
      {{"memory_bytes", &memory},
       {"usable_bytes", &profile.usable_bytes},
       {"sm_count", &profile.sm_count},
       {"memory_bandwidth_bytes_per_second", &profile.memory_bandwidth_bytes_per_second},
       {"peak_fp32_flops", &profile.peak_fp32_flops},
       {"cublas_workspace_bytes", &profile.cublas_workspace_bytes},
       {"link_bandwidth_bytes_per_second", &profile.link_bandwidth_bytes_per_second},
       {"network_bandwidth_bytes_per_second", &profile.network_bandwidth_bytes_per_second},
       {"gpus_per_node", &profile.gpus_per_node}}};
  for (const auto& [name, item] : json.items()) {
    std::optional<Figure>* slot = nullptr;
    for (const Slot& candidate : slots) {
      if (candidate.name == name) slot = candidate.figure;
    }
    if (slot == nullptr)
      return malformed("/figures/" + core::shortened(name, kLongestKey) + " is not a figure of a GPU profile");
    core::Result<Figure> figure = figure_from(name, item);
    if (!figure) return figure.error();
    *slot = *std::move(figure);
  }
  if (!memory) return malformed("/figures/memory_bytes is missing");
  profile.memory_bytes = *std::move(memory);
  return core::Done{};
}

GPUMEM_INLINE core::Result<ContextFigure> context_from(const Json& json) {
  const core::Error fault = malformed(
      "/contexts must hold {\"name\": text, \"software\": text, \"bytes\": a positive integer, \"source\": text}, and "
      "may hold \"lower_bytes\" up to \"bytes\", \"upper_bytes\" from there, \"convolution_bytes\" and "
      "\"batch_norm_bytes\"");
  if (!json.is_object()) return fault;
  ContextFigure context;
  for (const auto& [name, item] : json.items()) {
    const bool text = name == "name" || name == "software" || name == "source";
    if (text) {
      if (!item.is_string()) return fault;
      (name == "name"       ? context.name
       : name == "software" ? context.software
                            : context.source) = item.get<std::string>();
      continue;
    }
    const auto bytes = positive(item);
    if (!bytes) return fault;
    if (name == "bytes") context.bytes = *bytes;
    else if (name == "lower_bytes") context.lower_bytes = *bytes;
    else if (name == "upper_bytes") context.upper_bytes = *bytes;
    else if (name == "convolution_bytes") context.convolution_bytes = *bytes;
    else if (name == "batch_norm_bytes") context.batch_norm_bytes = *bytes;
    else return fault;
  }
  if (context.name.empty() || context.software.empty() || context.source.empty() || context.bytes == 0) return fault;
  if (context.lower_bytes > context.bytes || (context.upper_bytes > 0 && context.upper_bytes < context.bytes)) {
    return fault;
  }
  return context;
}

GPUMEM_INLINE core::Status read_contexts(const Json& json, GpuProfile& profile) {
  if (!json.is_array()) return malformed("/contexts must be a list");
  for (const Json& item : json) {
    const core::Result<ContextFigure> context = context_from(item);
    if (!context) return context.error();
    profile.contexts.push_back(*context);
  }
  return core::Done{};
}

GPUMEM_INLINE core::Result<WorkspaceVariant> variant_from(const Json& json) {
  std::string names;
  for (const WorkspaceVariant& variant : workspace_variants()) {
    if (json.is_string() && json.get_ref<const std::string&>() == variant.name) return variant;
    names += (names.empty() ? "" : ", ") + std::string(variant.name);
  }
  return malformed("/convolution_workspace/variant must be one of " + names);
}

GPUMEM_INLINE core::Status read_convolution_workspace(const Json& json, ConvolutionWorkspaceRule& rule) {
  struct Slot {
    std::string_view name;
    std::int64_t* value;
  };
  const std::array<Slot, 8> slots = {{{"channel_multiple", &rule.channel_multiple},
                                      {"first_layer_channels", &rule.first_layer_channels},
                                      {"narrow_channels", &rule.narrow_channels},
                                      {"narrow_least_inputs", &rule.narrow_least_inputs},
                                      {"narrow_split_bytes", &rule.narrow_split_bytes},
                                      {"wide_slices", &rule.wide_slices},
                                      {"wide_split_most_bytes", &rule.wide_split_most_bytes},
                                      {"whole_multiple", &rule.whole_multiple}}};
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;  // products of these with sizes must stay within 64 bits
  const core::Error fault = malformed(
      "/convolution_workspace must hold a text \"source\" and positive integers of up to 2^40, under the names of a "
      "built-in profile");
  if (!json.is_object() || !json.contains("source") || !json["source"].is_string()) return fault;
  for (const auto& [name, item] : json.items()) {
    if (name == "source") {
      rule.source = item.get<std::string>();
      continue;
    }
    if (name == "variant") {
      const auto variant = variant_from(item);
      if (!variant) return variant.error();
      rule.variant = *variant;
      continue;
    }
    const auto slot = std::find_if(slots.begin(), slots.end(),
                                   [&key = std::as_const(name)](const Slot& known) { return known.name == key; });
    const auto value = positive(item);
    if (slot == slots.end() || !value || *value > kLargest) return fault;
    *slot->value = *value;
  }
  rule.fitted = true;
  return core::Done{};
}

GPUMEM_INLINE core::Status read_aliases(const Json& json, GpuProfile& profile) {
  if (!json.is_array()) return malformed("/aliases must be a list of names");
  for (const Json& item : json) {
    if (!item.is_string()) return malformed("/aliases must be a list of names");
    profile.aliases.push_back(item.get<std::string>());
  }
  return core::Done{};
}

GPUMEM_INLINE core::Status read_field(const std::string& name, const Json& json, GpuProfile& profile) {
  struct Slot {
    std::string_view name;
    std::string* text;
  };
  const std::array<Slot, 5> texts = {{{"name", &profile.name},
                                      {"title", &profile.title},
                                      {"architecture", &profile.architecture},
                                      {"compute_capability", &profile.compute_capability},
                                      {"parent", &profile.parent}}};
  for (const Slot& slot : texts) {
    if (slot.name != name) continue;
    if (!json.is_string()) return malformed("/" + name + " must be text");
    *slot.text = json.get<std::string>();
    return core::Done{};
  }
  if (name == "aliases") return read_aliases(json, profile);
  if (name == "figures") return read_figures(json, profile);
  if (name == "convolution_workspace") return read_convolution_workspace(json, profile.convolution_workspace);
  if (name == "contexts") return read_contexts(json, profile);
  if (name == "format" || name == "version") return core::Done{};
  return malformed("/" + core::shortened(name, kLongestKey) + " is not a field of a GPU profile");
}

GPUMEM_INLINE core::Result<GpuProfile> profile_from(const Json& json) {
  if (!json.is_object()) return malformed("must hold one JSON object");
  if (!json.contains("format") || json["format"] != "gpumem-gpu") return malformed("/format must be \"gpumem-gpu\"");
  if (!json.contains("version") || json["version"] != 1) return malformed("/version must be 1");
  GpuProfile profile;
  for (const auto& [name, item] : json.items()) {
    const core::Status read = read_field(name, item, profile);
    if (!read) return read.error();
  }
  if (profile.name.empty()) return malformed("/name is missing");
  if (profile.memory_bytes.value == 0) return malformed("/figures is missing");
  return profile;
}

GPUMEM_INLINE std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& byte : lower) {
    if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
  }
  return lower;
}

using Words = std::vector<std::string>;

/// "NVIDIA GeForce RTX 4090" as {"rtx", "4090"}, "rtx4090-24gb" as {"rtx", "4090", "24", "gb"}: people and drivers part
/// the words of a GPU's name differently, and what every GPU of its maker is called says nothing.
GPUMEM_INLINE Words words_of(std::string_view name) {
  constexpr std::array<std::string_view, 4> kSaysNothing = {"nvidia", "geforce", "quadro", "tesla"};
  Words words;
  char last = ' ';
  const auto is_digit = [](char byte) { return byte >= '0' && byte <= '9'; };
  const auto is_letter = [](char byte) { return byte >= 'a' && byte <= 'z'; };
  for (const char byte : lower_case(name)) {
    const bool joins = (is_digit(byte) && is_digit(last)) || (is_letter(byte) && is_letter(last));
    if (is_digit(byte) || is_letter(byte)) {
      if (!joins) words.emplace_back();
      words.back() += byte;
    }
    last = byte;
  }
  std::erase_if(words, [&](const std::string& word) {
    return std::find(kSaysNothing.begin(), kSaysNothing.end(), word) != kSaysNothing.end();
  });
  return words;
}

/// The names under which a profile is found.
GPUMEM_INLINE std::vector<std::string> names_of(const GpuProfile& profile) {
  std::vector<std::string> names = profile.aliases;
  names.push_back(profile.name);
  names.push_back(profile.title);
  return names;
}

/// Why there is none, where the name is that of a GPU which no profile can describe.
GPUMEM_INLINE std::string why_not(const Words& wanted) {
  struct OtherMaker {
    std::string_view word;
    std::string_view maker;
  };
  constexpr std::array<OtherMaker, 6> kOthers = {{{"mi", "AMD"},
                                                  {"instinct", "AMD"},
                                                  {"radeon", "AMD"},
                                                  {"gaudi", "Intel"},
                                                  {"tpu", "Google"},
                                                  {"ascend", "Huawei"}}};
  for (const OtherMaker& other : kOthers) {
    if (std::find(wanted.begin(), wanted.end(), other.word) == wanted.end()) continue;
    return std::string(other.maker) +
           " makes it: gpumem knows the contexts, workspaces and kernels of NVIDIA's GPUs alone";
  }
  return {};
}

GPUMEM_INLINE core::Error no_profile(std::string_view name, const Words& wanted,
                                     const std::vector<GpuProfile>& profiles) {
  std::string message = "there is no GPU profile " + core::quoted(name);
  if (const std::string reason = why_not(wanted); !reason.empty()) {
    return {core::ErrorCode::unknown_gpu, message + "; " + reason, {}};
  }
  std::vector<std::string_view> names;
  for (const GpuProfile& profile : profiles) {
    if (!profile.parent.empty()) continue;
    names.push_back(profile.name);
    names.insert(names.end(), profile.aliases.begin(), profile.aliases.end());
  }
  message += core::did_you_mean(name, names);
  return {core::ErrorCode::unknown_gpu,
          message + "; 'gpumem gpus' lists the built-in ones, and a path to a profile of your own works too",
          {}};
}

/// The profile one of whose names has these words alone; else the only one of a whole GPU that has them side by side in
/// a name.
GPUMEM_INLINE core::Result<GpuProfile> by_its_words(std::string_view name, const std::vector<GpuProfile>& profiles) {
  const Words wanted = words_of(name);
  // "b" is a part of one name today, and of two when the next GPU comes.
  constexpr std::size_t kLeast = 4;
  const bool telling = name.size() >= kLeast && name.find_first_of("0123456789") != std::string_view::npos;
  std::vector<const GpuProfile*> found;
  for (const GpuProfile& profile : profiles) {
    bool has_part = false;
    for (const std::string& known : names_of(profile)) {
      const Words words = words_of(known);
      if (words == wanted) return profile;
      has_part = has_part || std::search(words.begin(), words.end(), wanted.begin(), wanted.end()) != words.end();
    }
    if (has_part && telling && profile.parent.empty()) found.push_back(&profile);
  }
  if (wanted.empty() || found.empty()) return no_profile(name, wanted, profiles);
  if (found.size() == 1) return *found.front();
  std::string names;
  for (const GpuProfile* profile : found) names += (names.empty() ? "" : ", ") + profile->name;
  return core::Error{core::ErrorCode::unknown_gpu, "GPU " + core::quoted(name) + " may be one of " + names, {}};
}

GPUMEM_INLINE core::Result<std::vector<GpuProfile>> read_profiles() {
  std::vector<GpuProfile> profiles;
  for (const BuiltinProfile& builtin : builtin_profiles()) {
    core::Result<GpuProfile> profile = parse_profile(builtin.json, builtin.name);
    if (!profile) return profile.error();
    profiles.push_back(*std::move(profile));
  }
  return profiles;
}

}  // namespace gpu_profile_detail

GPUMEM_INLINE core::Result<GpuProfile> parse_profile(std::string_view json, std::string_view file) {
  namespace detail = gpu_profile_detail;
  if (json.size() > detail::kLargestProfile)
    return detail::malformed("is larger than 1 MiB; no GPU profile is").in_file(file);
  std::size_t depth = 0;
  constexpr std::size_t kDeepest = 8;
  const auto shallow = [&](int, detail::Json::parse_event_t event, detail::Json&) {
    using Event = detail::Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) ++depth;
    if (event == Event::object_end || event == Event::array_end) --depth;
    return depth <= kDeepest;
  };
  const detail::Json parsed = detail::Json::parse(json, shallow, false);
  if (parsed.is_discarded()) return detail::malformed("is not JSON; the file is cut off or edited").in_file(file);
  core::Result<GpuProfile> profile = detail::profile_from(parsed);
  if (!profile) return std::move(profile.error()).in_file(file);
  return profile;
}

GPUMEM_INLINE core::Result<GpuProfile> load_profile(const std::string& path) {
  const core::Result<std::string> text = core::read_regular_file(path, gpu_profile_detail::kLargestProfile);
  if (!text) return text.error();
  return parse_profile(*text, path);
}

GPUMEM_INLINE std::span<const BuiltinProfile> builtin_profiles() { return builtin::kProfiles; }

GPUMEM_INLINE core::Result<GpuProfile> find_profile(std::string_view name) {
  namespace detail = gpu_profile_detail;
  if (name.find('/') != std::string_view::npos || name.ends_with(".json")) return load_profile(std::string(name));
  const std::string wanted = detail::lower_case(name);
  for (const BuiltinProfile& builtin : builtin_profiles()) {
    if (builtin.name == wanted) return parse_profile(builtin.json, builtin.name);
  }
  const core::Result<std::vector<GpuProfile>>& profiles = known_profiles();
  if (!profiles) return profiles.error();
  return detail::by_its_words(name, *profiles);
}

GPUMEM_INLINE const core::Result<std::vector<GpuProfile>>& known_profiles() {
  static const core::Result<std::vector<GpuProfile>> known = gpu_profile_detail::read_profiles();
  return known;
}

}  // namespace gpumem::device
