// An admission request's body: whatever a client of the webhook sends.
#include <nlohmann/json.hpp>

#include "../../src/webhook/admission.hpp"
#include "fuzz.hpp"

namespace {

using namespace gpumem;
using namespace gpumem::webhook;

Admission& admission() {
  constexpr std::size_t kMost = 1 << 20;
  static Admission kept(
      [] {
        PodJob defaults;
        defaults.target = "hami";
        defaults.margin.upper = true;
        return AdmissionOptions{defaults, OnError::allow};
      }(),
      // Nothing is read from disk: pods bring their summaries along.
      Folder("", kMost));
  return kept;
}

void require_answer(const Reply& reply, const nlohmann::json& request) {
  const auto json = nlohmann::json::parse(reply.body, nullptr, false);
  fuzz::require(!json.is_discarded(), "an answer is JSON");
  fuzz::require(json.at("response").at("uid") == request.at("request").at("uid"), "an answer echoes the uid");
  const bool allowed = json.at("response").at("allowed").get<bool>();
  fuzz::require(allowed == (reply.outcome != Outcome::does_not_fit), "only what fits nowhere is denied");
  fuzz::require(json.at("response").contains("patch") == (reply.outcome == Outcome::patched), "a patch is an answer");
}

}  // namespace

GPUMEM_FUZZ_TARGET(webhook) {
  const Reply reply = admission().review(input);
  const Reply given_up = admission().give_up(input, "in a hurry");
  require(!reply.body.empty(), "a reply says something");
  require((reply.outcome == Outcome::malformed) == (given_up.outcome == Outcome::malformed),
          "in a hurry as at leisure");
  if (reply.outcome == Outcome::malformed) {
    require(reply.body.size() <= 1100, "an error stays short");
    return false;
  }
  const auto request = nlohmann::json::parse(input, nullptr, false);
  require(!request.is_discarded(), "what is answered is JSON");
  require_answer(reply, request);
  require_answer(given_up, request);
  return true;
}
