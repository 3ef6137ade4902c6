#include "routing/table_uses.h"

#include <algorithm>

namespace roost::routing {
namespace {

constexpr unsigned kViewDepthMax = 64;
// More tables than anybody joins; a view that unfolds into more is placed by these.
constexpr size_t kUsesMax = 256;
// Bodies that are looked into: macros that call each other would multiply.
constexpr size_t kExpandedMax = 1'000;

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

    void look(const sql::Statement &statement, const NameScope &scope, unsigned depth) {
        for (const sql::TableName &name : statement.reads) look(name, scope, false, depth);
        for (const sql::TableName &name : statement.writes) look(name, scope, true, depth);
        for (const sql::TableName &name : statement.calls) call(name, scope, depth);
    }
    FoundTables take() { return std::move(found_); }

private:
    void look(const sql::TableName &name, const NameScope &scope, bool written, unsigned depth) {
        find(name, scope, [&](const std::string &catalog, const std::string &schema) {
            return look_in(catalog, schema, name.table, written, depth);
        });
    }
    void call(const sql::TableName &name, const NameScope &scope, unsigned depth) {
        find(name, scope, [&](const std::string &catalog, const std::string &schema) {
            return call_in(catalog, schema, name.table, depth);
        });
    }
    // Where a name may be, in the engine's order, until `is_there`(catalog, schema) says that it is.
    template <class IsThere>
    static void find(const sql::TableName &name, const NameScope &scope, const IsThere &is_there) {
        if (!name.catalog.empty()) {
            is_there(name.catalog, name.schema);
        } else if (!name.schema.empty()) {
            // A schema of the active catalog, or a catalog whose main schema is meant.
            if (!is_there(scope.catalog, name.schema)) is_there(name.schema, "main");
        } else {
            for (const std::string &schema : scope.search_path) {
                if (is_there(scope.catalog, schema)) return;
            }
        }
    }

    // Postgres' word for main.
    static std::string real_schema(const std::string &schema) { return folded(schema) == "public" ? "main" : schema; }
    LakeStates::const_iterator state_of(const std::string &catalog) const {
        return std::ranges::find_if(
            states_, [&](const auto &each) { return each.second && folded(each.first) == folded(catalog); });
    }

    // False: there is no such macro.
    bool call_in(const std::string &catalog, const std::string &schema, const std::string &name, unsigned depth) {
        const auto known = state_of(catalog);
        if (known == states_.end()) return false;
        const LakeMacro *macro = known->second->macro(real_schema(schema), name);
        if (macro == nullptr) return false;
        // Which of them is meant the engine knows; they seldom read other tables.
        for (const MacroImplementation &each : macro->implementations) {
            expand(each.type == "table" ? each.sql : "SELECT " + each.sql, known->first, real_schema(schema), depth);
        }
        return true;
    }

    // False: there is no such table or view.
    bool look_in(const std::string &catalog, const std::string &schema, const std::string &name, bool written,
                 unsigned depth) {
        const auto known = state_of(catalog);
        if (known == states_.end()) return false;
        if (const LakeView *view = known->second->view(real_schema(schema), name)) {
            expand(view->sql, known->first, real_schema(schema), depth);
            return true;
        }
        const auto table = known->second->table(real_schema(schema), name);
        if (table && table->data) add(known->first, *known->second, table, written);
        return table != nullptr;
    }

    // The text of a view or a macro.
    void expand(const std::string &text, const std::string &catalog, const std::string &schema, unsigned depth) {
        if (depth >= kViewDepthMax || found_.uses.size() >= kUsesMax || ++expanded_ > kExpandedMax) return;
        const auto parsed = parse_(text);
        if (!parsed.ok()) return;  // the engine says what is wrong with it
        const NameScope inside{catalog, {schema, "main"}};
        for (const sql::Statement &body : *parsed) look(body, inside, depth + 1);
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
    size_t expanded_ = 0;
};

FoundTables find_table_uses(const sql::Statement &statement, const NameScope &scope, const LakeStates &states,
                            const ParseView &parse, TableEpochs &epochs) {
    NameScope named = scope;
    if (named.search_path.empty()) named.search_path = {"main"};
    TableUseFinder finder(states, parse, epochs);
    finder.look(statement, named, 0);
    return finder.take();
}

}  // namespace roost::routing
