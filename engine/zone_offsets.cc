#include "engine/zone_offsets.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "base/mutex.h"
#include "duckdb/common/types/timestamp.hpp"
#include "duckdb/execution/expression_executor.hpp"
#include "duckdb/function/function_binder.hpp"
#include "duckdb/main/connection.hpp"
#include "duckdb/main/database.hpp"
#include "duckdb/planner/expression/bound_constant_expression.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"
#include "duckdb/storage/object_cache.hpp"

namespace roost {

using duckdb::LogicalType;

namespace {

constexpr int64_t kMicrosPerSecond = 1'000'000;
constexpr int64_t kMicrosPerDay = 86'400 * kMicrosPerSecond;
// ICU can't compute local times in the last days of the range, at either end; there the offset is that of the nearest
// day it can.
constexpr int64_t kFirstMicros = -9'223'372'022'400'000'000 + 2 * kMicrosPerDay;
constexpr int64_t kLastMicros = INT64_MAX - 2 * kMicrosPerDay;
constexpr int64_t kDaysPerPage = 512;
constexpr size_t kPageSlots = 64;
// Zones and pages worth keeping for the next statement; pages are 12 KiB.
constexpr size_t kMaxIdleZones = 64;
constexpr size_t kMaxIdlePages = 256;

int64_t floor_divide(int64_t value, int64_t by) { return value / by - (value % by < 0 ? 1 : 0); }

class UtcOffsets final : public ZoneOffsets {
public:
    int32_t seconds_east(int64_t) override { return 0; }
};

// timezone('zone', t) gives the local time; its difference to t is the offset. Holds nothing of the context that bound
// it.
class IcuZone {
public:
    IcuZone(const std::string &zone, duckdb::DatabaseInstance &db) : slots_{} {
        // The caller's context may be in the middle of a statement.
        duckdb::Connection connection(db);
        auto &context = *connection.context;
        context.RunFunctionInTransaction([&] {
            duckdb::vector<duckdb::unique_ptr<duckdb::Expression>> arguments;
            arguments.push_back(duckdb::make_uniq<duckdb::BoundConstantExpression>(duckdb::Value(zone)));
            arguments.push_back(duckdb::make_uniq<duckdb::BoundReferenceExpression>(LogicalType::TIMESTAMP_TZ, 0));
            duckdb::FunctionBinder binder(context);
            duckdb::ErrorData error;
            local_time_ = binder.BindScalarFunction(DEFAULT_SCHEMA, "timezone", std::move(arguments), error);
            if (!local_time_) error.Throw();
        });
        input_.Initialize(duckdb::Allocator::DefaultAllocator(), {LogicalType::TIMESTAMP_TZ});
        enter(context);
        evaluate(0, 0);  // an unknown zone shows here
        leave();
    }

    // Between the two, and only there, offsets can be asked for.
    void enter(duckdb::ClientContext &context) {
        executor_ = duckdb::make_uniq<duckdb::ExpressionExecutor>(context, *local_time_);
    }
    void leave() { executor_.reset(); }

    int32_t seconds_east(int64_t micros) {
        const int64_t day = floor_divide(micros, kMicrosPerDay);
        Day &known = page_of(floor_divide(day, kDaysPerPage))[static_cast<size_t>(day & (kDaysPerPage - 1))];
        if (known.state == Day::unknown) known = split(day);
        if (known.state == Day::irregular) return evaluate(micros, micros).first;
        return micros - day * kMicrosPerDay < known.change_micros ? known.before : known.after;
    }

    size_t pages() const { return pages_.size(); }

private:
    // A day of UTC with at most one change of offset. Without one, `after` counts from its start.
    struct Day {
        enum State : uint8_t { unknown = 0, regular, irregular };
        int64_t change_micros = 0;  // since the day's start
        int32_t before = 0;
        int32_t after : 24 = 0;
        State state : 8 = unknown;
    };
    using Page = std::array<Day, kDaysPerPage>;
    struct Slot {
        int64_t number;
        Page *page;
    };

    Page &page_of(int64_t number) {
        Slot &slot = slots_[static_cast<size_t>(number) % kPageSlots];
        if (!slot.page || slot.number != number) {
            auto &page = pages_[number];
            if (!page) page = std::make_unique<Page>();
            slot = {number, page.get()};
        }
        return *slot.page;
    }

