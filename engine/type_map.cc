#include "engine/type_map.h"

#include <unordered_set>

namespace roost {

using duckdb::LogicalType;
using duckdb::LogicalTypeId;

namespace {

struct ArrayOid {
    uint32_t element, array;
};
constexpr ArrayOid kArrayOids[] = {
    {pg_oid::boolean, 1000},     {pg_oid::bytea, 1001},     {pg_oid::internal_char, 1002}, {pg_oid::name, 1003},
    {pg_oid::int2, 1005},        {pg_oid::int4, 1007},      {pg_oid::text, 1009},          {pg_oid::bpchar, 1014},
    {pg_oid::varchar, 1015},     {pg_oid::int8, 1016},      {pg_oid::float4, 1021},        {pg_oid::float8, 1022},
    {pg_oid::oid, 1028},         {pg_oid::timestamp, 1115}, {pg_oid::date, 1182},          {pg_oid::time, 1183},
    {pg_oid::timestamptz, 1185}, {pg_oid::interval, 1187},  {pg_oid::numeric, 1231},       {pg_oid::timetz, 1270},
    {pg_oid::bit, 1561},         {pg_oid::varbit, 1563},    {pg_oid::uuid, 2951},          {pg_oid::json, 199},
    {pg_oid::jsonb, 3807},
};

bool is_nested(const LogicalType &type) {
    switch (type.id()) {
        case LogicalTypeId::LIST:
        case LogicalTypeId::ARRAY:
        case LogicalTypeId::STRUCT:
        case LogicalTypeId::MAP:
        case LogicalTypeId::UNION:
        case LogicalTypeId::VARIANT:
            return true;
        default:
            return false;
    }
}

bool is_list(const LogicalType &type) { return type.id() == LogicalTypeId::LIST || type.id() == LogicalTypeId::ARRAY; }

int32_t numeric_typmod(const LogicalType &type) {
    const int32_t precision = duckdb::DecimalType::GetWidth(type);
    const int32_t scale = duckdb::DecimalType::GetScale(type);
    return ((precision << 16) | scale) + 4;
}

PgType scalar_pg_type(const LogicalType &type) {
    if (type.IsJSONType()) return {pg_oid::json, -1, -1};
    switch (type.id()) {
        case LogicalTypeId::BOOLEAN:
            return {pg_oid::boolean, 1, -1};
        case LogicalTypeId::TINYINT:
        case LogicalTypeId::UTINYINT:
        case LogicalTypeId::SMALLINT:
            return {pg_oid::int2, 2, -1};
        case LogicalTypeId::USMALLINT:
        case LogicalTypeId::INTEGER:
            return {pg_oid::int4, 4, -1};
        case LogicalTypeId::UINTEGER:
        case LogicalTypeId::BIGINT:
            return {pg_oid::int8, 8, -1};
        case LogicalTypeId::UBIGINT:
        case LogicalTypeId::HUGEINT:
        case LogicalTypeId::UHUGEINT:
        case LogicalTypeId::BIGNUM:
            return {pg_oid::numeric, -1, -1};
        case LogicalTypeId::DECIMAL:
            return {pg_oid::numeric, -1, numeric_typmod(type)};
        case LogicalTypeId::FLOAT:
            return {pg_oid::float4, 4, -1};
        case LogicalTypeId::DOUBLE:
            return {pg_oid::float8, 8, -1};
        case LogicalTypeId::BLOB:
            return {pg_oid::bytea, -1, -1};
        case LogicalTypeId::BIT:
            return {pg_oid::varbit, -1, -1};
        case LogicalTypeId::DATE:
            return {pg_oid::date, 4, -1};
        case LogicalTypeId::TIME:
        case LogicalTypeId::TIME_NS:
            return {pg_oid::time, 8, -1};
        case LogicalTypeId::TIME_TZ:
            return {pg_oid::timetz, 12, -1};
        case LogicalTypeId::TIMESTAMP:
        case LogicalTypeId::TIMESTAMP_SEC:
        case LogicalTypeId::TIMESTAMP_MS:
        case LogicalTypeId::TIMESTAMP_NS:
            return {pg_oid::timestamp, 8, -1};
        case LogicalTypeId::TIMESTAMP_TZ:
            return {pg_oid::timestamptz, 8, -1};
        case LogicalTypeId::INTERVAL:
            return {pg_oid::interval, 16, -1};
        case LogicalTypeId::UUID:
            return {pg_oid::uuid, 16, -1};
        default:
            // VARCHAR, ENUM, NULL, and whatever has only a text form.
            return {pg_oid::text, -1, -1};
    }
}

}  // namespace

const LogicalType &element_type(const LogicalType &type) {
    return type.id() == LogicalTypeId::ARRAY ? duckdb::ArrayType::GetChildType(type)
                                             : duckdb::ListType::GetChildType(type);
}

bool is_pg_array(const LogicalType &type) { return is_list(type) && !is_nested(element_type(type)); }

bool is_pg_json(const LogicalType &type) { return is_nested(type) && !is_pg_array(type); }

uint32_t pg_array_oid(uint32_t element_oid) {
    for (const auto &entry : kArrayOids) {
        if (entry.element == element_oid) return entry.array;
    }
    return 0;
}

uint32_t pg_element_oid(uint32_t array_oid) {
    for (const auto &entry : kArrayOids) {
        if (entry.array == array_oid) return entry.element;
    }
    return 0;
}

PgType pg_type_of(const LogicalType &type) {
    if (is_pg_json(type)) return {pg_oid::json, -1, -1};
    if (!is_list(type)) return scalar_pg_type(type);
    const PgType element = scalar_pg_type(element_type(type));
    return {pg_array_oid(element.oid), -1, element.typmod};
}

Column describe_column(const std::string &name, const LogicalType &type) {
    const PgType pg = pg_type_of(type);
    // DuckDB prints a bare NULL in quotes, as DESCRIBE does; every other type prints as it is.
    return {name, type.ToString(), pg.oid, pg.typlen, pg.typmod};
}

uint32_t pg_oid_of_param(const LogicalType &type) { return pg_type_of(type).oid; }

LogicalType type_of_pg_oid(uint32_t oid) {
    switch (oid) {
        case pg_oid::boolean:
            return LogicalType::BOOLEAN;
        case pg_oid::bytea:
            return LogicalType::BLOB;
        case pg_oid::int2:
            return LogicalType::SMALLINT;
        case pg_oid::int4:
            return LogicalType::INTEGER;
        case pg_oid::int8:
        case pg_oid::oid:
            return LogicalType::BIGINT;
        case pg_oid::internal_char:
        case pg_oid::name:
        case pg_oid::text:
        case pg_oid::bpchar:
        case pg_oid::varchar:
            return LogicalType::VARCHAR;
        case pg_oid::json:
        case pg_oid::jsonb:
            return LogicalType::JSON();
        case pg_oid::float4:
            return LogicalType::FLOAT;
        case pg_oid::float8:
            return LogicalType::DOUBLE;
        case pg_oid::date:
            return LogicalType::DATE;
        case pg_oid::time:
            return LogicalType::TIME;
        case pg_oid::timetz:
            return LogicalType::TIME_TZ;
        case pg_oid::timestamp:
            return LogicalType::TIMESTAMP;
        case pg_oid::timestamptz:
            return LogicalType::TIMESTAMP_TZ;
        case pg_oid::interval:
            return LogicalType::INTERVAL;
        case pg_oid::bit:
        case pg_oid::varbit:
            return LogicalType::BIT;
        case pg_oid::numeric:
            // A declared numeric has no precision; a bound value is exact whatever this says.
            return LogicalType::DECIMAL(38, 9);
        case pg_oid::uuid:
            return LogicalType::UUID;
        default:
            break;
    }
    const uint32_t element = pg_element_oid(oid);
    return element == 0 ? LogicalType(LogicalTypeId::UNKNOWN) : LogicalType::LIST(type_of_pg_oid(element));
}

std::vector<std::string> unique_names(std::vector<std::string> names) {
    std::unordered_set<std::string> taken;
    std::unordered_map<std::string, uint64_t> next;
    for (auto &name : names) {
        const std::string lower = duckdb::StringUtil::Lower(name);
        std::string candidate = name;
        for (auto &suffix = next[lower]; !taken.insert(duckdb::StringUtil::Lower(candidate)).second;) {
            candidate = name + "_" + std::to_string(++suffix);
        }
        name = std::move(candidate);
    }
    return names;
}

}  // namespace roost
