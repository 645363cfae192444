// The bodies of runs/, compiled once.
#include "gpumem/runs/impl/accuracy_inl.hpp"
#include "gpumem/runs/impl/gpumemnet_csv_inl.hpp"
#include "gpumem/runs/impl/gpumemnet_net_inl.hpp"
#include "gpumem/runs/impl/read_runs_inl.hpp"
#include "gpumem/runs/impl/runs_csv_inl.hpp"
#include "gpumem/runs/impl/summary_shelf_inl.hpp"
#include "gpumem/runs/impl/xmem_csv_inl.hpp"
