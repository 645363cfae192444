// What the tests of the architecture share: the source files below a folder, and what each includes.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace gpumem::architecture {

struct Source {
  std::string path;  ///< below include/gpumem or src: "ops/conv.hpp", "estimate/impl/published_inl.hpp", "cli/main.cpp"
  std::vector<std::string> includes;  ///< as written between the brackets or quotes
};

inline std::vector<std::string> includes_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> all;
  for (std::string line; std::getline(stream, line);) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos || line[begin] != '#') continue;
    const std::size_t word = line.find_first_not_of(" \t", begin + 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
    const std::size_t open = line.find_first_of("<\"", word);
    const std::size_t close = open == std::string::npos ? open : line.find_first_of(">\"", open + 1);
    if (close != std::string::npos) all.push_back(line.substr(open + 1, close - open - 1));
  }
  return all;
}

inline std::vector<Source> sources_below(const std::filesystem::path& folder) {
  std::vector<Source> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const bool code = entry.path().extension() == ".hpp" || entry.path().extension() == ".cpp";
    if (entry.is_regular_file() && code) {
      all.push_back({std::filesystem::relative(entry.path(), folder).generic_string(), includes_of(entry.path())});
    }
  }
  return all;
}

inline const std::filesystem::path kRoot = GPUMEM_SOURCE_DIR;

inline std::string stem_of(std::string_view path) {
  std::string stem = std::filesystem::path(path).stem().string();
  if (stem.ends_with("_inl")) stem.resize(stem.size() - 4);
  return stem;
}

inline std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace gpumem::architecture
