#include "lake/pruning.h"

#include <charconv>
#include <cstring>
#include <map>

#include "lake/stats_value.h"

namespace roost {

namespace {

// The predicates of one column that stand together under an AND or an OR, ready to be held against files.
struct Test {
    Predicate::Kind kind;
    Comparison comparison = Comparison::eq;
    std::vector<StatsType::Value> constants;
    // Says nothing about any file: a type or a constant that is not known, or a comparison with NaN.
    bool blind = false;
    std::vector<Test> children;
};

// Which statistics a test looks at: where one of them is not there, a file is kept.
struct Needs {
    bool min = false, max = false, nan = false, null_count = false, value_count = false;
};

std::optional<uint32_t> buckets_of(const std::string &transform) {
    if (!transform.starts_with("bucket(")) return std::nullopt;
    uint32_t count = 0;
    const auto parsed = std::from_chars(transform.data() + 7, transform.data() + transform.size(), count);
    return parsed.ec == std::errc() && count > 0 ? std::optional(count) : std::nullopt;
}

// One column's part of a conjunction.
class ColumnTest {
public:
    ColumnTest(const TableDefinition &table, uint64_t column_id)
        : column_(table.column_by_id(column_id)), column_id_(column_id), type_(column_ ? column_->type : "") {
        if (!table.partition || column_ == nullptr) return;
        for (const PartitionField &field : table.partition->fields) {
            const auto count = buckets_of(field.transform);
            if (field.column_id == column_id && count) {
                buckets_ = count;
                key_index_ = static_cast<uint32_t>(field.key_index);
                partition_id_ = table.partition->id;
            }
        }
    }
    void add(const Predicate &predicate) {
        tests_.push_back(make(predicate));
        if (buckets_) collect_buckets(predicate);
    }
    bool may_match(const Segment &segment) const {
        if (!in_bucket(segment)) return false;
        const SegmentStats *stats = segment.stats_of(column_id_);
        if (stats == nullptr || !type_.known()) return true;
        // The same text meant another number before the column became wider.
        if (type_.floating() && column_->begin_snapshot > segment.begin_snapshot) return true;
        Needs needs;
        bool seeing = false, nulls_wanted = false;
        for (const Test &test : tests_) {
            if (test.blind) continue;
            seeing = true;
            need(test, needs, nulls_wanted);
        }
        if (!seeing) return true;
        const bool no_values = stats->value_count && *stats->value_count == 0;
        if ((needs.min || needs.max) && no_values && !nulls_wanted) return false;
        if ((needs.min && !stats->min) || (needs.max && !stats->max) || (needs.nan && !stats->contains_nan) ||
            (needs.null_count && !stats->null_count) || (needs.value_count && !stats->value_count)) {
            return true;
        }
        const Range range(type_, *stats);
        for (const Test &test : tests_) {
            if (!test.blind && !holds(test, *stats, range)) return false;
        }
        return true;
    }

private:
    struct Range {
        Range(const StatsType &type, const SegmentStats &stats) {
            if (stats.min) min = type.parse(*stats.min);
            if (stats.max) max = type.parse(*stats.max);
        }
        std::optional<StatsType::Value> min, max;
    };

    Test make(const Predicate &predicate) const {
        Test test{.kind = predicate.kind, .comparison = predicate.comparison, .constants = {}, .children = {}};
        for (const std::string &text : predicate.constants) {
            const auto value = type_.parse(text);
            if (!value || (type_.is_nan(*value) && predicate.comparison != Comparison::eq)) {
                test.blind = true;
                return test;
            }
            test.constants.push_back(*value);
        }
        for (const Predicate &child : predicate.children) test.children.push_back(make(child));
        // Of an AND what says something is enough; an OR is as blind as any of its parts.
        if (predicate.kind == Predicate::Kind::all_of) {
            std::erase_if(test.children, [](const Test &child) { return child.blind; });
            test.blind = test.children.empty();
        } else if (predicate.kind == Predicate::Kind::any_of) {
            for (const Test &child : test.children) test.blind = test.blind || child.blind;
        }
        return test;
    }

    void need(const Test &test, Needs &needs, bool &nulls_wanted) const {
        switch (test.kind) {
            case Predicate::Kind::is_null:
                needs.null_count = nulls_wanted = true;
                return;
            case Predicate::Kind::is_not_null:
                needs.value_count = true;
                return;
            case Predicate::Kind::compare:
            case Predicate::Kind::in:
                for (const auto &constant : test.constants) need_constant(test.comparison, constant, needs);
                return;
            default:
                for (const Test &child : test.children) need(child, needs, nulls_wanted);
        }
    }
    void need_constant(Comparison comparison, const StatsType::Value &constant, Needs &needs) const {
        if (type_.is_nan(constant)) {
            needs.nan = true;
            return;
        }
        const bool above = comparison == Comparison::gt || comparison == Comparison::ge;
        const bool below = comparison == Comparison::lt || comparison == Comparison::le;
        needs.min = needs.min || !above;
        needs.max = needs.max || !below;
        needs.nan = needs.nan || (above && type_.floating());
    }

