// Which PostgreSQL type stands for a DuckDB type and back (the table of the wire contract's section 5). Pure functions;
// thread-safe. Called by the encoders and, through encode.h, by execution. Chosen by static type alone, so that a
// statement can be described before it runs.
#pragma once

#include <cstdint>

#include "duckdb/common/types.hpp"
#include "engine/encode.h"

namespace roost {

namespace pg_oid {
inline constexpr uint32_t boolean = 16, bytea = 17, internal_char = 18, name = 19, int8 = 20, int2 = 21, int4 = 23,
                          text = 25, oid = 26, json = 114, float4 = 700, float8 = 701, unknown = 705, bpchar = 1042,
                          varchar = 1043, date = 1082, time = 1083, timestamp = 1114, timestamptz = 1184,
                          interval = 1186, timetz = 1266, bit = 1560, varbit = 1562, numeric = 1700, uuid = 2950,
                          jsonb = 3802;
}  // namespace pg_oid

struct PgType {
    uint32_t oid = pg_oid::text;
    int16_t typlen = -1;
    int32_t typmod = -1;
};

PgType pg_type_of(const duckdb::LogicalType &type);

// True for a LIST or ARRAY that is sent as a PostgreSQL array: its elements are scalars, so it can't be ragged.
bool is_pg_array(const duckdb::LogicalType &type);
// True for what is sent as JSON text built here (nested values, VARIANT); a JSON column itself is text already.
bool is_pg_json(const duckdb::LogicalType &type);
// The element type of a LIST or ARRAY. REQUIRES: type is one of them.
const duckdb::LogicalType &element_type(const duckdb::LogicalType &type);
// The array type of an element type's oid, and back; 0 when there is none.
uint32_t pg_array_oid(uint32_t element_oid);
uint32_t pg_element_oid(uint32_t array_oid);

}  // namespace roost
