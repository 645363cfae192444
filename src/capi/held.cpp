#include "held.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "report.hpp"

namespace gpumem::capi {

namespace {

struct Failure {
  gpumem_status status = GPUMEM_OK;
  core::Error error = {};
  std::string json = {};  ///< once it was asked for
};

thread_local Failure failure;

std::unique_ptr<session::Session>& held_session() {
  static auto session = std::make_unique<session::Session>();
  return session;
}

/// An error of the library, and not of the process.
bool has_exit_code(gpumem_status status) { return status != GPUMEM_OUT_OF_MEMORY && status != GPUMEM_INTERNAL_ERROR; }

std::string json_of(const Failure& failed) {
  nlohmann::ordered_json json = cli::to_json(failed.error);
  json["code"] = gpumem_status_name(failed.status);
  json["text"] = core::to_string(failed.error);
  if (has_exit_code(failed.status)) json["exit_code"] = core::exit_code(failed.error.code);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

session::Session& process_session() { return *held_session(); }

void renew_process_session() {
  // What is left alone stays reachable, so that it is no leak.
  static auto& left_alone = *new std::vector<std::unique_ptr<session::Session>>();
  auto renewed = std::make_unique<session::Session>();
  left_alone.push_back(std::move(held_session()));
  held_session() = std::move(renewed);
}

void remember(gpumem_status status, const core::Error& error) noexcept {
  try {
    failure = {.status = status, .error = error};
  } catch (...) {  // no memory for it
    failure.status = GPUMEM_OK;
  }
}

void remember(gpumem_status status, const char* message) noexcept {
  try {
    remember(status, core::Error{core::ErrorCode::invalid_argument, message, {}});
  } catch (...) {
    failure.status = GPUMEM_OK;
  }
}

const char* last_failure() noexcept {
  if (failure.status == GPUMEM_OK) return "{}";
  try {
    if (failure.json.empty()) failure.json = json_of(failure);
    return failure.json.c_str();
  } catch (...) {
    return "{}";
  }
}

}  // namespace gpumem::capi
