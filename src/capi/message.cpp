#include "message.hpp"

#include <algorithm>

namespace gpumem::capi {

namespace {

constexpr std::string_view kCut = "...";

/// How many of the first `room` bytes can stay.
std::size_t whole_sequences(std::string_view text, std::size_t room) {
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U; };
  constexpr std::size_t kLongestSequence = 4;
  std::size_t end = room;
  while (end > 0 && room - end < kLongestSequence && continues(end)) --end;
  return end;
}

char printable(char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F ? '?' : byte; }

}  // namespace

void write_text(std::string_view text, char* buffer, std::size_t size) noexcept {
  if (buffer == nullptr || size == 0) return;
  const std::size_t room = size - 1;
  const bool cut = text.size() > room;
  const std::string_view end = cut && room >= kCut.size() ? kCut : std::string_view();
  const std::size_t kept = cut ? whole_sequences(text, room - end.size()) : text.size();
  char* at = std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(kept), buffer, printable);
  at = std::copy(end.begin(), end.end(), at);
  *at = '\0';
}

}  // namespace gpumem::capi
