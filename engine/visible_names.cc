#include "engine/visible_names.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "duckdb/catalog/catalog.hpp"
#include "duckdb/catalog/catalog_entry/table_function_catalog_entry.hpp"
#include "duckdb/main/client_context_state.hpp"
#include "engine/failed_commit.h"
#include "sql/guard_names.h"

namespace roost {

namespace {

constexpr const char *kState = "roost_rights";
constexpr int kNone = -1;

struct RightsState : duckdb::ClientContextState {
    std::optional<Rights> rights;
};

// Where a function's rows name what they tell of.
struct NameFunction {
    const char *name;
    int database, schema, table;  // columns; kNone: the row is of a schema
};
// engine_grants_test holds these against what the engine says of its functions.
constexpr std::array<NameFunction, 9> kFunctions = {{{"duckdb_tables", 0, 2, 4},
                                                     {"duckdb_columns", 0, 2, 4},
                                                     {"duckdb_views", 0, 2, 4},
                                                     {"duckdb_constraints", 0, 2, 4},
                                                     {"duckdb_indexes", 0, 2, 6},
                                                     {"duckdb_schemas", 1, 3, kNone},
                                                     {"duckdb_sequences", 0, 2, kNone},
                                                     {"duckdb_types", 0, 2, kNone},
                                                     {"duckdb_functions", 0, 2, kNone}}};

// The engine's functions, the same for all instances of the process: a wrapper has no place for data of its own.
std::array<std::atomic<duckdb::table_function_t>, kFunctions.size()> originals;
std::array<std::atomic<duckdb::table_function_init_global_t>, kFunctions.size()> original_inits;

// `places`: where the function's columns stand in `rows`.
template <class Places>
bool may_see(const Rights *rights, const NameFunction &function, const Places &places, const duckdb::DataChunk &rows,
             duckdb::idx_t row) {
    const auto text = [&](int column) {
        const duckdb::Value value = rows.GetValue(places(column), row);
        return value.IsNull() ? std::string() : value.ToString();
    };
    const std::string database = text(function.database);
    if (database == SYSTEM_CATALOG || database == TEMP_CATALOG || database.empty()) return true;
    // DuckLake's own tables, under a name that nobody is to know.
    if (sql::is_metadata_catalog(database)) return false;
    if (!rights) return true;
    const CatalogRights &own = rights_in(*rights, database);
    const std::string schema = text(function.schema);
    if (function.table == kNone) return own.sees_schema(schema);
    return own.of_table(schema, text(function.table)) != Privilege::none;
}

// The rows that may be seen: how many, and which.
template <class Places>
duckdb::idx_t select_visible(const Rights *rights, const NameFunction &function, const Places &places,
                             const duckdb::DataChunk &rows, duckdb::SelectionVector &kept) {
    duckdb::idx_t count = 0;
    for (duckdb::idx_t row = 0; row < rows.size(); ++row) {
        if (may_see(rights, function, places, rows, row)) kept.set_index(count++, row);
    }
    return count;
}

template <size_t I>
void tell_visible(duckdb::ClientContext &context, duckdb::TableFunctionInput &input, duckdb::DataChunk &rows) {
    const duckdb::table_function_t original = originals[I].load();
    const Rights *rights = rights_of(context);
    for (;;) {
        original(context, input, rows);
        // DuckLake's connections see all there is.
        if (rows.size() == 0 || !is_ours(context)) return;
        duckdb::SelectionVector kept(rows.size());
        const auto same = [](int column) { return static_cast<duckdb::idx_t>(column); };
        const duckdb::idx_t count = select_visible(rights, kFunctions[I], same, rows, kept);
        if (count == rows.size()) return;
        // Nothing at all would say that there is no more.
        if (count > 0) {
            rows.Slice(kept, count);
            return;
        }
        rows.Reset();
    }
}

// Of a function that makes only the columns that are asked for: it is asked for those with names as well.
struct WiderScan : duckdb::GlobalTableFunctionState {
    duckdb::unique_ptr<duckdb::GlobalTableFunctionState> original;
    std::vector<duckdb::column_t> columns;  // that the function makes
    size_t wanted = 0;                      // of them that the statement asked for, the first ones
    duckdb::DataChunk rows;
    bool ready = false;

