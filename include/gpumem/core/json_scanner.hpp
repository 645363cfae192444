// Enters: JSON as programs print it: no escapes, nothing beyond ASCII, numbers of ordinary length. Leaves: its values
// as events, in order, each text as a view; or "no", on which the caller asks the full parser, which also has the
// words for what is wrong. So this one may give up wherever it likes, and must accept nothing that the other does not.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpumem::core {

/// Events: open_object(), open_list(), close(), key(view), value(Value); each returns
/// false to end the scan.
template <typename Events, typename Value>
class JsonScanner {
 public:
  /// `reached` shows how far the scan has come whenever an object opens: just behind its brace.
  JsonScanner(std::string_view text, Events& events, const char*& reached)
      : at_(text.data()), end_(text.data() + text.size()), events_(events), reached_(reached) {}

  /// True if the text is one value, and no event refused any of it.
  [[nodiscard]] bool scan() { return skip_space() && value(0) && (at_ == end_ || (skip_space() && at_ == end_)); }

 private:
  static constexpr int kDeepest = 64;
  static constexpr std::ptrdiff_t kLongest = 1 << 16;  // bytes of a text or of white space
  static constexpr std::ptrdiff_t kMostDigits = 18;    // always fit 64 bits

  static constexpr bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
  static constexpr bool is_space(char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }
  /// Printable ASCII that ends no text and begins no escape.
  static constexpr bool is_plain(unsigned char byte) {
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
  }

  static constexpr std::array<bool, 256> kPlain = [] {
    std::array<bool, 256> plain{};
    for (std::size_t byte = 0; byte < plain.size(); ++byte) plain[byte] = is_plain(static_cast<unsigned char>(byte));
    return plain;
  }();

  /// The byte at the front; NUL, which no JSON holds, at the end.
  [[nodiscard]] char front() const { return at_ == end_ ? '\0' : *at_; }

  bool skip_space() {
    if (at_ == end_ || !is_space(*at_)) return true;
    const char* const first = at_++;
    while (at_ != end_ && is_space(*at_)) ++at_;
    return at_ - first <= kLongest;
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

  bool value(int depth) {
    switch (front()) {
      case '{': return object(depth + 1);
      case '[': return list(depth + 1);
      case '"': {
        std::string_view text;
        return take_text(text) && events_.value(Value::text(text));
      }
      case 't': return take_word("true") && events_.value(Value::boolean(true));
      case 'f': return take_word("false") && events_.value(Value::boolean(false));
      case 'n': return take_word("null") && events_.value(Value::null());
      default: return number();
    }
  }

  bool object(int depth) {
    reached_ = ++at_;
    if (depth > kDeepest || !events_.open_object() || !skip_space()) return false;
    if (take('}')) return events_.close();
    do {
      if (!skip_space() || !field(depth) || !skip_space()) return false;
    } while (take(','));
    return take('}') && events_.close();
  }

  bool field(int depth) {
    std::string_view name;
    return take_text(name) && events_.key(name) && skip_space() && take(':') && skip_space() && value(depth);
  }

  bool list(int depth) {
    ++at_;
    if (depth > kDeepest || !events_.open_list() || !skip_space()) return false;
    if (take(']')) return events_.close();
    do {
      if (!skip_space() || !value(depth) || !skip_space()) return false;
    } while (take(','));
    return take(']') && events_.close();
  }

  bool take_text(std::string_view& text) {
    if (!take('"')) return false;
    const char* const first = at_;
    while (at_ != end_ && kPlain[static_cast<unsigned char>(*at_)]) ++at_;
    text = {first, static_cast<std::size_t>(at_ - first)};
    return at_ - first <= kLongest && take('"');
  }

  std::ptrdiff_t skip_digits() {
    const char* const first = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ - first;
  }

  bool number() {
    const char* const first = at_;
    if (front() == '-') ++at_;
    const bool zero = front() == '0';
    const std::ptrdiff_t digits = skip_digits();
    if (digits == 0 || digits > kMostDigits || (zero && digits > 1)) return false;
    if (front() == '.' || front() == 'e' || front() == 'E') return real(first);
    std::int64_t integer = 0;
    std::from_chars(first, at_, integer);
    return events_.value(Value::integer(integer));
  }

  /// From the first byte of the number; the one at the front ends its integer part.
  bool real(const char* first) {
    if (take('.') && !short_digits()) return false;
    if (front() == 'e' || front() == 'E') {
      ++at_;
      if (front() == '+' || front() == '-') ++at_;
      if (!short_digits()) return false;
    }
    double real = 0;
    const auto read = std::from_chars(first, at_, real);
    return read.ec == std::errc() && events_.value(Value::real(real));
  }

  bool short_digits() {
    const std::ptrdiff_t digits = skip_digits();
    return digits > 0 && digits <= kMostDigits;
  }

  const char* at_;
  const char* const end_;
  Events& events_;
  const char*& reached_;
};

}  // namespace gpumem::core
