// The tables of the SQLite meta store, by version.
#pragma once

#include "base/status.h"
#include "meta/sqlite_db.h"

namespace roost::meta {

// Makes the tables, or brings those of an older version up to date. A file of something else, or of a newer roost, is
// left alone with failed_precondition.
Status bring_schema_up_to_date(Db &db, const std::string &path);

}  // namespace roost::meta
