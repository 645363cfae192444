#include "memory_messages.hpp"

#include <gtest/gtest.h>

namespace gpumem::launcher {
namespace {

bool found_in(std::string_view text, std::size_t piece) {
  MemoryMessages messages;
  for (std::size_t at = 0; at < text.size(); at += piece) messages.take(text.substr(at, piece));
  return messages.found();
}

TEST(MemoryMessages, AreFoundHoweverTheyAreCut) {
  for (const std::string_view message : kOutOfMemoryMessages) {
    const std::string text =
        std::string(500, 'x') + "RuntimeError: " + std::string(message) + ". Tried" + std::string(500, 'y');
    for (const std::size_t piece : {1UL, 2UL, 7UL, 64UL, 4096UL})
      EXPECT_TRUE(found_in(text, piece)) << message << piece;
  }
}

TEST(MemoryMessages, OtherErrorsAreNone) {
  for (const char* text : {"", "RuntimeError: CUDA error: device-side assert triggered", "MemoryError", "out of memory",
                           "CUDA out of mem", "Killed"}) {
    EXPECT_FALSE(found_in(text, 5)) << text;
  }
}

}  // namespace
}  // namespace gpumem::launcher