    // The offsets at two instants.
    std::pair<int32_t, int32_t> evaluate(int64_t first, int64_t second) {
        const int64_t instants[2] = {std::clamp(first, kFirstMicros, kLastMicros),
                                     std::clamp(second, kFirstMicros, kLastMicros)};
        input_.Reset();
        auto *values = duckdb::FlatVector::GetData<duckdb::timestamp_t>(input_.data[0]);
        values[0] = duckdb::timestamp_t(instants[0]);
        values[1] = duckdb::timestamp_t(instants[1]);
        input_.SetCardinality(2);
        duckdb::Vector result(LogicalType::TIMESTAMP);
        executor_->ExecuteExpression(input_, result);
        result.Flatten(2);
        const auto *local = duckdb::FlatVector::GetData<duckdb::timestamp_t>(result);
        const auto offset = [&](int i) {
            return static_cast<int32_t>((static_cast<__int128>(local[i].value) - instants[i]) / kMicrosPerSecond);
        };
        return {offset(0), offset(1)};
    }

    Day split(int64_t day) {
        // The first and the last day of the range are cut, not whole.
        const int64_t start = day < kFirstMicros / kMicrosPerDay
                                  ? kFirstMicros
                                  : std::min(day * kMicrosPerDay, kLastMicros - kMicrosPerDay);
        const auto [before, after] = evaluate(start, start + kMicrosPerDay - 1);
        Day out{0, before, after, Day::regular};
        if (before == after) return out;
        int64_t low = 0, high = kMicrosPerDay - 1;
        while (high - low > 1) {
            const int64_t middle = low + (high - low) / 2;
            const int32_t offset = evaluate(start + middle, start + middle).first;
            if (offset != before && offset != after) out.state = Day::irregular;
            (offset == before ? low : high) = middle;
        }
        out.change_micros = high;
        return out;
    }

    duckdb::unique_ptr<duckdb::Expression> local_time_;
    duckdb::unique_ptr<duckdb::ExpressionExecutor> executor_;
    duckdb::DataChunk input_;
    std::unordered_map<int64_t, std::unique_ptr<Page>> pages_;
    std::array<Slot, kPageSlots> slots_;
};

// Zones at rest between statements, kept by the instance that knows them. Thread-safe.
class IdleZones final : public duckdb::ObjectCacheEntry {
public:
    static std::string ObjectType() { return "roost_time_zones"; }
    std::string GetObjectType() override { return ObjectType(); }
    // Invalid: never evicted; the limits above bound it.
    duckdb::optional_idx GetEstimatedCacheMemory() const override { return {}; }

    std::unique_ptr<IcuZone> take(const std::string &name) {
        MutexLock lock(mutex_);
        const auto found = zones_.find(name);
        if (found == zones_.end()) return nullptr;
        auto zone = std::move(found->second);
        zones_.erase(found);
        return zone;
    }
    void put(const std::string &name, std::unique_ptr<IcuZone> zone) {
        if (zone->pages() > kMaxIdlePages) return;
        MutexLock lock(mutex_);
        if (zones_.size() < kMaxIdleZones) zones_.emplace(name, std::move(zone));
    }

private:
    Mutex mutex_;
    std::multimap<std::string, std::unique_ptr<IcuZone>> zones_ ROOST_GUARDED_BY(mutex_);
};

class IcuOffsets final : public ZoneOffsets {
public:
    IcuOffsets(std::string name, duckdb::ClientContext &context)
        : name_(std::move(name)),
          idle_(context.db->GetObjectCache().GetOrCreate<IdleZones>(IdleZones::ObjectType())),
          zone_(idle_->take(name_)) {
        if (!zone_) zone_ = std::make_unique<IcuZone>(name_, *context.db);
        zone_->enter(context);
    }
    ~IcuOffsets() override {
        zone_->leave();
        idle_->put(name_, std::move(zone_));
    }
    int32_t seconds_east(int64_t micros) override { return zone_->seconds_east(micros); }

private:
    std::string name_;
    duckdb::shared_ptr<IdleZones> idle_;
    std::unique_ptr<IcuZone> zone_;
};

bool is_utc(const std::string &zone) {
    const std::string lower = duckdb::StringUtil::Lower(zone);
    for (const char *name : {"", "utc", "etc/utc", "gmt", "etc/gmt", "z", "zulu", "uct", "universal"}) {
        if (lower == name) return true;
    }
    return false;
}

}  // namespace

std::unique_ptr<ZoneOffsets> ZoneOffsets::utc() { return std::make_unique<UtcOffsets>(); }

Result<std::unique_ptr<ZoneOffsets>> ZoneOffsets::make(const std::string &time_zone, duckdb::ClientContext &context) {
    if (is_utc(time_zone)) return utc();
    try {
        return std::unique_ptr<ZoneOffsets>(std::make_unique<IcuOffsets>(time_zone, context));
    } catch (const std::exception &e) {
        const duckdb::ErrorData error(e);
        return Status(Code::invalid_argument, "time zone \"" + time_zone + "\" is not usable")
            .with_detail(error.RawMessage());
    }
}

}  // namespace roost
