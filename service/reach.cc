#include "service/reach.h"

#include <algorithm>

#include "lake/grant_refusals.h"

namespace roost::service {

namespace {

constexpr unsigned kViewDepthMax = 64;

bool is_system_schema(const std::string &folded_name) {
    return folded_name == "information_schema" || folded_name == "pg_catalog";
}

// Postgres' word for it; the lake's is main.
std::string schema_of(const std::string &name) { return folded(name) == "public" ? "main" : name; }

std::string dotted(const std::string &schema, const std::string &name) {
    return schema == "main" || schema.empty() ? name : name.empty() ? schema : schema + "." + name;
}

bool is_dml(sql::Kind kind) {
    using sql::Kind;
    return kind == Kind::insert || kind == Kind::update || kind == Kind::delete_rows || kind == Kind::merge ||
           kind == Kind::truncate;
}

// DESCRIBE tells of columns; SUMMARIZE of values.
bool tells_columns_only(const sql::Statement &statement) {
    return statement.kind == sql::Kind::describe && folded(statement.text.substr(0, 9)) != "summarize";
}

}  // namespace

const std::string *ReachFinder::catalog_named(const std::string &name) const {
    const std::string wanted = folded(name);
    const auto found =
        std::ranges::find_if(scope_.catalogs, [&](const auto &known) { return folded(known) == wanted; });
    return found == scope_.catalogs.end() ? nullptr : &*found;
}

// True: there is such a relation, or nobody can say yet.
bool ReachFinder::look_in(const std::string &catalog, const std::string &schema, const std::string &name,
                          Found &found) {
    catalogs_.insert(catalog);
    found = {catalog, schema_of(schema), name, nullptr, false};
    const auto state = states_.find(catalog);
    if (state == states_.end()) {
        missing_.insert(catalog);
        return true;
    }
    found.view = state->second->view(found.schema, name);
    found.known = found.view || state->second->table(found.schema, name);
    return found.known;
}

// As DuckDB: catalog.schema.name; a single qualifier is a schema of the active catalog or a catalog, whose main schema
// is meant; without one the search path tells.
ReachFinder::Found ReachFinder::resolve(const sql::TableName &name, const ReachScope &scope) {
    Found found;
    if (!name.catalog.empty()) {
        const std::string *catalog = catalog_named(name.catalog);
        if (catalog) look_in(*catalog, name.schema, name.table, found);
        return found;
    }
    if (!name.schema.empty()) {
        if (look_in(scope.catalog, name.schema, name.table, found)) return found;
        Found other;
        const std::string *catalog = catalog_named(name.schema);
        return catalog && look_in(*catalog, "main", name.table, other) ? other : found;
    }
    for (const std::string &schema : scope.search_path) {
        if (look_in(scope.catalog, schema, name.table, found)) return found;
    }
    return found;
}

Status ReachFinder::judge(const Found &found, Need need) const {
    if (!scope_.rights || !found.known) return Status();
    const Privilege held = rights_in(*scope_.rights, found.catalog).of_table(found.schema, found.name);
    if (held == Privilege::none) return not_to_be_seen(dotted(found.schema, found.name));
    const Privilege needed = need == Need::metadata ? Privilege::metadata
                             : need == Need::read   ? Privilege::reader
                                                    : Privilege::writer;
    if (held >= needed) return Status();
    return too_little_granted((found.view ? "view " : "table ") + dotted(found.schema, found.name), needed);
}

// What a view reads is read by its caller: the lake knows no owner of a view who could answer for it.
Status ReachFinder::read(const sql::TableName &name, const ReachScope &scope, Need need, unsigned depth) {
    if (is_system_schema(folded(name.schema)) || folded(name.catalog) == "temp") return Status();
    const Found found = resolve(name, scope);
    ROOST_RETURN_IF_ERROR(judge(found, need));
    if (!found.view || depth > kViewDepthMax || need == Need::metadata) return Status();
    const auto parsed = parse_(found.view->sql);
    if (!parsed.ok()) return Status();  // the engine says what is wrong with it
    ReachScope inside = scope;
    inside.catalog = found.catalog;
    inside.search_path = {found.schema, "main"};
    for (const sql::Statement &body : *parsed) {
        for (const sql::TableName &inner : body.reads) ROOST_RETURN_IF_ERROR(read(inner, inside, need, depth + 1));
    }
    return Status();
}

Status ReachFinder::write(const sql::TableName &name, sql::Kind kind) {
    if (folded(name.catalog) == "temp") return Status();
    Found found;
    if (name.table.empty()) {
        // A schema: made, dropped or altered in its catalog.
        const std::string *catalog = name.catalog.empty() ? &scope_.catalog : catalog_named(name.catalog);
        if (catalog) found = {*catalog, "", "", nullptr, false};
        if (catalog) catalogs_.insert(*catalog);
    } else {
        found = resolve(name, scope_);
        if (!name.catalog.empty() || found.known) {
            // As resolved.
        } else if (const std::string *catalog = name.schema.empty() ? nullptr : catalog_named(name.schema)) {
            const auto own = states_.find(scope_.catalog);
            if (own != states_.end() && !own->second->schema(name.schema))
                found = {*catalog, "main", name.table, nullptr, false};
        } else if (name.schema.empty() && !scope_.search_path.empty()) {
            found.catalog = scope_.catalog;
            found.schema = schema_of(scope_.search_path.front());
            found.name = name.table;
        }
    }
    if (found.catalog.empty()) return Status();
    if (!write_catalog_.empty() && write_catalog_ != found.catalog) {
        return Status(Code::unimplemented, "a statement can change one catalog only, and this one changes " +
                                               write_catalog_ + " and " + found.catalog);
    }
    write_catalog_ = found.catalog;
    if (!scope_.rights) return Status();
    if (is_dml(kind)) return judge(found, Need::change);
    // What is made or altered is the schema's matter, and a schema the catalog's.
    if (found.known) ROOST_RETURN_IF_ERROR(judge(found, Need::metadata));
    const CatalogRights &rights = rights_in(*scope_.rights, found.catalog);
    const Privilege held = found.schema.empty() ? rights.all : rights.of_schema(found.schema);
    if (held == Privilege::writer) return Status();
    return too_little_granted(found.schema.empty() ? "catalog " + found.catalog : "schema " + found.schema,
                              Privilege::writer);
}

Status ReachFinder::find(const sql::Statement &statement) {
    catalogs_.clear();
    missing_.clear();
    write_catalog_.clear();
    const Need need = tells_columns_only(statement) ? Need::metadata : Need::read;
    for (const sql::TableName &name : statement.writes) ROOST_RETURN_IF_ERROR(write(name, statement.kind));
    for (const sql::TableName &name : statement.reads) ROOST_RETURN_IF_ERROR(read(name, scope_, need, 0));
    return Status();
}

Reach ReachFinder::reach() const {
    Reach reach;
    for (const std::string &catalog : catalogs_) {
        if (catalog != scope_.catalog) reach.catalogs.push_back(catalog);
    }
    if (write_catalog_ != scope_.catalog) reach.write_catalog = write_catalog_;
    if (scope_.rights) reach.rights = *scope_.rights;
    return reach;
}

}  // namespace roost::service
