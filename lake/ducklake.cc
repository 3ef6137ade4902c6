#include "lake/ducklake.h"

#include "lake/ducklake_postgres.h"
#include "lake/ducklake_sqlite.h"
#include "lake/postgres_dsn.h"

namespace roost {

namespace {

constexpr std::string_view kMarkPrefix = "roost:";

std::string quoted(std::string_view text, char quote) {
    std::string out(1, quote);
    for (const char c : text) {
        if (c == quote) out.push_back(quote);
        out.push_back(c);
    }
    out.push_back(quote);
    return out;
}

}  // namespace

std::string quote_identifier(std::string_view name) { return quoted(name, '"'); }
std::string quote_literal(std::string_view text) { return quoted(text, '\''); }

std::string attach_sql(const LakeLocation &lake, const AttachMode &mode) {
    std::string place, options;
    if (lake.on_postgres) {
        // A text that can't be parsed is left to the extension to refuse.
        const auto dsn = complete_dsn(lake.metadata_path, lake.catalog_timeout_ms);
        place = "postgres:" + (dsn.ok() ? *dsn : lake.metadata_path);
        options = ", META_SECRET_STORAGE_TABLE ''";  // no table of secrets is looked for
    } else {
        place = "sqlite:" + lake.metadata_path;
        // WAL: readers go on while one writes.
        options = ", META_JOURNAL_MODE 'WAL', META_BUSY_TIMEOUT " + std::to_string(mode.busy_timeout_ms);
    }
    if (!mode.metadata_catalog.empty()) options += ", METADATA_CATALOG " + quote_literal(mode.metadata_catalog);
    return "ATTACH " + quote_literal("ducklake:" + place) + " AS " + quote_identifier(lake.catalog) + " (DATA_PATH " +
           quote_literal(lake.data_path) + options + ", CREATE_IF_NOT_EXISTS " + (mode.create ? "true" : "false") + ")";
}

std::string attach_frozen_sql(std::string_view catalog, std::string_view path, const AttachMode &mode) {
    std::string options = "READ_ONLY";
    if (!mode.metadata_catalog.empty()) options += ", METADATA_CATALOG " + quote_literal(mode.metadata_catalog);
    return "ATTACH " + quote_literal("ducklake:" + std::string(path)) + " AS " + quote_identifier(catalog) + " (" +
           options + ")";
}

std::string commit_mark(const Uuid &statement) { return std::string(kMarkPrefix) + statement.to_string(); }

std::string commit_message_sql(std::string_view catalog, const Uuid &statement) {
    return "CALL ducklake_set_commit_message(" + quote_literal(catalog) + ", 'roost', '', extra_info => " +
           quote_literal(commit_mark(statement)) + ")";
}

std::string last_committed_snapshot_sql(std::string_view catalog) {
    return "FROM ducklake_last_committed_snapshot(" + quote_literal(catalog) + ")";
}

std::string names_file_sql(std::string_view metadata_catalog, std::string_view path) {
    const std::string name = quote_literal(path.substr(path.rfind('/') + 1));
    const std::string metadata = quote_identifier(metadata_catalog);
    std::string tables;
    for (const char *table : {"ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion"}) {
        if (!tables.empty()) tables += " UNION ALL ";
        tables += "SELECT path FROM " + metadata + "." + table;
    }
    return "SELECT count(*) FROM (" + tables + ") WHERE ends_with(path, " + name + ")";
}

Result<std::optional<uint64_t>> find_commit(const LakeLocation &lake, const Uuid &statement) {
    if (lake.on_postgres) return find_postgres_commit(lake.metadata_path, commit_mark(statement));
    return find_sqlite_commit(lake.metadata_path, commit_mark(statement));
}

}  // namespace roost
