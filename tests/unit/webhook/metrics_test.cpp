#include "../../../src/webhook/metrics.hpp"

#include <gtest/gtest.h>

namespace gpumem::webhook {
namespace {

using namespace std::chrono_literals;

void expect_line(const std::string& text, const std::string& line) {
  EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << line << " is not in\n" << text;
}

TEST(Metrics, CountByOutcomeAndTime) {
  Metrics metrics;
  metrics.count(Outcome::patched, 800us);
  metrics.count(Outcome::patched, 3ms);
  metrics.count(Outcome::does_not_fit, 10s);
  metrics.count(Turned::too_large);
  const Metrics::InFlight in_flight(metrics);
  const std::string text = metrics.text({.hits = 5, .misses = 1});
  expect_line(text, "gpumem_webhook_requests_total{outcome=\"patched\"} 2");
  expect_line(text, "gpumem_webhook_requests_total{outcome=\"untouched\"} 0");
  expect_line(text, "gpumem_webhook_requests_total{outcome=\"does_not_fit\"} 1");
  expect_line(text, "gpumem_webhook_turned_away_total{reason=\"too_large\"} 1");
  expect_line(text, "gpumem_webhook_request_duration_seconds_bucket{le=\"0.0005\"} 0");
  expect_line(text, "gpumem_webhook_request_duration_seconds_bucket{le=\"0.001\"} 1");
  expect_line(text, "gpumem_webhook_request_duration_seconds_bucket{le=\"0.005\"} 2");
  expect_line(text, "gpumem_webhook_request_duration_seconds_bucket{le=\"2.5\"} 2");
  expect_line(text, "gpumem_webhook_request_duration_seconds_bucket{le=\"+Inf\"} 3");
  expect_line(text, "gpumem_webhook_request_duration_seconds_count 3");
  expect_line(text, "gpumem_webhook_request_duration_seconds_sum 10.0038");
  expect_line(text, "gpumem_webhook_in_flight_requests 1");
  expect_line(text, "gpumem_webhook_summary_lookups_total{result=\"hit\"} 5");
}

TEST(Metrics, EachIsDescribedOnce) {
  const std::string text = Metrics().text({});
  for (const char* name : {"requests_total", "turned_away_total", "request_duration_seconds", "in_flight_requests",
                           "summary_lookups_total", "build_info"}) {
    const std::string type = "# TYPE gpumem_webhook_" + std::string(name) + " ";
    const std::size_t at = text.find(type);
    EXPECT_NE(at, std::string::npos) << name;
    EXPECT_EQ(text.find(type, at + 1), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace gpumem::webhook
