// The guard's rules about names and paths, apart from any tree: which catalogs may be named, what looks like a file,
// which staging paths are a session's own. Pure, thread-safe; used by guard.cc only.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "sql/statement.h"

namespace roost::sql {

// A refusal: not_allowed with its rule and what to do about it. Where it is, the caller adds: counting characters
// costs.
Status refuse(std::string rule, std::string message, std::string hint);

// DuckLake's hidden catalog, readable and writable by whoever knows its name.
bool is_metadata_catalog(std::string_view name);

// Whether the catalog and schema parts of a name may be used. An only qualifier stands in `schema` and may be a catalog
// too. `defines`: CREATE, ALTER, DROP.
Status check_qualifiers(const TableName &name, bool changes, const GuardPolicy &policy);

// Whether a name that no CTE explains may be read: views of the engine's own, and what DuckDB would open as a file.
Status check_relation(const TableName &name, const GuardPolicy &policy);
// The part of it for names that DuckDB would open as a file if no table has them.
Status check_not_a_path(const TableName &name, const GuardPolicy &policy);

// A path of COPY: below the session's staging prefix, in the one form that no layer can read differently.
Status check_staging_path(std::string_view path, const GuardPolicy &policy);
// A URL of read_parquet and its like: staged for this session, or a staging path.
Status check_staged_url(std::string_view url, const GuardPolicy &policy);

// `text` as the value of search_path or schema: each element names a schema, or catalog.schema.
Status check_search_path(std::string_view text, const GuardPolicy &policy);

}  // namespace roost::sql
