#pragma once

#include <utility>

#include "gpumem/connect/chain.hpp"
#include "gpumem/connect/connect.hpp"
#include "gpumem/core/bytes.hpp"

namespace gpumem::connect {

namespace connect_detail {

GPUMEM_INLINE std::string described(const Chained& chained) {
  std::string text = "chained";
  const auto count = [](std::int64_t number, std::string_view one, std::string_view more) {
    return ", " + core::with_separators(number) + std::string(number == 1 ? one : more);
  };
  if (chained.joins > 0) text += count(chained.joins, " join inferred", " joins inferred");
  if (chained.misfits > 0) {
    text += count(chained.misfits, " layer does not fit what precedes it", " layers do not fit what precedes them");
  }
  if (!chained.inferred_input.empty()) text += ", input " + chained.inferred_input + " inferred";
  return text;
}

}  // namespace connect_detail

GPUMEM_INLINE core::Result<Connected> connect(const model::TrainingJob& job, const ops::Catalogue& ops) {
  if (!job.graph->edges_inferred()) return Connected{job.graph, "given"};
  for (const Family* family : families()) {
    if (!family->recognises(*job.graph)) continue;
    core::Result<model::ModelGraph> connected = family->connect(job, ops);
    if (!connected) return connected.error();
    return Connected{std::make_shared<const model::ModelGraph>(*std::move(connected)),
                     "family: " + std::string(family->name)};
  }
  core::Result<Chained> chained = chain(job, ops);
  if (!chained) return chained.error();
  std::string edges = connect_detail::described(*chained);
  return Connected{std::make_shared<const model::ModelGraph>(std::move(chained->graph)), std::move(edges)};
}

}  // namespace gpumem::connect
