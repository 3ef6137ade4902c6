#include "engine/zone_offsets.h"

#include <algorithm>

#include "duckdb/common/types/timestamp.hpp"
#include "duckdb/execution/expression_executor.hpp"
#include "duckdb/function/function_binder.hpp"
#include "duckdb/main/connection.hpp"
#include "duckdb/main/database.hpp"
#include "duckdb/planner/expression/bound_constant_expression.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"

namespace roost {

using duckdb::LogicalType;

namespace {

constexpr int64_t kMicrosPerSecond = 1'000'000;
constexpr int64_t kMicrosPerDay = 86'400 * kMicrosPerSecond;
// ICU can't compute local times in the last days of the range, at either end; there the offset is that of the nearest
// day it can.
constexpr int64_t kFirstMicros = -9'223'372'022'400'000'000 + 2 * kMicrosPerDay;
constexpr int64_t kLastMicros = INT64_MAX - 2 * kMicrosPerDay;

class UtcOffsets final : public ZoneOffsets {
public:
    int32_t seconds_east(int64_t) override { return 0; }
};

// timezone('zone', t) gives the local time; its difference to t is the offset.
class IcuOffsets final : public ZoneOffsets {
public:
    IcuOffsets(std::string zone, duckdb::DatabaseInstance &db) : connection_(db) { bind(std::move(zone)); }

    int32_t seconds_east(int64_t micros) override {
        const int64_t day = micros / kMicrosPerDay - (micros % kMicrosPerDay < 0 ? 1 : 0);
        if (day != last_day_) {
            const auto found = days_.find(day);
            last_ = found != days_.end() ? found->second : days_.emplace(day, split(day)).first->second;
            last_day_ = day;
        }
        if (last_.irregular) return evaluate(micros);
        return micros < last_.change ? last_.before : last_.after;
    }

private:
    // A day with at most one change of offset, at `change` (or none: then the two are equal).
    struct Day {
        int64_t change = INT64_MIN;
        int32_t before = 0;
        int32_t after = 0;
        bool irregular = false;
    };

    void bind(std::string zone) {
        connection_.context->RunFunctionInTransaction([&] {
            duckdb::vector<duckdb::unique_ptr<duckdb::Expression>> arguments;
            arguments.push_back(duckdb::make_uniq<duckdb::BoundConstantExpression>(duckdb::Value(std::move(zone))));
            arguments.push_back(duckdb::make_uniq<duckdb::BoundReferenceExpression>(LogicalType::TIMESTAMP_TZ, 0));
            duckdb::FunctionBinder binder(*connection_.context);
            duckdb::ErrorData error;
            local_time_ = binder.BindScalarFunction(DEFAULT_SCHEMA, "timezone", std::move(arguments), error);
            if (!local_time_) error.Throw();
        });
        input_.Initialize(duckdb::Allocator::DefaultAllocator(), {LogicalType::TIMESTAMP_TZ});
        executor_ = duckdb::make_uniq<duckdb::ExpressionExecutor>(*connection_.context, *local_time_);
        evaluate(0);  // an unknown zone shows here
    }

    int32_t evaluate(int64_t micros) {
        micros = std::clamp(micros, kFirstMicros, kLastMicros);
        input_.Reset();
        duckdb::FlatVector::GetData<duckdb::timestamp_t>(input_.data[0])[0] = duckdb::timestamp_t(micros);
        input_.SetCardinality(1);
        duckdb::Vector result(LogicalType::TIMESTAMP);
        executor_->ExecuteExpression(input_, result);
        result.Flatten(1);
        if (!duckdb::FlatVector::Validity(result).RowIsValid(0)) return 0;
        const int64_t local = duckdb::FlatVector::GetData<duckdb::timestamp_t>(result)[0].value;
        return static_cast<int32_t>((static_cast<__int128>(local) - micros) / kMicrosPerSecond);
    }

    Day split(int64_t day) {
        // The first and the last day of the range are cut, not whole.
        int64_t low = day < kFirstMicros / kMicrosPerDay ? kFirstMicros : std::min(day * kMicrosPerDay, kLastMicros);
        int64_t high = std::min(low, kLastMicros - kMicrosPerDay) + kMicrosPerDay - 1;
        Day out;
        out.before = evaluate(low);
        out.after = evaluate(high);
        if (out.before == out.after) return out;
        while (high - low > 1) {
            const int64_t middle = low + (high - low) / 2;
            const int32_t offset = evaluate(middle);
            out.irregular = out.irregular || (offset != out.before && offset != out.after);
            (offset == out.before ? low : high) = middle;
        }
        out.change = high;
        return out;
    }

    duckdb::Connection connection_;
    duckdb::unique_ptr<duckdb::Expression> local_time_;
    duckdb::unique_ptr<duckdb::ExpressionExecutor> executor_;
    duckdb::DataChunk input_;
    std::unordered_map<int64_t, Day> days_;
    int64_t last_day_ = INT64_MIN;
    Day last_;
};

bool is_utc(const std::string &zone) {
    const std::string lower = duckdb::StringUtil::Lower(zone);
    return lower.empty() || lower == "utc" || lower == "etc/utc" || lower == "gmt" || lower == "etc/gmt" ||
           lower == "z" || lower == "zulu" || lower == "uct" || lower == "universal";
}

}  // namespace

std::unique_ptr<ZoneOffsets> ZoneOffsets::utc() { return std::make_unique<UtcOffsets>(); }

Result<std::unique_ptr<ZoneOffsets>> ZoneOffsets::make(const std::string &time_zone, duckdb::DatabaseInstance &db) {
    if (is_utc(time_zone)) return utc();
    try {
        return std::unique_ptr<ZoneOffsets>(std::make_unique<IcuOffsets>(time_zone, db));
    } catch (const std::exception &e) {
        const duckdb::ErrorData error(e);
        return Status(Code::invalid_argument, "time zone \"" + time_zone + "\" is not usable")
            .with_detail(error.RawMessage());
    }
}

}  // namespace roost
