#include "fields.hpp"

#include <algorithm>
#include <cmath>

namespace gpumem::launcher {

using core::JsonValue;
using Kind = JsonValue::Kind;

Fields::Fields(const JsonValue& object) : object_(object) {
  if (!object.is(Kind::object)) fault_ = core::malformed("must be an object");
}

void Fields::refuse(std::string_view key, const std::string& why) {
  if (!fault_) fault_ = core::below(key, core::malformed(why));
}

const JsonValue* Fields::take(std::string_view key) {
  names_.push_back(key);
  if (!object_.is(Kind::object)) return nullptr;
  for (const JsonValue& item : object_.items()) {
    if (item.key() == key) return &item;
  }
  refuse(key, "is missing");
  return nullptr;
}

std::int64_t Fields::whole(std::string_view key) {
  const JsonValue* value = take(key);
  if (value == nullptr) return 0;
  if (value->is(Kind::integer) && value->integer() >= 0) return value->integer();
  refuse(key, "must be a whole number, 0 or more");
  return 0;
}

std::optional<double> Fields::number_or_null(std::string_view key) {
  const JsonValue* value = take(key);
  if (value == nullptr || value->is(Kind::null)) return std::nullopt;
  const bool whole = value->is(Kind::integer);
  if (whole || value->is(Kind::real)) {
    const double number = whole ? static_cast<double>(value->integer()) : value->real();
    if (std::isfinite(number) && number >= 0.0) return number;
  }
  refuse(key, "must be a number, 0 or more");
  return std::nullopt;
}

double Fields::number(std::string_view key) {
  const std::optional<double> value = number_or_null(key);
  if (!value) refuse(key, "must be a number, 0 or more");
  return value.value_or(0.0);
}

std::string Fields::text(std::string_view key) {
  const JsonValue* value = take(key);
  if (value == nullptr) return {};
  if (value->is(Kind::text)) return std::string(value->text());
  refuse(key, "must be text");
  return {};
}

bool Fields::flag(std::string_view key) {
  const JsonValue* value = take(key);
  if (value == nullptr) return false;
  if (value->is(Kind::boolean)) return value->boolean();
  refuse(key, "must be true or false");
  return false;
}

std::optional<core::Bytes> Fields::bytes_or_null(std::string_view key) {
  const JsonValue* value = take(key);
  if (value == nullptr || value->is(Kind::null)) return std::nullopt;
  if (value->is(Kind::integer) && value->integer() >= 0) return core::Bytes(value->integer());
  refuse(key, "must be a whole number of bytes, or null");
  return std::nullopt;
}

const JsonValue* Fields::list(std::string_view key) {
  const JsonValue* value = take(key);
  if (value == nullptr || value->is(Kind::list)) return value;
  refuse(key, "must be a list");
  return nullptr;
}

const JsonValue* Fields::object(std::string_view key) {
  const JsonValue* value = take(key);
  if (value == nullptr || value->is(Kind::object)) return value;
  refuse(key, "must be an object");
  return nullptr;
}

core::Status Fields::finish() const {
  if (fault_) return *fault_;
  for (const JsonValue& item : object_.items()) {
    if (std::find(names_.begin(), names_.end(), item.key()) == names_.end()) {
      return core::below(item.key(), core::malformed("is not a field that this version of gpumem knows"));
    }
  }
  return core::Done{};
}

}  // namespace gpumem::launcher
