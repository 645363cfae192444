#include "simulation_report.hpp"

namespace gpumem::cli {
Result<std::string> to_svg(const SimulationReport&) { return std::string(); }
}  // namespace gpumem::cli
