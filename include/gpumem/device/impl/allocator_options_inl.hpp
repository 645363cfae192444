#pragma once

#include "gpumem/device/allocator_options.hpp"

#include <algorithm>
#include <bit>

#include "gpumem/core/bytes.hpp"

namespace gpumem::device {

namespace allocator_options_detail {

inline constexpr std::string_view kSigns = ":,[]>";
inline constexpr std::int64_t kLeastSplitMib = 20;  // the size of a shared large segment

GPUMEM_INLINE core::Error wrong(std::string message) {
  return {core::ErrorCode::invalid_argument, "allocator options: " + std::move(message), {}};
}

/// Words and the signs between them; spaces mean nothing.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  /// The next word or sign; empty at the end.
  [[nodiscard]] std::string_view peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    if (at_ == text_.size()) return {};
    if (kSigns.find(text_[at_]) != std::string_view::npos) return text_.substr(at_, 1);
    const std::size_t end = std::min(text_.find_first_of(":,[]> \t", at_), text_.size());
    return text_.substr(at_, end - at_);
  }

  std::string_view next() {
    const std::string_view token = peek();
    at_ += token.size();
    return token;
  }

  bool take(std::string_view token) {
    if (peek() != token) return false;
    at_ += token.size();
    return true;
  }

  [[nodiscard]] bool done() { return peek().empty(); }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

/// Mebibytes, so few that they fit 64 bits as bytes.
GPUMEM_INLINE std::optional<core::Bytes> mebibytes(std::string_view text, std::int64_t least) {
  const auto value = core::parse_whole(text);
  if (!value || *value < least || *value > INT64_MAX >> 21) return std::nullopt;
  return core::Bytes(*value << 20);
}

GPUMEM_INLINE std::optional<std::int32_t> division(std::string_view text) {
  const std::optional<std::int64_t> value = core::parse_whole(text);
  const bool fits = value && *value >= 0 && *value <= INT32_MAX && (*value & (*value - 1)) == 0;
  return fits ? std::optional(static_cast<std::int32_t>(*value)) : std::nullopt;
}

/// "[256:1,512:2,>:4]" after its bracket: sizes of 256 to 511 MiB have 1 division (and all below, as it is the
/// first), 512 to 1023 two, all above four.
GPUMEM_INLINE core::Status read_division_list(Tokens& tokens, AllocatorOptions& options) {
  auto& divisions = options.roundup_power2_divisions;
  const core::Error fault = wrong(
      "roundup_power2_divisions must be a power of two, or a list such as [256:1,512:2,>:4] of sizes in MiB and powers "
      "of two");
  std::size_t begin = 0;  // of what the next entry says
  for (bool first = true; !tokens.take("]"); first = false) {
    if (!first && !tokens.take(",")) return fault;
    const std::string_view size = tokens.next();
    const auto value = tokens.take(":") ? division(tokens.next()) : std::nullopt;
    if (!value) return fault;
    if (size == ">") {
      std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(begin), divisions.end(), *value);
      continue;
    }
    const auto mib = core::parse_whole(size);
    if (!mib || *mib < 1 || !std::has_single_bit(static_cast<std::uint64_t>(*mib))) return fault;
    const auto power = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(*mib)));
    const std::size_t index = std::min(power, divisions.size() - 1);
    if (first) std::fill(divisions.begin(), divisions.begin() + static_cast<std::ptrdiff_t>(index), *value);
    divisions[index] = *value;
    begin = index + 1;
  }
  return core::Done{};
}

GPUMEM_INLINE core::Status read_divisions(Tokens& tokens, AllocatorOptions& options) {
  if (tokens.take("[")) return read_division_list(tokens, options);
  const std::string_view text = tokens.next();
  const auto value = division(text);
  if (!value) return wrong("roundup_power2_divisions must be a power of two, not " + core::quoted(text));
  options.roundup_power2_divisions.fill(*value);
  return core::Done{};
}

/// Options that change when or how memory is asked for, not how much of it.
GPUMEM_INLINE bool is_neutral(std::string_view name) {
  return name.starts_with("pinned_") || name == "release_lock_on_cudamalloc" ||
         name == "graph_capture_record_stream_reuse" || name == "throw_on_cudamalloc_oom";
}

GPUMEM_INLINE core::Status read_value(std::string_view name, std::string_view value, AllocatorOptions& options) {
  const std::string not_this = ", not " + core::quoted(value);
  if (name == "expandable_segments") {
    if (value != "True" && value != "False") return wrong("expandable_segments must be True or False" + not_this);
    options.expandable_segments = value == "True";
  } else if (name == "max_split_size_mb") {
    options.max_split_size = mebibytes(value, kLeastSplitMib);
    if (!options.max_split_size) return wrong("max_split_size_mb must be a whole number of 20 or more" + not_this);
  } else if (name == "max_non_split_rounding_mb") {
    const auto rounding = mebibytes(value, kLeastSplitMib);
    if (!rounding) return wrong("max_non_split_rounding_mb must be a whole number of 20 or more" + not_this);
    options.max_non_split_rounding = *rounding;
  } else if (name == "garbage_collection_threshold") {
    const auto threshold = core::parse_number(value);
    if (!threshold || !(*threshold > 0.0 && *threshold < 1.0)) {
      return wrong("garbage_collection_threshold must lie between 0 and 1" + not_this);
    }
    options.garbage_collection_threshold = *threshold;
  } else if (name == "per_process_memory_fraction") {
    options.memory_fraction = core::parse_number(value);
    if (!options.memory_fraction || !(*options.memory_fraction > 0.0 && *options.memory_fraction <= 1.0)) {
      return wrong("per_process_memory_fraction must be more than 0 and at most 1" + not_this);
    }
  } else if (name == "backend") {
    if (value != "native") return wrong("only backend:native is modelled" + not_this);
  } else if (!is_neutral(name)) {
    return wrong(core::quoted(name) +
                 " is not an option that gpumem knows; it knows expandable_segments, max_split_size_mb, "
                 "max_non_split_rounding_mb, roundup_power2_divisions, garbage_collection_threshold and "
                 "per_process_memory_fraction");
  }
  return core::Done{};
}

}  // namespace allocator_options_detail

GPUMEM_INLINE core::Result<AllocatorOptions> parse_allocator_options(std::string_view text) {
  namespace detail = allocator_options_detail;
  AllocatorOptions options;
  detail::Tokens tokens(text);
  options.said = !tokens.done();
  while (!tokens.done()) {
    const std::string_view name = tokens.next();
    if (!tokens.take(":")) return detail::wrong(core::quoted(name) + " must be followed by ':' and a value");
    const bool listed = name == "roundup_power2_divisions";
    const core::Status read =
        listed ? detail::read_divisions(tokens, options) : detail::read_value(name, tokens.next(), options);
    if (!read) return read.error();
    if (!tokens.done() && !tokens.take(",")) {
      return detail::wrong("there must be a ',' before " + core::quoted(tokens.peek()));
    }
  }
  return options;
}

}  // namespace gpumem::device
