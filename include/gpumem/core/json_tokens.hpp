// Input: JSON as programs print it: no escapes, ASCII only, numbers of ordinary length.
// Output: its tokens, one call each; or "no", and then the caller asks the full parser, which also writes the error
// message. So these functions may give up anywhere, but must accept only what the full parser accepts.
#pragma once

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace gpumem::core {

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

}  // namespace gpumem::core
