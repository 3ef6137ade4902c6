#include "config/catalogs_file.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "config/settings_file.h"

namespace roost::config {
namespace {

constexpr size_t kCatalogsMax = 100;

// Names that mean something else in SQL, and folders of the first lake, below which the others are unless told.
constexpr std::array<std::string_view, 11> kTaken = {
    kFirstCatalog,        "main",       "public",   "temp", "system", "memory",
    "information_schema", "pg_catalog", "postgres", "data", "staging"};

Status bad(const std::string &file, uint32_t line, const std::string &message) {
    return Status(Code::invalid_argument, file + ":" + std::to_string(line) + ": " + message);
}

bool is_plain_name(std::string_view name) {
    constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789_";
    return !name.empty() && name.size() <= 63 && name.find_first_not_of(allowed) == std::string_view::npos &&
           (name[0] < '0' || name[0] > '9') && !name.starts_with("__");
}

Result<CatalogEntry> entry_of(const FileSection &section, const std::string &file, const Settings &settings) {
    CatalogEntry entry;
    entry.name = section.name;
    if (!is_plain_name(entry.name)) {
        return bad(file, section.line,
                   "a catalog's name is 1 to 63 of a-z, 0-9 and '_', and begins with neither a digit nor '__'");
    }
    if (std::ranges::find(kTaken, entry.name) != kTaken.end())
        return bad(file, section.line, "the name '" + entry.name + "' is taken; choose another");
    entry.workspace = kFirstWorkspace;
    entry.store = store_below(settings.store, entry.name);
    bool has_catalog = false;
    for (const FileEntry &line : section.entries) {
        Status status;
        if (line.key == "catalog") {
            auto database = parse_database(line.text);
            status = database.status();
            has_catalog = database.ok();
            if (database.ok()) entry.catalog = std::move(database).value();
        } else if (line.key == "store") {
            auto store = parse_store(line.text);
            status = store.status();
            if (store.ok()) entry.store = std::move(store).value();
        } else if (line.key == "workspace") {
            entry.workspace = line.text;
            if (!is_plain_name(entry.workspace))
                status = Status(Code::invalid_argument, "a workspace's name is 1 to 63 of a-z, 0-9 and '_'");
        } else {
            status = Status(Code::invalid_argument, "a section may have catalog, store and workspace");
        }
        if (!status.ok()) return bad(file, line.line, line.key.substr(0, 80) + ": " + status.message());
    }
    if (has_catalog) return entry;
    if (settings.catalog.kind != DatabaseLocation::Kind::sqlite) {
        return bad(file, section.line, "[" + entry.name + "] needs catalog = \"postgres:…\", a database of its own");
    }
    entry.catalog.place =
        (std::filesystem::path(settings.catalog.place).parent_path() / (entry.name + ".sqlite")).string();
    return entry;
}

// Two lakes in one place, or one inside the other, would take each other's files for their own: and remove them.
Status check_apart(const std::vector<CatalogEntry> &entries, const Settings &settings, const std::string &file) {
    std::vector<std::pair<StoreLocation, DatabaseLocation>> seen = {{settings.store, settings.catalog}};
    for (const CatalogEntry &entry : entries) {
        for (const auto &[store, catalog] : seen) {
            const bool same_store = overlap(store_below(store, "data"), store_below(entry.store, "data"));
            if (same_store || catalog == entry.catalog)
                return Status(Code::invalid_argument, file + ": [" + entry.name + "] has the " +
                                                          (same_store ? "store" : "catalog") +
                                                          " of another catalog; give it one of its own");
        }
        seen.emplace_back(entry.store, entry.catalog);
    }
    return {};
}

}  // namespace

Result<std::vector<CatalogEntry>> parse_catalogs(std::string_view text, const std::string &file,
                                                 const Settings &settings) {
    ROOST_ASSIGN_OR_RETURN(const auto sections, parse_sections_text(text, file));
    if (sections.size() > kCatalogsMax)
        return Status(Code::invalid_argument, file + ": more than " + std::to_string(kCatalogsMax) + " catalogs");
    std::vector<CatalogEntry> entries;
    for (const FileSection &section : sections) {
        ROOST_ASSIGN_OR_RETURN(CatalogEntry entry, entry_of(section, file, settings));
        entries.push_back(std::move(entry));
    }
    ROOST_RETURN_IF_ERROR(check_apart(entries, settings, file));
    return entries;
}

Status read_catalogs(Settings &settings) {
    if (settings.is_default("catalogs") && !settings_file_exists(settings.catalogs)) return {};
    ROOST_ASSIGN_OR_RETURN(const std::string text, read_text_file(settings.catalogs));
    ROOST_ASSIGN_OR_RETURN(settings.more_catalogs, parse_catalogs(text, settings.catalogs, settings));
    return {};
}

}  // namespace roost::config
