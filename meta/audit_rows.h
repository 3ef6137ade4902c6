// The audit in the SQLite meta store: rows are added and, when they are old, removed; nothing changes one (a trigger of
// the schema refuses it). The functions run on whatever connection they are given; used by SqliteStore alone.
#pragma once

#include <vector>

#include "base/status.h"
#include "meta/audit.h"
#include "meta/sqlite_db.h"

namespace roost::meta {

Status write_audit(Db &db, const std::vector<AuditRecord> &records);
Result<AuditPage> read_audit(Db &db, const AuditFilter &filter);
// At most `limit` rows: those before `before_us`, and beyond that the oldest past `keep_rows`. How many it removed.
Result<uint64_t> prune_audit(Db &db, int64_t before_us, uint64_t keep_rows, uint64_t limit);

}  // namespace roost::meta
