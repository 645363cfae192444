#include "metrics.hpp"

#include <cstdio>

#include "gpumem/core/config.hpp"

namespace gpumem::webhook {

namespace {

constexpr std::array<std::string_view, 5> kTurned = {"not_found", "too_large", "too_slow", "busy", "other"};

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  std::string text = "# HELP ";
  text.append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
  return text;
}

std::string line(std::string_view name, std::string_view labels, const std::string& value) {
  std::string text(name);
  if (!labels.empty()) text.append("{").append(labels).append("}");
  return text + " " + value + "\n";
}

std::string label(std::string_view name, std::string_view value) {
  return std::string(name) + "=\"" + std::string(value) + "\"";
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

}  // namespace

void Metrics::count(Outcome outcome, std::chrono::duration<double> took) {
  ++outcomes_[static_cast<std::size_t>(outcome)];
  std::size_t bucket = 0;
  while (bucket < kBounds.size() && took.count() > kBounds[bucket]) ++bucket;
  ++buckets_[bucket];
  microseconds_ += std::chrono::duration_cast<std::chrono::microseconds>(took).count();
}

std::string Metrics::text(const Summaries::Counters& summaries) const {
  constexpr std::string_view kRequests = "gpumem_webhook_requests_total";
  constexpr std::string_view kTurnedAway = "gpumem_webhook_turned_away_total";
  constexpr std::string_view kSeconds = "gpumem_webhook_request_duration_seconds";
  constexpr std::string_view kInFlight = "gpumem_webhook_in_flight_requests";
  constexpr std::string_view kSummaries = "gpumem_webhook_summary_lookups_total";
  constexpr std::string_view kBuild = "gpumem_webhook_build_info";

  std::string text = head(kRequests, "counter", "Admission requests by result.");
  for (const OutcomeName& row : kOutcomes) {
    text += line(kRequests, label("outcome", row.name),
                 std::to_string(outcomes_[static_cast<std::size_t>(row.outcome)].load()));
  }
  text += head(kTurnedAway, "counter", "Requests and connections that were turned away unread.");
  for (std::size_t reason = 0; reason < kTurned.size(); ++reason) {
    text += line(kTurnedAway, label("reason", kTurned[reason]), std::to_string(turned_[reason].load()));
  }
  text += head(kSeconds, "histogram", "From a request's last byte to its answer.");
  std::int64_t below = 0;
  for (std::size_t bucket = 0; bucket <= kBounds.size(); ++bucket) {
    below += buckets_[bucket].load();
    const std::string bound = bucket < kBounds.size() ? number(kBounds[bucket]) : "+Inf";
    text += line(std::string(kSeconds) + "_bucket", label("le", bound), std::to_string(below));
  }
  constexpr double kMicro = 1e-6;
  text += line(std::string(kSeconds) + "_sum", "", number(kMicro * static_cast<double>(microseconds_.load())));
  text += line(std::string(kSeconds) + "_count", "", std::to_string(below));
  text += head(kInFlight, "gauge", "Admission requests that are being answered.");
  text += line(kInFlight, "", std::to_string(in_flight_.load()));
  text += head(kSummaries, "counter", "Summaries that were known already, or had to be read.");
  text += line(kSummaries, label("result", "hit"), std::to_string(summaries.hits));
  text += line(kSummaries, label("result", "miss"), std::to_string(summaries.misses));
  text += head(kBuild, "gauge", "The version that runs.");
  text += line(kBuild, label("version", GPUMEM_VERSION_STRING), "1");
  return text;
}

}  // namespace gpumem::webhook
