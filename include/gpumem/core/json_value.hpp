// Input: what a JSON parser reports, value by value.
// Output: the values of one item in one flat array: a list or an object, then its content. The memory is reused, so a
// node of a graph costs no new allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace gpumem::core {

/// One value, and its key if it is in an object. Texts and keys are views.
class JsonValue {
 public:
  enum class Kind : std::uint8_t { null, boolean, integer, beyond_int64, real, text, list, object };

  /// The values directly inside a list or object.
  class Items {
   public:
    class Iterator {
     public:
      explicit Iterator(const JsonValue* at) : at_(at) {}
      const JsonValue& operator*() const { return *at_; }
      Iterator& operator++() {
        at_ += at_->extent_;
        return *this;
      }
      friend bool operator==(const Iterator&, const Iterator&) = default;

     private:
      const JsonValue* at_;
    };

    explicit Items(const JsonValue& of) : of_(&of) {}
    [[nodiscard]] Iterator begin() const { return Iterator(of_ + 1); }
    [[nodiscard]] Iterator end() const { return Iterator(of_ + of_->extent_); }

   private:
    const JsonValue* of_;
  };

  static JsonValue null() { return JsonValue(Kind::null); }
  static JsonValue boolean(bool value) {
    JsonValue made(Kind::boolean);
    made.integer_ = value ? 1 : 0;
    return made;
  }
  static JsonValue integer(std::int64_t value) {
    JsonValue made(Kind::integer);
    made.integer_ = value;
    return made;
  }
  static JsonValue unsigned_integer(std::uint64_t value) {
    JsonValue made(value > INT64_MAX ? Kind::beyond_int64 : Kind::integer);
    made.integer_ = static_cast<std::int64_t>(value);
    return made;
  }
  static JsonValue real(double value) {
    JsonValue made(Kind::real);
    made.real_ = value;
    return made;
  }
  static JsonValue text(std::string_view value) {
    JsonValue made(Kind::text);
    made.text_ = value.data();
    made.size_ = static_cast<std::uint32_t>(value.size());
    return made;
  }
  static JsonValue list() { return JsonValue(Kind::list); }
  static JsonValue object() { return JsonValue(Kind::object); }

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool is(Kind kind) const { return kind_ == kind; }
  [[nodiscard]] bool is(std::string_view value) const { return is(Kind::text) && text() == value; }
  /// As a number, so that 1.0 is 1.
  [[nodiscard]] bool is(int value) const {
    return (is(Kind::integer) && integer_ == value) || (is(Kind::real) && real_ == value);
  }

  [[nodiscard]] bool boolean() const { return integer_ != 0; }
  [[nodiscard]] std::int64_t integer() const { return integer_; }
  [[nodiscard]] std::uint64_t unsigned_integer() const { return static_cast<std::uint64_t>(integer_); }
  [[nodiscard]] double real() const { return real_; }
  [[nodiscard]] std::string_view text() const { return {text_, size_}; }
  [[nodiscard]] std::string_view key() const { return {key_, key_size_}; }
  [[nodiscard]] Items items() const { return Items(*this); }
  /// Items of a list, fields of an object.
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Values in the array that are this one or inside it.
  [[nodiscard]] std::size_t extent() const { return extent_; }

  void set_key(std::string_view key) {
    key_ = key.data();
    key_size_ = static_cast<std::uint32_t>(key.size());
  }
  void count_item() { ++size_; }
  void set_extent(std::size_t extent) { extent_ = static_cast<std::uint32_t>(extent); }

 private:
  explicit JsonValue(Kind kind) : kind_(kind) {}

  const char* key_ = nullptr;
  union {
    std::int64_t integer_ = 0;
    double real_;
    const char* text_;
  };
  std::uint32_t key_size_ = 0;
  std::uint32_t size_ = 0;  ///< bytes of a text, items of a list or object
  std::uint32_t extent_ = 1;
  Kind kind_;
};

}  // namespace gpumem::core