    duckdb::idx_t place_of(int column) const {
        const auto found = std::find(columns.begin(), columns.end(), static_cast<duckdb::column_t>(column));
        return static_cast<duckdb::idx_t>(found - columns.begin());
    }
};

template <size_t I>
duckdb::unique_ptr<duckdb::GlobalTableFunctionState> init_wider(duckdb::ClientContext &context,
                                                                duckdb::TableFunctionInitInput &input) {
    auto state = duckdb::make_uniq<WiderScan>();
    duckdb::vector<duckdb::ColumnIndex> indexes = input.column_indexes;
    state->wanted = indexes.size();
    for (const auto &index : indexes) state->columns.push_back(index.GetPrimaryIndex());
    for (const int column : {kFunctions[I].database, kFunctions[I].schema, kFunctions[I].table}) {
        if (column == kNone || state->place_of(column) < state->columns.size()) continue;
        indexes.emplace_back(static_cast<duckdb::idx_t>(column));
        state->columns.push_back(static_cast<duckdb::column_t>(column));
    }
    duckdb::TableFunctionInitInput wider(input.bind_data, indexes, input.projection_ids, input.filters,
                                         input.sample_options, input.op);
    state->original = original_inits[I].load()(context, wider);
    return state;
}

template <size_t I>
void tell_visible_wider(duckdb::ClientContext &context, duckdb::TableFunctionInput &input, duckdb::DataChunk &out) {
    auto &state = input.global_state->Cast<WiderScan>();
    if (!state.ready) {
        duckdb::vector<duckdb::LogicalType> types = out.GetTypes();
        types.resize(state.columns.size(), duckdb::LogicalType::VARCHAR);  // the names
        state.rows.Initialize(duckdb::Allocator::DefaultAllocator(), types);
        state.ready = true;
    }
    const Rights *rights = rights_of(context);
    const auto place = [&state](int column) { return state.place_of(column); };
    for (;;) {
        state.rows.Reset();
        duckdb::TableFunctionInput inner(input.bind_data, input.local_state, state.original.get());
        originals[I].load()(context, inner, state.rows);
        if (state.rows.size() == 0) return;
        duckdb::SelectionVector kept(state.rows.size());
        duckdb::idx_t count = state.rows.size();
        if (is_ours(context)) {
            count = select_visible(rights, kFunctions[I], place, state.rows, kept);
            if (count == 0) continue;
            state.rows.Slice(kept, count);
        }
        state.rows.Flatten();
        for (size_t column = 0; column < state.wanted && column < out.ColumnCount(); ++column) {
            out.data[column].Reference(state.rows.data[column]);
        }
        out.SetCardinality(count);
        return;
    }
}

duckdb::TableFunctionCatalogEntry *find(duckdb::ClientContext &context, const char *name) {
    return duckdb::Catalog::GetSystemCatalog(context)
        .GetEntry<duckdb::TableFunctionCatalogEntry>(context, "main", name, duckdb::OnEntryNotFound::RETURN_NULL)
        .get();
}

template <size_t I>
void wrap_one(duckdb::ClientContext &context) {
    auto *entry = find(context, kFunctions[I].name);
    if (!entry) return;
    for (auto &function : entry->functions.functions) {
        if (!function.function || function.filter_pushdown)
            throw duckdb::InternalException("a function that tells of names works otherwise than it did");
        originals[I].store(function.function);
        function.function = tell_visible<I>;
        if (!function.projection_pushdown) continue;
        original_inits[I].store(function.init_global);
        function.init_global = init_wider<I>;
        function.function = tell_visible_wider<I>;
    }
}

template <size_t... I>
void wrap_all(duckdb::ClientContext &context, std::index_sequence<I...>) {
    (wrap_one<I>(context), ...);
}

// These tell of the one table that their argument names, and the bound plan does not show which.
constexpr std::array<const char *, 2> kByName = {"pragma_table_info", "pragma_show"};
std::array<std::atomic<duckdb::table_function_bind_t>, kByName.size()> by_name_binds;

template <size_t I>
duckdb::unique_ptr<duckdb::FunctionData> bind_by_name(duckdb::ClientContext &context,
                                                      duckdb::TableFunctionBindInput &input,
                                                      duckdb::vector<duckdb::LogicalType> &types,
                                                      duckdb::vector<std::string> &names) {
    if (const Rights *rights = rights_of(context)) {
        for (const auto &[catalog, own] : *rights) {
            if (own.all != Privilege::none) continue;
            throw duckdb::PermissionException(std::string("the function ") + kByName[I] +
                                              " is for those who may see all of a catalog; use DESCRIBE (rule grant)");
        }
    }
    return by_name_binds[I].load()(context, input, types, names);
}

template <size_t I>
void wrap_by_name(duckdb::ClientContext &context) {
    auto *entry = find(context, kByName[I]);
    if (!entry) return;
    for (auto &function : entry->functions.functions) {
        by_name_binds[I].store(function.bind);
        function.bind = bind_by_name<I>;
    }
}

}  // namespace

void set_rights(duckdb::ClientContext &context, const std::optional<Rights> &rights) {
    context.registered_state->GetOrCreate<RightsState>(kState)->rights = rights;
}

const Rights *rights_of(duckdb::ClientContext &context) {
    const auto state = context.registered_state->Get<RightsState>(kState);
    return state && state->rights ? &*state->rights : nullptr;
}

void wrap_name_functions(duckdb::ClientContext &context) {
    wrap_all(context, std::make_index_sequence<kFunctions.size()>());
    wrap_by_name<0>(context);
    wrap_by_name<1>(context);
}

}  // namespace roost
