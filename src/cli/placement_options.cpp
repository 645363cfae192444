#include "placement_options.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace gpumem::cli {

namespace {

core::Error invalid(std::string_view option, const std::string& message, const std::string& text) {
  return {core::ErrorCode::invalid_argument,
          "--" + std::string(option) + " " + message + ", not " + core::quoted(text),
          {}};
}

/// How many bytes the unit is; nothing if there is no such unit.
std::optional<double> unit_of(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array<Unit, 6> kUnits = {
      {{"", 1.0}, {"B", 1.0}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}}};
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  for (const Unit& unit : kUnits) {
    if (unit.name == text) return unit.bytes;
  }
  return std::nullopt;
}

}  // namespace

core::Result<core::Bytes> bytes_from(const std::string& text, std::string_view option) {
  constexpr double kMost = 0x1p62;
  double number = 0.0;
  const char* end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const auto bytes = unit_of(std::string_view(unit, static_cast<std::size_t>(end - unit)));
  if (error != std::errc() || !bytes || !(number >= 0.0) || number * *bytes > kMost) {
    return invalid(option, "takes memory such as 2GiB or 512MiB", text);
  }
  return core::Bytes(static_cast<std::int64_t>(std::llround(number * *bytes)));
}

core::Result<place::Margin> margin_from(const PlacementOptions& options) {
  if (options.margin == "upper") return place::Margin{{}, true};
  const auto bytes = bytes_from(options.margin, "margin");
  if (!bytes) return invalid("margin", "takes memory such as 2GiB, or upper for the estimate's own", options.margin);
  return place::Margin{*bytes, false};
}

core::Result<place::Conditions> conditions_from(const PlacementOptions& options) {
  place::Conditions conditions;
  const auto floor = bytes_from(options.free_floor, "free-floor");
  if (!floor) return floor.error();
  conditions.free_floor = *floor;
  conditions.idle_first = options.idle_first;
  if (options.smact_cap == "none") {
    conditions.smact_cap.reset();
    return conditions;
  }
  double cap = 0.0;
  const char* end = options.smact_cap.data() + options.smact_cap.size();
  const auto [stop, error] = std::from_chars(options.smact_cap.data(), end, cap, std::chars_format::fixed);
  if (error != std::errc() || stop != end || !(cap > 0.0 && cap <= 1.0)) {
    return invalid("smact-cap", "takes a share above 0 and up to 1, or none", options.smact_cap);
  }
  conditions.smact_cap = cap;
  return conditions;
}

}  // namespace gpumem::cli
