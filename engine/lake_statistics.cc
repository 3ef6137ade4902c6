#include "engine/lake_statistics.h"

#include <atomic>

#include "duckdb/common/multi_file/multi_file_data.hpp"
#include "duckdb/common/multi_file/multi_file_function.hpp"
#include "duckdb/function/partition_stats.hpp"
#include "duckdb/function/table_function.hpp"
#include "duckdb/storage/statistics/array_stats.hpp"
#include "duckdb/storage/statistics/base_statistics.hpp"
#include "duckdb/storage/statistics/list_stats.hpp"
#include "duckdb/storage/statistics/struct_stats.hpp"
#include "duckdb/storage/storage_index.hpp"

namespace roost {

namespace {

using duckdb::BaseStatistics;
using duckdb::LogicalType;

// DuckLake's own, the same for all of its scans.
std::atomic<duckdb::table_statistics_t> column_statistics{nullptr};
std::atomic<duckdb::table_function_get_partition_stats_t> partition_statistics{nullptr};

// Children too: a field of a STRUCT can be altered.
bool fits(const BaseStatistics &statistics, const LogicalType &type) {
    if (statistics.GetType() != type) return false;
    switch (statistics.GetStatsType()) {
        case duckdb::StatisticsType::STRUCT_STATS: {
            const auto &fields = duckdb::StructType::GetChildTypes(type);
            for (duckdb::idx_t i = 0; i < fields.size(); ++i) {
                if (!fits(duckdb::StructStats::GetChildStats(statistics, i), fields[i].second)) return false;
            }
            return true;
        }
        case duckdb::StatisticsType::LIST_STATS:
            return fits(duckdb::ListStats::GetChildStats(statistics), duckdb::ListType::GetChildType(type));
        case duckdb::StatisticsType::ARRAY_STATS:
            return fits(duckdb::ArrayStats::GetChildStats(statistics), duckdb::ArrayType::GetChildType(type));
        default:
            return true;
    }
}

duckdb::unique_ptr<BaseStatistics> keep_if_fit(duckdb::unique_ptr<BaseStatistics> statistics,
                                               const duckdb::vector<LogicalType> &types, duckdb::column_t column) {
    if (!statistics || column >= types.size() || !fits(*statistics, types[column])) return nullptr;
    return statistics;
}

duckdb::unique_ptr<BaseStatistics> fitting_statistics(duckdb::ClientContext &context,
                                                      const duckdb::FunctionData *bind_data, duckdb::column_t column) {
    return keep_if_fit(column_statistics.load()(context, bind_data, column),
                       bind_data->Cast<duckdb::MultiFileBindData>().types, column);
}

class FittingRows final : public duckdb::PartitionRowGroup {
public:
    FittingRows(duckdb::shared_ptr<duckdb::PartitionRowGroup> rows, duckdb::vector<LogicalType> types)
        : rows_(std::move(rows)), types_(std::move(types)) {}

    duckdb::unique_ptr<BaseStatistics> GetColumnStatistics(const duckdb::StorageIndex &index) override {
        return keep_if_fit(rows_->GetColumnStatistics(index), types_, index.GetPrimaryIndex());
    }
    bool MinMaxIsExact(const BaseStatistics &statistics, const duckdb::StorageIndex &index) override {
        return rows_->MinMaxIsExact(statistics, index);
    }

private:
    const duckdb::shared_ptr<duckdb::PartitionRowGroup> rows_;
    const duckdb::vector<LogicalType> types_;
};

duckdb::vector<duckdb::PartitionStatistics> fitting_partitions(duckdb::ClientContext &context,
                                                               duckdb::GetPartitionStatsInput &input) {
    auto partitions = partition_statistics.load()(context, input);
    for (auto &partition : partitions) {
        if (!partition.partition_row_group) continue;
        partition.partition_row_group = duckdb::make_shared_ptr<FittingRows>(
            std::move(partition.partition_row_group), input.bind_data->Cast<duckdb::MultiFileBindData>().types);
    }
    return partitions;
}

}  // namespace

void distrust_statistics(duckdb::TableFunction &scan) {
    if (scan.statistics && scan.statistics != fitting_statistics) {
        column_statistics.store(scan.statistics);
        scan.statistics = fitting_statistics;
    }
    if (scan.get_partition_stats && scan.get_partition_stats != fitting_partitions) {
        partition_statistics.store(scan.get_partition_stats);
        scan.get_partition_stats = fitting_partitions;
    }
}

}  // namespace roost