    bool holds(const Test &test, const SegmentStats &stats, const Range &range) const {
        switch (test.kind) {
            case Predicate::Kind::is_null:
                return *stats.null_count > 0;
            case Predicate::Kind::is_not_null:
                return *stats.value_count > 0;
            case Predicate::Kind::compare:
            case Predicate::Kind::in:
                for (const auto &constant : test.constants) {
                    if (holds_constant(test.comparison, constant, stats, range)) return true;
                }
                return false;
            case Predicate::Kind::all_of:
                for (const Test &child : test.children) {
                    if (!holds(child, stats, range)) return false;
                }
                return true;
            case Predicate::Kind::any_of:
                for (const Test &child : test.children) {
                    if (holds(child, stats, range)) return true;
                }
                return false;
        }
        return true;
    }
    bool holds_constant(Comparison comparison, const StatsType::Value &constant, const SegmentStats &stats,
                        const Range &range) const {
        if (type_.is_nan(constant)) return *stats.contains_nan;
        const bool above = comparison == Comparison::gt || comparison == Comparison::ge;
        // NaN is bigger than anything.
        if (above && type_.floating() && *stats.contains_nan) return true;
        // Statistics that can't be read say nothing.
        const bool needs_min = !above, needs_max = comparison != Comparison::lt && comparison != Comparison::le;
        if ((needs_min && !range.min) || (needs_max && !range.max)) return true;
        const int to_min = needs_min ? type_.compare(*range.min, constant) : 0;
        const int to_max = needs_max ? type_.compare(*range.max, constant) : 0;
        switch (comparison) {
            case Comparison::eq:
                return to_min <= 0 && to_max >= 0;
            case Comparison::ne:
                return !(to_min == 0 && to_max == 0);
            case Comparison::lt:
                return to_min < 0;
            case Comparison::le:
                return to_min <= 0;
            case Comparison::gt:
                return to_max > 0;
            case Comparison::ge:
                return to_max >= 0;
        }
        return true;
    }

    // Buckets of the values that the column is required to be one of.
    void collect_buckets(const Predicate &predicate) {
        const bool equals = predicate.kind == Predicate::Kind::in ||
                            (predicate.kind == Predicate::Kind::compare && predicate.comparison == Comparison::eq);
        if (predicate.kind == Predicate::Kind::all_of) {
            for (const Predicate &child : predicate.children) collect_buckets(child);
        }
        if (!equals) return;
        std::vector<std::string> wanted;
        for (const std::string &constant : predicate.constants) {
            const auto bucket = bucket_of(column_->type, constant, *buckets_);
            if (!bucket) return;
            wanted.push_back(std::to_string(*bucket));
        }
        bucket_values_.push_back(std::move(wanted));
    }
    bool in_bucket(const Segment &segment) const {
        if (bucket_values_.empty() || segment.partition_id != partition_id_) return true;
        for (const PartitionValue &value : segment.partition_values) {
            if (value.key_index != key_index_ || !value.value) continue;
            for (const auto &wanted : bucket_values_) {
                bool found = false;
                for (const std::string &each : wanted) found = found || each == *value.value;
                if (!found) return false;
            }
        }
        return true;
    }

