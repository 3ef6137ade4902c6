#include "routing/table_uses.h"

#include <algorithm>

namespace roost::routing {
namespace {

constexpr unsigned kViewDepthMax = 64;
// More tables than anybody joins; a view that unfolds into more is placed by these.
constexpr size_t kUsesMax = 256;

}  // namespace

uint64_t TableEpochs::epoch(const std::string &catalog, const LakeState &state, const TableState &table) {
    const auto key = std::pair(catalog, table.id());
    const auto found = seen_.find(key);
    if (found != seen_.end() && found->second.data.lock() == table.data) return found->second.epoch;
    // Forgotten ones are taken to have changed just now: a home that is called stale too soon loses nothing.
    if (found == seen_.end() && seen_.size() >= kTablesMax) seen_.clear();
    return (seen_[key] = {table.data, state.snapshot().id}).epoch;
}

class TableUseFinder {
public:
    TableUseFinder(const LakeStates &states, const ParseView &parse, TableEpochs &epochs)
        : states_(states), parse_(parse), epochs_(epochs) {}

    void look(const sql::TableName &name, const NameScope &scope, bool written, unsigned depth) {
        if (!name.catalog.empty()) {
            look_in(name.catalog, name.schema, name.table, written, depth);
        } else if (!name.schema.empty()) {
            // A schema of the active catalog, or a catalog whose main schema is meant.
            if (!look_in(scope.catalog, name.schema, name.table, written, depth)) {
                look_in(name.schema, "main", name.table, written, depth);
            }
        } else {
            for (const std::string &schema : scope.search_path) {
                if (look_in(scope.catalog, schema, name.table, written, depth)) return;
            }
        }
    }
    FoundTables take() { return std::move(found_); }

private:
    // False: there is no such table or view.
    bool look_in(const std::string &catalog, const std::string &schema, const std::string &name, bool written,
                 unsigned depth) {
        const auto known = std::ranges::find_if(
            states_, [&](const auto &each) { return each.second && folded(each.first) == folded(catalog); });
        if (known == states_.end()) return false;
        // Postgres' word for it.
        const std::string real_schema = folded(schema) == "public" ? "main" : schema;
        if (const LakeView *view = known->second->view(real_schema, name)) {
            expand(*view, known->first, real_schema, depth);
            return true;
        }
        const auto table = known->second->table(real_schema, name);
        if (table && table->data) add(known->first, *known->second, table, written);
        return table != nullptr;
    }

    void expand(const LakeView &view, const std::string &catalog, const std::string &schema, unsigned depth) {
        if (depth >= kViewDepthMax || found_.uses.size() >= kUsesMax) return;
        const auto parsed = parse_(view.sql);
        if (!parsed.ok()) return;  // the engine says what is wrong with it
        const NameScope inside{catalog, {schema, "main"}};
        for (const sql::Statement &body : *parsed) {
            for (const sql::TableName &name : body.reads) look(name, inside, false, depth + 1);
        }
    }

    void add(const std::string &catalog, const LakeState &state, const std::shared_ptr<const TableState> &table,
             bool written) {
        const uint64_t catalog_id = placement::catalog_id(catalog);
        for (placement::TableUse &use : found_.uses) {
            if (use.catalog != catalog_id || use.table != table->id()) continue;
            use.written = use.written || written;
            return;
        }
        if (found_.uses.size() >= kUsesMax) return;
        const SegmentList &segments = table->data->segments;
        placement::TableUse use;
        use.catalog = catalog_id;
        use.table = table->id();
        use.epoch = epochs_.epoch(catalog, state, *table);
        use.bytes = segments.file_size_bytes() + segments.delete_file_size_bytes();
        use.written = written;
        found_.sources_.push_back(std::make_unique<placement::SegmentSource>(
            [table](const std::function<void(const placement::SegmentBytes &)> &see) {
                table->data->segments.for_each_without_path([&](const Segment &segment) {
                    see({segment.data_file_id, segment.file_size_bytes});
                });
            }));
        use.segments = found_.sources_.back().get();
        found_.uses.push_back(use);
    }

    const LakeStates &states_;
    const ParseView &parse_;
    TableEpochs &epochs_;
    FoundTables found_;
};

FoundTables find_table_uses(const sql::Statement &statement, const NameScope &scope, const LakeStates &states,
                            const ParseView &parse, TableEpochs &epochs) {
    NameScope named = scope;
    if (named.search_path.empty()) named.search_path = {"main"};
    TableUseFinder finder(states, parse, epochs);
    for (const sql::TableName &name : statement.reads) finder.look(name, named, false, 0);
    for (const sql::TableName &name : statement.writes) finder.look(name, named, true, 0);
    return finder.take();
}

}  // namespace roost::routing
