#include "timeline_page.hpp"

#include <nlohmann/json.hpp>

#include "report.hpp"
#include "timeline_html.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;
using estimate::ByCategory;
using estimate::TimelinePoint;

/// One column of the points, each value as the difference from the one before: mostly zeros, which take two bytes.
template <typename Value>
Json column(const Timeline& timeline, Value value_of) {
  Json column = Json::array();
  std::int64_t before = 0;
  for (const TimelinePoint& point : timeline.points) {
    const auto value = static_cast<std::int64_t>(value_of(point));
    column.push_back(value - before);
    before = value;
  }
  return column;
}

Json points_json(const Timeline& timeline) {
  Json points;
  points["event"] = column(timeline, [](const TimelinePoint& point) { return point.event; });
  points["reserved"] = column(timeline, [](const TimelinePoint& point) { return point.reserved; });
  points["allocated"] = Json::array();
  for (std::size_t category = 0; category < ByCategory().size(); ++category) {
    points["allocated"].push_back(
        column(timeline, [&](const TimelinePoint& point) { return point.allocated[category]; }));
  }
  for (const char* name : {"bytes", "category", "layer"}) points[name] = Json::array();
  for (const TimelinePoint& point : timeline.points) {
    points["bytes"].push_back(point.bytes);
    points["category"].push_back(point.category);
    points["layer"].push_back(point.layer);
  }
  return points;
}

/// The part of the breakdown that each column of "allocated" counts to.
Json categories_json() {
  Json names = Json::array();
  for (std::size_t category = 0; category < plan::kCategories; ++category) {
    names.push_back(plan::part_of(static_cast<plan::Category>(category)));
  }
  names.push_back("workspace");
  return names;
}

Json peak_json(const Timeline& timeline) {
  const auto after = [&](const estimate::TimelinePhase& phase) { return phase.first_point > timeline.peak_point; };
  auto phase = timeline.phases.begin();
  while (phase + 1 != timeline.phases.end() && !after(*(phase + 1))) ++phase;
  return {{"point", timeline.peak_point},
          {"allocated_bytes", timeline.peak_allocated.count()},
          {"reserved_bytes", timeline.peak_reserved.count()},
          {"layer", timeline.points[timeline.peak_point].layer},
          {"phase", model::name_of(plan::kPhaseNames, phase->phase)},
          {"step", phase->step},
          {"text", said(timeline.peak_text)}};
}

Json data_of(const EstimatedJob& estimated_job, const Timeline& timeline) {
  Json data = head_json(estimated_job);
  data["version"] = GPUMEM_VERSION_STRING;
  data["gpu"] = {{"name", estimated_job.gpu->name},
                 {"title", estimated_job.gpu->title},
                 {"capacity_bytes", timeline.capacity.count()}};
  data.erase("capacity_bytes");
  data["context_bytes"] = timeline.context.count();
  data["verdict"] = model::name_of(estimate::kVerdicts, timeline.verdict);
  data["most_needed_bytes"] = timeline.most_needed.count();
  data["upper_uncut_bytes"] = timeline.upper_uncut.count();
  data["retries"] = timeline.retries;
  data["events"] = timeline.events;
  data["peak"] = peak_json(timeline);
  data["categories"] = categories_json();
  data["phases"] = Json::array();
  for (const estimate::TimelinePhase& phase : timeline.phases) {
    data["phases"].push_back({{"first_point", phase.first_point},
                              {"phase", model::name_of(plan::kPhaseNames, phase.phase)},
                              {"step", phase.step},
                              {"batch_size", phase.batch_size}});
  }
  data["layers"] = Json::array();
  for (const estimate::TimelineLayer& layer : timeline.layers) {
    data["layers"].push_back(Json::array({layer.path, layer.class_name}));
  }
  data["holders"] = Json::array();
  for (const estimate::TimelineHolder& holder : timeline.holders) {
    data["holders"].push_back({{"layer", holder.layer}, {"held", holder.held}, {"total", holder.total}});
  }
  data["holders_left_out"] = timeline.holders_left_out;
  data["held_by_others_bytes"] = timeline.held_by_others;
  data["points"] = points_json(timeline);
  return data;
}

/// `text` with each of `what` replaced. Nothing is looked for in what was put in.
std::string replaced(std::string_view text, std::string_view what, const auto& with) {
  std::string result;
  for (std::size_t at = text.find_first_of(what); at != std::string_view::npos; at = text.find_first_of(what)) {
    result += text.substr(0, at);
    result += with(text[at]);
    text.remove_prefix(at + 1);
  }
  return result += text;
}

/// JSON that ends no <script>: its strings may hold '<', nothing else in it can. ASCII, whatever they hold.
std::string script_json(const Json& data) {
  const std::string text = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  return replaced(text, "<>&", [](char byte) {
    return std::string(byte == '<' ? "\\u003c" : byte == '>' ? "\\u003e" : "\\u0026");
  });
}

std::string html_text(std::string_view text) {
  return replaced(text, "<>&\"'", [](char byte) { return "&#" + std::to_string(static_cast<int>(byte)) + ";"; });
}

void put(std::string& page, std::string_view mark, const std::string& text) {
  page.replace(page.find(mark), mark.size(), text);
}

}  // namespace

std::string timeline_page(const EstimatedJob& estimated_job, const Timeline& timeline) {
  std::string page(kTimelineHtml);
  // The data first: it comes after the title, whose text could otherwise hold its mark.
  put(page, "@DATA@", script_json(data_of(estimated_job, timeline)));
  put(page, "@TITLE@", html_text("gpumem timeline: " + core::quoted(estimated_job.graph->file())));
  return page;
}

}  // namespace gpumem::cli
