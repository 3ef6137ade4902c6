#include "engine/lake_statistics.h"

#include <atomic>

#include "duckdb/function/partition_stats.hpp"
#include "duckdb/function/table_function.hpp"

namespace roost {

namespace {

// DuckLake's own, the same for all of its scans.
std::atomic<duckdb::table_function_get_partition_stats_t> partition_statistics{nullptr};

// COUNT(*) is answered from these, MIN and MAX are not.
duckdb::vector<duckdb::PartitionStatistics> count_rows(duckdb::ClientContext &context,
                                                       duckdb::GetPartitionStatsInput &input) {
    auto partitions = partition_statistics.load()(context, input);
    for (auto &partition : partitions) partition.partition_row_group = nullptr;
    return partitions;
}

}  // namespace

void tell_no_bounds(duckdb::TableFunction &scan) {
    scan.statistics = nullptr;
    if (!scan.get_partition_stats || scan.get_partition_stats == count_rows) return;
    partition_statistics.store(scan.get_partition_stats);
    scan.get_partition_stats = count_rows;
}

}  // namespace roost
