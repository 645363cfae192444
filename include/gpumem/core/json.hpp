// Input: the text of JSON values (RFC 8259).
// Output: their values, in one flat array whose memory is reused; or, of JSON that is plainly printed, its tokens,
// which are read much faster.
#pragma once

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"

namespace gpumem::core {

// Input: what a JSON parser reports, value by value.
// Output: the values of one item in one flat array: a list or an object, then its content. The memory is reused, so a
// node of a graph costs no new allocation.

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

// Input: JSON as programs print it: no escapes, ASCII only, numbers of ordinary length.
// Output: its tokens, one call each; or "no", and then the caller asks the full parser, which also writes the error
// message. So these functions may give up anywhere, but must accept only what the full parser accepts.

/// An integer that fits 64 bits, or another number.
struct JsonNumber {
  bool is_real = false;
  std::int64_t integer = 0;
  double real = 0;
};

class JsonTokens {
 public:
  explicit JsonTokens(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  [[nodiscard]] bool at_end() const { return at_ == end_; }
  /// The place of the next byte.
  [[nodiscard]] const char* at() const { return at_; }
  /// The byte at the front; NUL, which no JSON holds, at the end.
  [[nodiscard]] char front() const { return at_ == end_ ? '\0' : *at_; }

  /// False if there is more white space than programs print. Asked around every token, mostly for nothing: a call would
  /// cost more than it does.
  [[gnu::always_inline]] bool skip_space() {
    if (at_ == end_ || !is_space(*at_)) return true;
    ++at_;
    return at_ == end_ || !is_space(*at_) || skip_more_space();
  }

  bool take(char byte) {
    if (front() != byte) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool take_text(std::string_view& text) {
    if (!take('"')) return false;
    const char* const first = at_;
    skip_plain();
    text = {first, static_cast<std::size_t>(at_ - first)};
    return at_ - first <= kLongest && take('"');
  }

  bool take_number(JsonNumber& number) {
    const char* const first = at_;
    if (front() == '-') ++at_;
    const bool zero = front() == '0';
    const char* const first_digit = at_;
    const std::ptrdiff_t digits = skip_digits();
    if (digits == 0 || digits > kMostDigits || (zero && digits > 1)) return false;
    number.is_real = front() == '.' || front() == 'e' || front() == 'E';
    if (number.is_real) return take_real(first, number.real);
    number.integer = 0;
    for (const char* digit = first_digit; digit != at_; ++digit) number.integer = 10 * number.integer + (*digit - '0');
    if (*first == '-') number.integer = -number.integer;
    return true;
  }

 private:
  static constexpr std::ptrdiff_t kLongest = 1 << 16;  // bytes of a text or of white space
  static constexpr std::ptrdiff_t kMostDigits = 18;    // always fit 64 bits

  static constexpr bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
  static constexpr bool is_space(char byte) {
    return byte <= ' ' && (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t');
  }
  /// Printable ASCII that ends no text and begins no escape.
  static constexpr bool is_plain(unsigned char byte) {
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
  }

  /// The highest bit of each byte that is not plain. Those of bytes above the lowest one may be wrong: a borrow.
  static constexpr std::uint64_t not_plain(std::uint64_t bytes) {
    constexpr std::uint64_t kOnes = 0x0101010101010101U;
    constexpr std::uint64_t kHigh = 0x8080808080808080U;
    const std::uint64_t quote = bytes ^ (kOnes * '"');
    const std::uint64_t escape = bytes ^ (kOnes * '\\');
    return (((quote - kOnes) & ~quote) | ((escape - kOnes) & ~escape) | ((bytes - kOnes * 0x20) & ~bytes) | bytes) &
           kHigh;
  }

  bool skip_more_space() {
    const char* const first = at_ - 1;
    while (at_ != end_ && is_space(*at_)) ++at_;
    return at_ - first <= kLongest;
  }

  void skip_plain() {
    if constexpr (std::endian::native == std::endian::little) {
      std::uint64_t bytes = 0;
      while (end_ - at_ >= static_cast<std::ptrdiff_t>(sizeof bytes)) {
        std::memcpy(&bytes, at_, sizeof bytes);
        if (const std::uint64_t stop = not_plain(bytes); stop != 0) {
          at_ += std::countr_zero(stop) / 8;
          return;
        }
        at_ += sizeof bytes;
      }
    }
    while (at_ != end_ && is_plain(static_cast<unsigned char>(*at_))) ++at_;
  }

  std::ptrdiff_t skip_digits() {
    const char* const first = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ - first;
  }

  /// From the first byte of the number; the one at the front ends its integer part.
  bool take_real(const char* first, double& real) {
    if (take('.') && !short_digits()) return false;
    if (front() == 'e' || front() == 'E') {
      ++at_;
      if (front() == '+' || front() == '-') ++at_;
      if (!short_digits()) return false;
    }
    return std::from_chars(first, at_, real).ec == std::errc();
  }

  bool short_digits() {
    const std::ptrdiff_t digits = skip_digits();
    return digits > 0 && digits <= kMostDigits;
  }

  const char* at_;
  const char* const end_;
};

// Input: JSON as programs print it.
// Output: its values as events, in order, each text as a view; or "no", and then the caller asks the full parser. It
// accepts only what the full parser accepts.

/// Events: open_object(), open_list(), close(), key(view), value(Value); each returns
/// false to end the scan.
template <typename Events, typename Value>
class JsonScanner {
 public:
  /// `reached` shows how far the scan has come whenever an object opens: just behind its brace.
  JsonScanner(std::string_view text, Events& events, const char*& reached)
      : tokens_(text), events_(events), reached_(reached) {}

  /// True if the text is one value, and no event refused any of it.
  [[nodiscard]] bool scan() { return tokens_.skip_space() && value(0) && tokens_.skip_space() && tokens_.at_end(); }

 private:
  static constexpr int kDeepest = 64;

  bool value(int depth) {
    switch (tokens_.front()) {
      case '{': return object(depth + 1);
      case '[': return list(depth + 1);
      case '"': {
        std::string_view text;
        return tokens_.take_text(text) && events_.value(Value::text(text));
      }
      case 't': return tokens_.take_word("true") && events_.value(Value::boolean(true));
      case 'f': return tokens_.take_word("false") && events_.value(Value::boolean(false));
      case 'n': return tokens_.take_word("null") && events_.value(Value::null());
      default: return number();
    }
  }

  bool object(int depth) {
    (void)tokens_.take('{');
    reached_ = tokens_.at();
    if (depth > kDeepest || !events_.open_object() || !tokens_.skip_space()) return false;
    if (tokens_.take('}')) return events_.close();
    do {
      if (!tokens_.skip_space() || !field(depth) || !tokens_.skip_space()) return false;
    } while (tokens_.take(','));
    return tokens_.take('}') && events_.close();
  }

  bool field(int depth) {
    std::string_view name;
    return tokens_.take_text(name) && events_.key(name) && tokens_.skip_space() && tokens_.take(':') &&
           tokens_.skip_space() && value(depth);
  }

  bool list(int depth) {
    (void)tokens_.take('[');
    if (depth > kDeepest || !events_.open_list() || !tokens_.skip_space()) return false;
    if (tokens_.take(']')) return events_.close();
    do {
      if (!tokens_.skip_space() || !value(depth) || !tokens_.skip_space()) return false;
    } while (tokens_.take(','));
    return tokens_.take(']') && events_.close();
  }

  bool number() {
    JsonNumber number;
    if (!tokens_.take_number(number)) return false;
    return events_.value(number.is_real ? Value::real(number.real) : Value::integer(number.integer));
  }

  JsonTokens tokens_;
  Events& events_;
  const char*& reached_;
};

// Input: the text of one JSON value (RFC 8259).
// Output: JsonDocument, its values in one flat array, fields in the order of the text. Stricter than
// the RFC: an object has a key only once.

/// What goes beyond is refused before it takes memory.
struct JsonLimits {
  std::size_t depth = 16;
  std::size_t values = std::size_t{1} << 20;
  /// Takes what Python's json.dump() writes beyond the RFC: NaN for null, Infinity for the largest number.
  bool python_numbers = false;
};

/// Views the text that it was parsed from, which must outlive it.
class JsonDocument {
 public:
  /// Errors: malformed_input with a line (text that is not JSON, naming the byte) or with the JSON pointer of what
  /// occurs twice or goes beyond the limits.
  [[nodiscard]] static Result<JsonDocument> parse(std::string_view text, const JsonLimits& limits = {});

  JsonDocument(JsonDocument&&) = default;
  JsonDocument& operator=(JsonDocument&&) = default;
  JsonDocument(const JsonDocument&) = delete;  // its values would view the texts of the other
  JsonDocument& operator=(const JsonDocument&) = delete;
  ~JsonDocument() = default;

  [[nodiscard]] const JsonValue& root() const { return values_.front(); }

 private:
  friend class JsonDocumentBuilder;
  JsonDocument() = default;

  std::vector<JsonValue> values_;
  std::deque<std::string> kept_;  ///< texts that had escapes, and so are not in the input
};

/// One step of a JSON pointer (RFC 6901): "/features", "/0"; "~" and "/" in it are escaped. Long keys are cut.
[[nodiscard]] std::string pointer_step(std::string_view key);
[[nodiscard]] std::string pointer_step(std::size_t index);

/// The error with this step before the pointer that is its place: values report what is wrong with them, and what holds
/// them adds their place.
[[nodiscard]] Error below(std::string_view key, Error error);
[[nodiscard]] Error below(std::size_t index, Error error);

}  // namespace gpumem::core
