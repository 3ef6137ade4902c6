#include "lake/bounds.h"

#include <algorithm>

#include "lake/stats_value.h"

namespace roost {

namespace {

const LakeColumn *find_column(const std::vector<LakeColumn> &columns, uint64_t id) {
    for (const LakeColumn &column : columns) {
        if (column.id == id) return &column;
        if (const LakeColumn *child = find_column(column.children, id)) return child;
    }
    return nullptr;
}

// One column of one table, seen file by file.
class Holder {
public:
    Holder(const LakeColumn &column, const TableColumnStats &stats)
        : column_(column), type_(column.type), held_(stats) {
        if (stats.min) min_ = type_.parse(*stats.min);
        if (stats.max) max_ = type_.parse(*stats.max);
        // What can't be compared can't be held against anything.
        if (!type_.known() || (stats.min && !min_) || (stats.max && !max_)) drop_bounds();
    }

    void see(const Segment &file) {
        if (file.record_count == 0) return;
        const SegmentStats *own = file.stats_of(column_.id);
        if (!own && file.begin_snapshot < column_.begin_snapshot && !column_.initial_default) {
            nulls(std::nullopt);  // the column came later, and is NULL there
            return;
        }
        nulls(own ? own->null_count : std::nullopt);
        if (held_.contains_nan == false && (!own || own->contains_nan != false)) held_.contains_nan.reset();
        if (own && own->null_count && *own->null_count >= file.record_count) return;  // no value
        see_bound(own ? own->min : std::nullopt, min_, low_, -1);
        see_bound(own ? own->max : std::nullopt, max_, high_, 1);
    }

    // `exact`: DuckLake takes the bounds for values that are there.
    TableColumnStats held(bool exact) {
        if (exact && !(equals(min_, low_) && equals(max_, high_))) drop_bounds();
        return held_;
    }

private:
    using Value = std::optional<StatsType::Value>;

    void drop_bounds() {
        held_.min.reset();
        held_.max.reset();
        min_.reset();
        max_.reset();
    }
    void nulls(const std::optional<uint64_t> &count) {
        if (held_.contains_null == false && count != 0) held_.contains_null.reset();
    }
    // `sign`: 1 for the upper bound.
    void see_bound(const std::optional<std::string_view> &text, const Value &bound, Value &outermost, int sign) {
        if (!bound) return;
        const Value own = text ? type_.parse(*text) : std::nullopt;
        if (!own || sign * type_.compare(*own, *bound) > 0) return drop_bounds();
        if (own->text.data() == nullptr) {
            if (!outermost || sign * type_.compare(*own, *outermost) > 0) outermost = own;
            return;
        }
        if (outermost && sign * type_.compare(*own, *outermost) <= 0) return;
        std::string &kept = sign > 0 ? high_text_ : low_text_;  // a file's text goes with the file
        kept = *text;
        outermost = type_.parse(kept);
    }
    bool equals(const Value &bound, const Value &outermost) const {
        if (!bound || !outermost) return !bound;
        return type_.compare(*bound, *outermost) == 0;
    }

    const LakeColumn &column_;
    const StatsType type_;
    TableColumnStats held_;
    Value min_, max_, low_, high_;  // of the table; of its files together
    std::string low_text_, high_text_;
};

}  // namespace

TableColumnStats held_stats(const TableState &table, const TableColumnStats &stats) {
    const LakeColumn *column = find_column(table.definition->columns, stats.column_id);
    TableColumnStats nothing;
    nothing.column_id = stats.column_id;
    if (!column) return nothing;
    Holder holder(*column, stats);
    table.data->segments.for_each_without_path([&](const Segment &file) { holder.see(file); });
    const bool exact = table.data->stats && table.data->stats->record_count == table.data->live_rows() &&
                       table.data->inlined_rows() == 0;
    return holder.held(exact);
}

}  // namespace roost
