// Statement parameters from a hostile client: any bytes, any declared type, any form. The answer is a value or a clear
// error, and a value that was understood comes back the same when it is sent as a result and bound again. Input: form,
// declared type, inferred type (a byte each), then the value.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "engine/encode.h"
#include "engine/type_map.h"
#include "engine/value_writer.h"

namespace roost {
namespace {

using duckdb::LogicalType;
using duckdb::Value;

constexpr uint32_t kOids[] = {0,    16,   17,   18,   19,   20,   21,   23,   25,   26,    114,  700,  701,
                              705,  1042, 1043, 1082, 1083, 1114, 1184, 1186, 1266, 1560,  1562, 1700, 2950,
                              3802, 1000, 1001, 1005, 1007, 1009, 1016, 1021, 1022, 1115,  1182, 1183, 1185,
                              1187, 1231, 1270, 1561, 1563, 2951, 199,  3807, 600,  999999};
constexpr const char *kTypes[] = {"",          "DECIMAL(5,2)", "DECIMAL(38,0)", "TIMESTAMP", "TIMESTAMPTZ",
                                  "DATE",      "TIME",         "BLOB",          "UUID",      "BIGINT",
                                  "HUGEINT",   "DOUBLE",       "VARCHAR",       "BOOLEAN",   "BIGINT[]",
                                  "VARCHAR[]", "DATE[]",       "TIMESTAMPTZ[]", "DOUBLE[]",  "INTEGER[2]",
                                  "JSON",      "INTERVAL",     "NONSENSE",      "UTINYINT",  "BIT"};

std::vector<LogicalType> inferred_types() {
    return {LogicalType::UNKNOWN,
            LogicalType::TINYINT,
            LogicalType::UBIGINT,
            LogicalType::HUGEINT,
            LogicalType::UHUGEINT,
            LogicalType::BIGNUM,
            LogicalType::DECIMAL(15, 2),
            LogicalType::TIMESTAMP_NS,
            LogicalType::TIMESTAMP_S,
            LogicalType::TIMESTAMP_MS,
            LogicalType::TIME_NS,
            LogicalType::LIST(LogicalType::INTEGER),
            LogicalType::ARRAY(LogicalType::DOUBLE, 3),
            LogicalType::LIST(LogicalType::LIST(LogicalType::VARCHAR)),
            LogicalType::STRUCT({{"a", LogicalType::INTEGER}}),
            LogicalType::MAP(LogicalType::VARCHAR, LogicalType::INTEGER),
            LogicalType::VARIANT()};
}

void require(bool condition, const char *what) {
    if (condition) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

// Out as a result in `form`, in again as a parameter.
void check_round_trip(const Value &value, Param::Form form) {
    const auto &type = value.type();
    if (value.IsNull() || type.id() == duckdb::LogicalTypeId::SQLNULL) return;
    auto zone = ZoneOffsets::utc();
    duckdb::Vector vector(value);
    VectorView view;
    view.bind(vector, 1);
    Param param;
    param.form = form;
    param.value.emplace();
    const bool text = form == Param::Form::pg_text;
    try {
        (text ? make_pg_text_writer(type, *zone) : make_pg_binary_writer(type, *zone))->append(view, 0, *param.value);
    } catch (const duckdb::OutOfRangeException &) {
        return;  // beyond PostgreSQL's range in binary
    }
    const auto again = decode_param(param, 0, type);
    require(again.ok(), "an encoded value is no parameter");
    Value same;
    std::string message;
    require(again->DefaultTryCastAs(type, same, &message), "an encoded value has another type");
    require(Value::NotDistinctFrom(value, same), "an encoded value is another value");
}

void run(const uint8_t *data, size_t size) {
    if (size < 3) return;
    static const auto inferred = inferred_types();
    Param param;
    param.form = static_cast<Param::Form>(data[0] % 3);
    param.pg_oid = kOids[data[1] % std::size(kOids)];
    if (param.form == Param::Form::typed_json) param.type = kTypes[data[1] % std::size(kTypes)];
    param.value = std::string(reinterpret_cast<const char *>(data) + 3, size - 3);
    const auto value = decode_param(param, 4, inferred[data[2] % inferred.size()]);
    if (!value.ok()) {
        require(value.status().message().starts_with("parameter $5: "), "an error does not name the parameter");
        require(value.status().sqlstate().size() == 5, "an error has no SQLSTATE");
        require(value.status().code() != Code::internal, "an error is internal");
        return;
    }
    // Nested values are sent as JSON, which does not come back as what it was; PostgreSQL cuts nanoseconds.
    const auto &type = value->type();
    const bool cut = type.id() == duckdb::LogicalTypeId::TIMESTAMP_NS || type.id() == duckdb::LogicalTypeId::TIME_NS;
    if (cut || is_pg_json(type) || type.IsJSONType()) return;
    check_round_trip(*value, Param::Form::pg_text);
    check_round_trip(*value, Param::Form::pg_binary);
}

}  // namespace
}  // namespace roost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    roost::run(data, size);
    return 0;
}
