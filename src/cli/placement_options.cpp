#include "placement_options.hpp"

#include <cstdio>
#include <optional>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/monitor/nvml.hpp"
#include "gpumem/place/server.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

core::Error invalid(std::string_view option, const std::string& message, const std::string& text) {
  return wrong_usage("--" + std::string(option) + " " + message + ", not " + core::quoted(text));
}

}  // namespace

core::Error wrong_usage(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

void print_live_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) std::fprintf(stderr, "gpumem: warning: %s\n", said(warning).c_str());
}

core::Result<place::Server> server_from(const std::string& file, const std::string& window) {
  if (file == kLiveServer) {
    const auto length = monitor::parse_window(window);
    if (!length) return length.error();
    core::Result<monitor::LiveServer> live = monitor::read_server(*length);
    if (!live) return std::move(live.error());
    print_live_warnings(live->warnings);
    return std::move(live->server);
  }
  const auto text = core::read_file(file);
  if (!text) return text.error();
  return place::parse_server(*text, file);
}

core::Result<core::Bytes> bytes_from(const std::string& text, std::string_view option) {
  const std::optional<core::Bytes> bytes = core::parse_bytes(text);
  if (bytes) return *bytes;
  return invalid(option, "takes memory such as 2GiB or 512MiB", text);
}

core::Result<double> share_from(const std::string& text, std::string_view option, std::string_view takes) {
  const std::optional<double> share = core::parse_number(text);
  if (share && *share >= 0.0 && *share <= 1.0) return *share;
  return invalid(option, "takes " + std::string(takes), text);
}

core::Result<place::RecoveryRule> recovery_from(const std::string& text) {
  place::RecoveryRule rule;
  if (text == "exclusive") rule.kind = place::RecoveryKind::exclusive;
  else if (text == "grow" || text == "growing") rule.kind = place::RecoveryKind::growing;
  else return wrong_usage("--recovery is " + core::quoted(text) + "; write exclusive or grow");
  return rule;
}

core::Result<std::int64_t> gpus_to_place(std::int64_t layout, const std::optional<std::int64_t>& said) {
  if (layout == 1) return said.value_or(1);
  if (!said || *said == layout) return layout;
  return wrong_usage("the job asks for " + std::to_string(*said) + " GPUs, and its layout has " +
                     std::to_string(layout) + "; leave --gpus out, or change --data-parallel");
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
  constexpr std::string_view kTakes = "a share above 0 and up to 1, or none";
  const auto cap = share_from(options.smact_cap, "smact-cap", kTakes);
  if (!cap) return cap.error();
  if (!(*cap > 0.0)) return invalid("smact-cap", "takes " + std::string(kTakes), options.smact_cap);
  conditions.smact_cap = *cap;
  return conditions;
}

}  // namespace gpumem::cli
