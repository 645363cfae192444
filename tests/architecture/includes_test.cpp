// Reads every #include of the library and fails on an arrow that the house does not allow: a summary walks
// through the rooms once, and a new file needs one row in its list, not a change elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "arrows.hpp"
#include "sources.hpp"

namespace gpumem::architecture {
namespace {

/// What all files of a room share; every other file there is one of many siblings.
const std::map<std::string, Names> kSharedInRooms = {
    {"summary",
     {"text", "table_reader", "formats", "read_options", "module_repr", "node_linker", "plain_graph_json",
      "recording_fields", "model_folder", "model_folder_published", "published_images", "published_rows",
      "published_configs", "published_vision"}},
    {"architectures",
     {"architecture",    "config_fields",      "forward",           "decoder",           "latent_attention",
      "mixture",         "megatron_arguments", "mamba_mixers",      "hyper_connections", "module_tree",
      "vision_language", "image_rules",        "image_towers",      "image_tokens",      "printed_module",
      "printed_table",   "denoiser",           "unet_parts",        "dit_parts",         "sound_parts",
      "series_parts",    "bart_parts",         "autoencoder_parts", "hunyuan_parts",     "sd3_parts"}},
    {"ops", {"op", "tape", "matrix", "axis", "language_loss", "attention_kernels"}},
    {"estimate", {"estimator", "memory_estimate", "evidence", "fit", "advise", "timeline"}},
};

/// The lists and what reads through them: they include the siblings.
const std::map<std::string, Names> kListsOfRooms = {
    {"architectures", {"architectures", "architecture_list"}},
    {"summary", {"formats"}},
    {"ops", {"catalogue"}},
    {"estimate", {"estimator", "timeline"}},
};

const Names kUmbrellas = {"gpumem.hpp", "all.hpp", "bodies.hpp", "estimate.hpp"};

const std::vector<Source>& library() {
  static const std::vector<Source> kAll = sources_below(kRoot / "include" / "gpumem");
  return kAll;
}

const std::vector<Source>& programs() {
  static const std::vector<Source> kAll = sources_below(kRoot / "src");
  return kAll;
}

/// The room that a file is in; "" for the umbrellas.
std::string room_of(const std::string& path) {
  const std::size_t end = path.find('/');
  return end == std::string::npos ? "" : path.substr(0, end);
}

/// Whether it is a room's body, or data that the build writes for one.
bool is_body(const std::string& path) { return path.find("/impl/") != std::string::npos; }

bool is_in(const std::map<std::string, Names>& table, const std::string& room, const std::string& stem) {
  const auto row = table.find(room);
  return row != table.end() && row->second.contains(stem);
}

/// Every include that the house does not allow, in words.
std::vector<std::string> forbidden(const std::vector<Source>& files) {
  std::vector<std::string> faults;
  for (const Source& file : files) {
    if (kUmbrellas.contains(file.path)) continue;  // they have no room
    const std::string room = room_of(file.path);
    const auto allowed = kArrows.find(room);
    if (allowed == kArrows.end()) {
      faults.push_back(file.path + " is in no room");
      continue;
    }
    const std::string stem = stem_of(file.path);
    for (const std::string& include : file.includes) {
      constexpr std::string_view kPrefix = "gpumem/";
      if (!include.starts_with(kPrefix)) continue;
      const std::string target = include.substr(kPrefix.size());
      const std::string target_stem = stem_of(target);
      const std::string target_room = room_of(target);
      const std::string arrow = file.path + " includes " + target;
      if (target_room != room && !allowed->second.contains(target_room)) faults.push_back(arrow);
      const bool own = target_stem == stem || (is_body(file.path) && stem.starts_with(target_stem + "_"));
      const bool siblings = kSharedInRooms.contains(room) && target_room == room && !own;
      const bool may = is_in(kSharedInRooms, room, target_stem) || is_in(kListsOfRooms, room, stem);
      if (siblings && !may) faults.push_back(arrow + ", its sibling");
      if (is_body(target) && !is_body(file.path)) faults.push_back(arrow + ", a body");
    }
  }
  return faults;
}

/// Stems of the files of a room that are neither shared nor lists.
Names members(const std::string& room) {
  Names all;
  for (const Source& file : library()) {
    const std::string stem = stem_of(file.path);
    if (is_body(file.path)) continue;  // each has its header
    if (room_of(file.path) == room && !is_in(kSharedInRooms, room, stem) && !is_in(kListsOfRooms, room, stem)) {
      all.insert(stem);
    }
  }
  return all;
}

/// Stems of the siblings of that room which `list` includes.
Names listed_in(const std::string& list, const std::string& room) {
  Names all;
  for (const Source& file : library()) {
    if (file.path != list) continue;
    for (const std::string& include : file.includes) {
      const std::string stem = stem_of(include);
      const bool member = include.starts_with("gpumem/" + room + "/") && stem != stem_of(list);
      if (member && !is_in(kSharedInRooms, room, stem)) all.insert(stem);
    }
  }
  return all;
}

TEST(Includes, AreFound) {
  EXPECT_GT(library().size(), 50U);
  EXPECT_GT(programs().size(), 5U);
  const auto replay = std::find_if(library().begin(), library().end(),
                                   [](const Source& file) { return file.path == "estimate/replay.hpp"; });
  ASSERT_NE(replay, library().end());
  EXPECT_NE(std::find(replay->includes.begin(), replay->includes.end(), "gpumem/estimate/estimator.hpp"),
            replay->includes.end());
}

TEST(Includes, FollowTheArrows) { EXPECT_EQ(forbidden(library()), std::vector<std::string>()); }

TEST(Includes, AForbiddenArrowIsFound) {
  const std::vector<Source> house = {
      {"core/bytes.hpp", {"cstdint", "gpumem/model/layer.hpp"}},
      {"model/layer.hpp", {"gpumem/core/bytes.hpp"}},
      {"ops/conv.hpp", {"gpumem/ops/op.hpp", "gpumem/ops/pool.hpp"}},
      {"ops/pool.hpp", {"gpumem/ops/op.hpp", "gpumem/summary/text.hpp"}},
      {"ops/op.hpp", {"gpumem/core/bytes.hpp"}},
      {"summary/text.hpp", {"gpumem/core/bytes.hpp"}},
      {"estimate/replay.hpp", {"gpumem/ops/impl/pool_inl.hpp"}},
      {"ops/impl/pool_inl.hpp", {"gpumem/ops/pool.hpp", "gpumem/estimate/replay.hpp"}},
      {"kitchen/sink.hpp", {}},
      {"gpumem.hpp", {"gpumem/ops/conv.hpp", "gpumem/estimate/replay.hpp"}},
  };
  EXPECT_EQ(forbidden(house), (std::vector<std::string>{
                                  "core/bytes.hpp includes model/layer.hpp",
                                  "ops/conv.hpp includes ops/pool.hpp, its sibling",
                                  "ops/pool.hpp includes summary/text.hpp",
                                  "estimate/replay.hpp includes ops/impl/pool_inl.hpp, a body",
                                  "ops/impl/pool_inl.hpp includes estimate/replay.hpp",
                                  "kitchen/sink.hpp is in no room",
                              }));
}

/// A body is named after a header of its room; what is too long for one file goes on under a longer name:
/// ml/impl/network_inl.hpp and ml/impl/network_compiled_inl.hpp hold the bodies of ml/network.hpp.
TEST(Includes, EveryBodyHasItsHeader) {
  Names headers;
  for (const Source& file : library()) {
    if (!is_body(file.path)) headers.insert(room_of(file.path) + "/" + stem_of(file.path));
  }
  for (const Source& file : library()) {
    if (!is_body(file.path)) continue;
    std::string name = room_of(file.path) + "/" + stem_of(file.path);
    while (!headers.contains(name) && name.rfind('_') != std::string::npos) name.resize(name.rfind('_'));
    EXPECT_TRUE(headers.contains(name)) << file.path;
    const auto& includes = file.includes;
    const std::string header = "gpumem/" + name + ".hpp";
    EXPECT_NE(std::find(includes.begin(), includes.end(), header), includes.end()) << file.path;
  }
}

TEST(Includes, HeavyLibrariesStayOutOfPublicHeaders) {
  for (const Source& file : library()) {
    const bool body = is_body(file.path);
    for (const std::string& include : file.includes) {
      EXPECT_NE(include, "regex") << file.path << ": libstdc++'s overflows the stack on long lines";
      EXPECT_FALSE(include.starts_with("torch/") || include.starts_with("ATen/")) << file.path;
      const bool heavy = include.starts_with("nlohmann/") || include.starts_with("Eigen/");
      EXPECT_TRUE(body || !heavy) << file.path << " includes " << include;
    }
  }
}

TEST(Includes, ProgramsUseTheLibraryByItsPublicHeaders) {
  for (const Source& file : programs()) {
    // libtorch's header costs half a minute a file: one pays it.
    const bool trainer = file.path.starts_with("train/torch_network");
    for (const std::string& include : file.includes) {
      EXPECT_NE(include, "regex") << file.path;
      EXPECT_TRUE(trainer || !include.starts_with("torch/")) << file.path << " includes " << include;
      EXPECT_TRUE(file.path.starts_with("library/") || !(include.starts_with("gpumem/") && is_body(include)))
          << file.path << " includes " << include;
    }
  }
}

TEST(Lists, HoldEveryOpFamily) { EXPECT_EQ(listed_in("ops/impl/catalogue_inl.hpp", "ops"), members("ops")); }

TEST(Lists, HoldEveryFormat) { EXPECT_EQ(listed_in("summary/impl/formats_inl.hpp", "summary"), members("summary")); }

TEST(Lists, HoldEveryArchitecture) {
  EXPECT_EQ(listed_in("architectures/impl/architecture_list_inl.hpp", "architectures"), members("architectures"));
}

TEST(Lists, HoldEveryEstimator) {
  EXPECT_EQ(listed_in("estimate/impl/estimator_inl.hpp", "estimate"), members("estimate"));
}

/// What stands in one file, or a few, each a class or a table of its own: how it is declared, and how its row begins.
struct Kind {
  const char* files;        ///< how their paths begin
  const char* declaration;  ///< its first group is the name
  const char* list;
  const char* row_begins;  ///< after the name
  std::size_t at_least;
};

TEST(Lists, HoldEveryOneOfAKind) {
  const Kind kinds[] = {
      {"place/", "class (\\w+) final : public Policy ", "place/policies.hpp", "::kName", 8},
      {"estimate/", "class (\\w+) final : public Estimator ", "estimate/impl/estimator_inl.hpp", "::k", 7},
      {"utilisation/", "class (\\w+) final : public UtilisationEstimator ",
       "utilisation/impl/utilisation_estimators_inl.hpp", "::k", 2},
      {"request/targets", "struct (\\w+) \\{\n *static constexpr std::string_view kName",
       "request/impl/targets_inl.hpp", "::make", 10},
      {"search/", "\\]\\] Framework (\\w+)\\(\\);", "search/impl/frameworks_inl.hpp", "()", 4},
      {"architectures/", "constexpr std::array<ModuleForward, \\d+> (\\w+) ",
       "architectures/impl/architecture_list_inl.hpp", "", 30},
      {"architectures/", "constexpr Architecture kArchitecture = [^;]*;\n\n\\}  // namespace (\\w+)\n",
       "architectures/impl/architecture_list_inl.hpp", "::kArchitecture", 99},
  };
  for (const Kind& kind : kinds) {
    const std::string list = text_of(kRoot / "include/gpumem" / kind.list);
    std::size_t found = 0;
    for (const Source& file : library()) {
      if (!file.path.starts_with(kind.files)) continue;
      const std::string text = text_of(kRoot / "include/gpumem" / file.path);
      const std::regex declaration(kind.declaration);
      for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at, ++found) {
        const std::string row = (*at)[1].str() + kind.row_begins;
        const std::size_t in_list = list.find(row);
        EXPECT_NE(in_list, std::string::npos) << file.path << ": " << row << " is not in " << kind.list;
      }
    }
    EXPECT_GE(found, kind.at_least) << kind.files;
  }
}

TEST(Lists, EveryOpFamilyHasItsRow) {
  const std::string list = text_of(kRoot / "include/gpumem/ops/impl/catalogue_inl.hpp");
  for (const std::string& family : members("ops")) {
    std::string row = "k" + family + "Ops,";
    row[1] = static_cast<char>(row[1] - 'a' + 'A');
    EXPECT_NE(list.find(row), std::string::npos) << family << " is included, but " << row << " is not in the list";
  }
}

/// The names of ops, as their rows have them.
Names op_names() {
  constexpr std::string_view kField = ".name = \"";
  Names names;
  for (const Source& file : library()) {
    if (room_of(file.path) != "ops") continue;
    const std::string text = text_of(kRoot / "include/gpumem" / file.path);
    for (std::size_t at = text.find(kField); at != std::string::npos; at = text.find(kField, at)) {
      at += kField.size();
      names.insert(text.substr(at, text.find('"', at) - at));
    }
  }
  return names;
}

/// The code of a file, without its comments.
std::string code_of(const Source& file) {
  std::string code = text_of(kRoot / "include/gpumem" / file.path);
  for (std::size_t at = code.find("//"); at != std::string::npos; at = code.find("//", at)) {
    code.erase(at, code.find('\n', at) - at);
  }
  return code;
}

TEST(Ops, AreKnownByTheirRowsAlone) {
  const Names names = op_names();
  EXPECT_GT(names.size(), 100U);
  // Words of other things, too: of networks, of phases of a step, of statistics, of layouts, of a config.json.
  const Names words = {"activation", "embedding", "identity", "linear", "mean", "sliding_window", "split", "sum"};
  for (const Source& file : library()) {
    const std::string room = room_of(file.path);
    if (room == "ops" || room == "connect" || room == "adapt" || room == "architectures") continue;
    if (stem_of(file.path).starts_with("published_")) continue;  // what configs say of their activations
    // Names of programs (ROLL), and of what OmegaConf computes.
    if (room == "posttrain" && (stem_of(file.path).starts_with("launch_") || stem_of(file.path) == "post_training_job"))
      continue;
    const std::string code = code_of(file);
    for (const std::string& name : names) {
      if (words.contains(name)) continue;
      EXPECT_EQ(code.find("\"" + name + "\""), std::string::npos) << file.path << " names the op " << name;
    }
    EXPECT_EQ(code.find("starts_with(\"conv"), std::string::npos) << file.path;
  }
}

/// Rules of blocks name the ops that their rows show; what all share asks the ops' rows.
TEST(Ops, AreNotToldApartByNameWhereGraphsAreWired) {
  for (const Source& file : library()) {
    if (room_of(file.path) != "connect" || stem_of(file.path) == "block_rules") continue;
    const std::string code = code_of(file);
    for (const std::string& name : op_names()) {
      EXPECT_EQ(code.find("== \"" + name + "\""), std::string::npos) << file.path;
      EXPECT_EQ(code.find("!= \"" + name + "\""), std::string::npos) << file.path;
    }
    EXPECT_EQ(code.find("starts_with(\"conv"), std::string::npos) << file.path;
  }
}

TEST(Lists, EveryFormatHasItsRow) {
  const std::string list = text_of(kRoot / "include/gpumem/summary/impl/formats_inl.hpp");
  for (const std::string& format : members("summary")) {
    EXPECT_NE(list.find("&" + format + "(),"), std::string::npos) << format;
  }
}

/// Both lists begin with what marks a body.
constexpr const char* kConfig = "gpumem/core/config.hpp";

TEST(Lists, TheCompiledLibraryHoldsEveryBodyInItsRoomsFile) {
  std::map<std::string, Names> bodies;
  for (const Source& file : library()) {
    if (is_body(file.path)) bodies[room_of(file.path)].insert("gpumem/" + file.path);
  }
  std::map<std::string, Names> compiled;
  for (const Source& file : programs()) {
    if (!file.path.starts_with("library/")) continue;
    ASSERT_EQ(file.includes.front(), kConfig) << file.path;
    compiled[stem_of(file.path)] = {file.includes.begin() + 1, file.includes.end()};
  }
  EXPECT_EQ(compiled, bodies);
}

TEST(Lists, ThoseWhoLinkNothingGetEveryBody) {
  Names bodies = {kConfig};
  for (const Source& file : library()) {
    if (is_body(file.path)) bodies.insert("gpumem/" + file.path);
  }
  const std::vector<std::string> listed = includes_of(kRoot / "include/gpumem/bodies.hpp");
  EXPECT_EQ(listed.front(), kConfig);
  EXPECT_EQ(Names(listed.begin(), listed.end()), bodies);
  EXPECT_EQ(includes_of(kRoot / "include/gpumem/gpumem.hpp").back(), "gpumem/bodies.hpp");
}

/// The names of std::ranges that a text uses, or those that it defines in a namespace of that name.
std::set<std::string> names_of_ranges(const std::string& text, const std::regex& pattern) {
  std::set<std::string> names;
  for (std::sregex_iterator each(text.begin(), text.end(), pattern), none; each != none; ++each) {
    names.insert((*each)[1]);
  }
  return names;
}

TEST(Headers, UseOfRangesOnlyWhatTheWebPageHas) {
  const std::string added = text_of(kRoot / "src/web/missing_std.hpp");
  const std::size_t begin = added.find("namespace ranges {");
  ASSERT_NE(begin, std::string::npos);
  const auto has = names_of_ranges(added.substr(begin), std::regex(R"((?:auto|bool) (\w+)\()"));
  EXPECT_TRUE(has.contains("find"));
  std::vector<std::string> missing;
  for (const Source& source : library()) {
    const std::string text = text_of(kRoot / "include" / "gpumem" / source.path);
    for (const std::string& name : names_of_ranges(text, std::regex(R"(std::ranges::(\w+))"))) {
      if (!has.contains(name)) missing.push_back(source.path + ": std::ranges::" + name);
    }
  }
  EXPECT_EQ(missing, std::vector<std::string>()) << "the page's standard library is LLVM 13's: see missing_std.hpp";
}

TEST(Headers, BeginWithPragmaOnce) {
  for (const Source& file : library()) {
    const std::string text = text_of(kRoot / "include/gpumem" / file.path);
    EXPECT_NE(text.find("#pragma once\n"), std::string::npos) << file.path;
  }
}

}  // namespace
}  // namespace gpumem::architecture
