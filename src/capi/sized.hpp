// Input: a struct of the C API. Its first field is the size that its owner was compiled with. Or an array of words.
// Output: the struct in today's size, or what is wrong with it; and a result of today in the room that the owner has.
// Units: bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "gpumem/core/result.hpp"

namespace gpumem::capi {

/// No struct will be larger: what says so was never set.
inline constexpr std::size_t kLargestStruct = 4096;

inline core::Error refused(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

inline constexpr std::size_t kMostWords = 100'000;

/// An array of words that enters.
inline core::Result<std::vector<std::string>> texts_of(const char* const* words, std::size_t count, const char* what) {
  const std::string name(what);
  if (count > 0 && (words == nullptr || count > kMostWords)) {
    return refused(name + " is a null pointer, or its count is above 100000");
  }
  std::vector<std::string> texts;
  for (std::size_t index = 0; index < count; ++index) {
    if (words[index] == nullptr) return refused("a word of " + name + " is a null pointer");
    texts.emplace_back(words[index]);
  }
  return texts;
}

/// `first` is the size of the struct in the first version of the API.
inline core::Status check_size(std::size_t size, std::size_t first, const char* name) {
  if (size >= first && size <= kLargestStruct) return core::Done{};
  return refused(std::string(name) + ".size is " + std::to_string(size) + "; begin with the GPUMEM_..._INIT macro");
}

/// A struct that enters: a field that the caller does not know about is zero.
template <typename Struct>
core::Result<Struct> taken(const Struct* from, std::size_t first, const char* name) {
  if (from == nullptr) return refused(std::string(name) + " is a null pointer");
  std::size_t size = 0;
  std::memcpy(&size, from, sizeof size);
  if (const auto checked = check_size(size, first, name); !checked) return checked.error();
  const char* bytes = reinterpret_cast<const char*>(from);
  if (size > sizeof(Struct)) {
    const auto set = [](char byte) { return byte != 0; };
    if (std::any_of(bytes + sizeof(Struct), bytes + size, set)) {
      return refused(std::string(name) + " has fields that this version of libgpumem_c does not know");
    }
  }
  Struct known{};
  std::memcpy(&known, bytes, std::min(size, sizeof(Struct)));
  return known;
}

/// What a struct that leaves holds before: the room that its owner has. A field that the owner does not know about is
/// zero.
template <typename Struct>
Struct room_of(const Struct* to) {
  std::size_t size = 0;
  std::memcpy(&size, to, sizeof size);
  Struct room{};
  std::memcpy(&room, to, std::min(size, sizeof(Struct)));
  return room;
}

/// A struct that leaves: its owner gets as much as there is room for, and zero for what nobody knows yet.
template <typename Struct>
void give(const Struct& result, Struct* to) {
  std::size_t size = 0;
  std::memcpy(&size, to, sizeof size);
  char* bytes = reinterpret_cast<char*>(to);
  const std::size_t known = std::min(size, sizeof(Struct));
  std::memcpy(bytes + sizeof size, reinterpret_cast<const char*>(&result) + sizeof size, known - sizeof size);
  if (size > known) std::memset(bytes + known, 0, size - known);
}

}  // namespace gpumem::capi
