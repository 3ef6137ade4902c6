// Tables that can't be joined as DuckDB 1.5.5 would: of the build side's keys it makes a bloom filter for the files of
// the other side, and where those have another type than their column (ALTER … TYPE) reading them fails with "Can't
// convert TableFilterType (BLOOM_FILTER)". Nothing tells before; so the tables of a statement that failed are
// remembered, and its next run goes without such filters. Thread-safe. One for all instances of a catalog.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace duckdb {
class ErrorData;
class LogicalOperator;
}  // namespace duckdb

namespace roost {

class AlteredTables {
public:
    // Of an optimised plan: it makes no bloom filter where it reads a remembered table. Returns the tables of the lake
    // that are behind the filters that stay.
    std::vector<std::string> spare(duckdb::LogicalOperator &plan) const ROOST_EXCLUDES(mutex_);
    // `tables`: what spare() said of the plan that failed. True: that was the failure, and the statement can be run
    // again.
    bool remember(const duckdb::ErrorData &error, const std::vector<std::string> &tables) ROOST_EXCLUDES(mutex_);

private:
    static constexpr size_t kTablesMax = 10'000;  // then it begins anew

    mutable Mutex mutex_;
    std::set<std::string> tables_ ROOST_GUARDED_BY(mutex_);  // catalog.schema.table
};

}  // namespace roost
