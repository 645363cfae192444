// Input: an answer of the library.
// Output: gpumem_answer, which gives the texts of that answer. Each is made when it is first asked for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "gpumem/gpumem.h"

namespace gpumem::capi {

using Json = nlohmann::ordered_json;
using MakeText = std::function<std::string()>;

/// Any number of threads may ask for it.
class LateText {
 public:
  explicit LateText(MakeText make) : make_(std::move(make)) {}

  const std::string& text() {
    std::call_once(made_, [this] {
      text_ = make_();
      make_ = nullptr;
    });
    return text_;
  }

 private:
  std::once_flag made_;
  MakeText make_;
  std::string text_;
};

/// As the command line prints it; what is no UTF-8 (a piece of a file) is replaced.
inline std::string printed(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }
/// The same without spaces, for programs.
inline std::string packed(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace gpumem::capi

struct gpumem_answer {
  /// `form`: "json", "text" or "figures".
  gpumem_answer& with(const char* form, gpumem::capi::MakeText make) {
    forms.emplace(form, std::make_unique<gpumem::capi::LateText>(std::move(make)));
    return *this;
  }

  std::map<std::string, std::unique_ptr<gpumem::capi::LateText>, std::less<>> forms;
  std::map<std::string, std::unique_ptr<gpumem_answer>, std::less<>> parts;
};
