// What of a lake's location must not appear in messages. Stateless, thread-safe.
#pragma once

#include "engine/duckdb_errors.h"
#include "lake/lake_location.h"

namespace roost {

// Longest first: where its files and its catalog are, the keys of its store, the password of its catalog.
Redactions redactions_of(const LakeLocation &lake);
// As redact() wants them: without empty ones and slashes at the end, longest first.
Redactions in_order(Redactions redactions);

}  // namespace roost