    const LakeColumn *column_;
    uint64_t column_id_;
    StatsType type_;
    std::vector<Test> tests_;
    std::optional<uint32_t> buckets_;
    uint32_t key_index_ = 0;
    std::optional<uint64_t> partition_id_;
    std::vector<std::vector<std::string>> bucket_values_;
};

// The one column of a predicate, or nothing when it has several.
std::optional<uint64_t> only_column(const Predicate &predicate) {
    if (predicate.kind != Predicate::Kind::all_of && predicate.kind != Predicate::Kind::any_of) {
        return predicate.column_id;
    }
    std::optional<uint64_t> column;
    for (const Predicate &child : predicate.children) {
        const auto mine = only_column(child);
        if (!mine || (column && *column != *mine)) return std::nullopt;
        column = mine;
    }
    return column;
}

class Filter {
public:
    Filter(const TableDefinition &table, const Predicate &predicate) : any_(predicate.kind == Predicate::Kind::any_of) {
        if (const auto column = only_column(predicate)) {
            any_ = false;
            columns_.emplace_back(table, *column).add(predicate);
            return;
        }
        std::map<uint64_t, size_t> known;
        for (const Predicate &child : predicate.children) {
            const auto column = any_ ? std::nullopt : only_column(child);
            if (!column) {
                children_.emplace_back(table, child);
                continue;
            }
            const auto [at, added] = known.emplace(*column, columns_.size());
            if (added) columns_.emplace_back(table, *column);
            columns_[at->second].add(child);
        }
    }
    bool may_match(const Segment &segment) const {
        if (any_) {
            for (const Filter &child : children_) {
                if (child.may_match(segment)) return true;
            }
            return false;
        }
        for (const ColumnTest &column : columns_) {
            if (!column.may_match(segment)) return false;
        }
        for (const Filter &child : children_) {
            if (!child.may_match(segment)) return false;
        }
        return true;
    }

private:
    bool any_;
    std::vector<ColumnTest> columns_;
    std::vector<Filter> children_;
};

uint32_t murmur3(const unsigned char *data, size_t size) {
    constexpr uint32_t kFirst = 0xcc9e2d51, kSecond = 0x1b873593;
    uint32_t hash = 0;
    const auto mixed = [&](uint32_t k) {
        k *= kFirst;
        k = k << 15 | k >> 17;
        return k * kSecond;
    };
    size_t at = 0;
    for (; at + 4 <= size; at += 4) {
        uint32_t k = 0;
        std::memcpy(&k, data + at, 4);
        hash ^= mixed(k);
        hash = hash << 13 | hash >> 19;
        hash = hash * 5 + 0xe6546b64;
    }
    uint32_t tail = 0;
    for (size_t i = size; i > at; i--) tail = tail << 8 | data[i - 1];
    if (size > at) hash ^= mixed(tail);
    hash ^= static_cast<uint32_t>(size);
    hash ^= hash >> 16;
    hash *= 0x85ebca6b;
    hash ^= hash >> 13;
    hash *= 0xc2b2ae35;
    return hash ^ hash >> 16;
}

template <class T>
uint32_t murmur3_of(T value) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    return murmur3(bytes, sizeof(T));
}

}  // namespace

std::optional<uint32_t> bucket_of(std::string_view type_name, std::string_view text, uint32_t buckets) {
    using Kind = StatsType::Kind;
    const StatsType type(type_name);
    const auto value = type.parse(text);
    if (!value || buckets == 0) return std::nullopt;
    uint32_t hash = 0;
    switch (type.kind_) {
        case Kind::boolean:
        case Kind::date:
        case Kind::time:
        case Kind::timestamp:
        case Kind::timestamptz:
            hash = murmur3_of(static_cast<int64_t>(value->number));
            break;
        case Kind::integer:
            // Unsigned and 128-bit numbers are hashed as text.
            if (type_name.starts_with("uint") || type.width_ > 64) {
                hash = murmur3(reinterpret_cast<const unsigned char *>(text.data()), text.size());
            } else {
                hash = murmur3_of(static_cast<int64_t>(value->number));
            }
            break;
        case Kind::decimal:
            if (type.width_ > 18) return std::nullopt;
            hash = murmur3_of(static_cast<int64_t>(value->number));
            break;
        case Kind::float32:
        case Kind::float64:
            hash = murmur3_of(value->real == 0 ? 0.0 : value->real);
            break;
        case Kind::text:
            if (folded(type_name) == "uuid") return std::nullopt;
            hash = murmur3(reinterpret_cast<const unsigned char *>(text.data()), text.size());
            break;
        default:
            return std::nullopt;
    }
    return (hash & 0x7fffffff) % buckets;
}

PrunedSegments prune(const TableState &table, const Predicate &predicate) {
    const Filter filter(*table.definition, predicate);
    PrunedSegments result;
    table.data->segments.for_each_without_path([&](const Segment &segment) {
        if (!filter.may_match(segment)) return;
        result.data_file_ids.push_back(segment.data_file_id);
        result.record_count += segment.record_count;
        result.file_size_bytes += segment.file_size_bytes;
    });
    return result;
}

Predicate Predicate::compare(uint64_t column_id, Comparison comparison, std::string constant) {
    return {.kind = Kind::compare,
            .column_id = column_id,
            .comparison = comparison,
            .constants = {std::move(constant)},
            .children = {}};
}
Predicate Predicate::in(uint64_t column_id, std::vector<std::string> constants) {
    return {.kind = Kind::in, .column_id = column_id, .constants = std::move(constants), .children = {}};
}
Predicate Predicate::between(uint64_t column_id, std::string low, std::string high) {
    return all_of(
        {compare(column_id, Comparison::ge, std::move(low)), compare(column_id, Comparison::le, std::move(high))});
}
Predicate Predicate::is_null(uint64_t column_id) {
    return {.kind = Kind::is_null, .column_id = column_id, .constants = {}, .children = {}};
}
Predicate Predicate::is_not_null(uint64_t column_id) {
    return {.kind = Kind::is_not_null, .column_id = column_id, .constants = {}, .children = {}};
}
Predicate Predicate::all_of(std::vector<Predicate> children) {
    return {.kind = Kind::all_of, .constants = {}, .children = std::move(children)};
}
Predicate Predicate::any_of(std::vector<Predicate> children) {
    return {.kind = Kind::any_of, .constants = {}, .children = std::move(children)};
}

}  // namespace roost
