// What the library uses of C++20 and LLVM 13's standard library has not: that is the one of Debian 12's emscripten.
// Included before every file of the build for WebAssembly, and nowhere else. It adds to namespace std, which only the
// one version that lacks these names makes right: with a later one it is empty.
#pragma once

#include <version>

#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 14000

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace gpumem::web {

/// strtod takes more than std::from_chars does: blanks and a plus in front, hexadecimal numbers. What is left is the
/// text that both read alike.
inline std::string plain_part(const char* first, const char* last, std::chars_format format) {
  std::string text(first, last);
  const std::size_t begin = text.starts_with('-') ? 1 : 0;
  if (text.find_first_of("0123456789.iInN", begin) != begin) return {};
  if (text.find_first_of("xX", begin) == begin + 1) text.resize(begin + 1);
  const bool worded = text.find_first_of("iInN", begin) == begin;
  if (format == std::chars_format::fixed && !worded) text.resize(std::min(text.size(), text.find_first_of("eE")));
  return text;
}

}  // namespace gpumem::web

namespace std {  // NOLINT(cert-dcl58-cpp): see above

inline from_chars_result from_chars(const char* first, const char* last, double& value,
                                    chars_format format = chars_format::general) {
  const string text = gpumem::web::plain_part(first, last, format);
  char* stop = nullptr;
  errno = 0;
  const double read = strtod(text.c_str(), &stop);
  const ptrdiff_t length = stop - text.c_str();
  if (length == 0) return {first, errc::invalid_argument};
  if (errno == ERANGE && (read == 0.0 || isinf(read))) return {first + length, errc::result_out_of_range};
  value = read;
  return {first + length, errc()};
}

/// The shortest text that reads as the same number, in the plain form where that is no longer.
inline to_chars_result to_chars(char* first, char* last, double value) {
  array<char, 32> best{};
  array<char, 64> plain{};
  for (int digits = 0; digits <= 17; ++digits) {
    snprintf(best.data(), best.size(), "%.*e", digits, value);
    if (strtod(best.data(), nullptr) == value) break;
  }
  for (int decimals = 0; decimals <= 25; ++decimals) {
    snprintf(plain.data(), plain.size(), "%.*f", decimals, value);
    if (strtod(plain.data(), nullptr) == value) break;
  }
  const bool is_short = strtod(plain.data(), nullptr) == value && strlen(plain.data()) <= strlen(best.data());
  if (is_short) memcpy(best.data(), plain.data(), strlen(plain.data()) + 1);
  const size_t length = strlen(best.data());
  if (static_cast<ptrdiff_t>(length) > last - first) return {last, errc::value_too_large};
  memcpy(first, best.data(), length);
  return {first + length, errc()};
}

template <typename To, typename From>
To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

template <typename Array>
unique_ptr<Array> make_unique_for_overwrite(size_t count) {
  return unique_ptr<Array>(new remove_extent_t<Array>[count]);
}

namespace ranges {

template <typename Range, typename Value>
auto find(Range&& range, const Value& value) {
  return std::find(std::begin(range), std::end(range), value);
}

template <typename Range, typename Value, typename Projection>
auto find(Range&& range, const Value& value, Projection projection) {
  return std::find_if(std::begin(range), std::end(range),
                      [&](const auto& each) { return std::invoke(projection, each) == value; });
}

template <typename Range, typename Predicate>
bool any_of(Range&& range, Predicate predicate) {
  return std::any_of(std::begin(range), std::end(range), std::move(predicate));
}

template <typename Range, typename Predicate>
bool all_of(Range&& range, Predicate predicate) {
  return std::all_of(std::begin(range), std::end(range), std::move(predicate));
}

template <typename Range, typename Predicate>
bool none_of(Range&& range, Predicate predicate) {
  return std::none_of(std::begin(range), std::end(range), std::move(predicate));
}

template <typename Range, typename Predicate>
auto find_if(Range&& range, Predicate predicate) {
  return std::find_if(std::begin(range), std::end(range), std::move(predicate));
}

template <typename Range, typename Value>
auto count(Range&& range, const Value& value) {
  return std::count(std::begin(range), std::end(range), value);
}

template <typename Left, typename Right>
bool equal(const Left& left, const Right& right) {
  return std::equal(std::begin(left), std::end(left), std::begin(right), std::end(right));
}

struct UsualOrder {
  template <typename Left, typename Right>
  bool operator()(const Left& left, const Right& right) const {
    return left < right;
  }
};

template <typename Range, typename Value, typename Projection>
auto lower_bound(Range&& range, const Value& value, UsualOrder less, Projection projection) {
  return std::lower_bound(std::begin(range), std::end(range), value, [&](const auto& each, const Value& wanted) {
    return less(std::invoke(projection, each), wanted);
  });
}

}  // namespace ranges

}  // namespace std

#endif
