#include "duckdb/common/types/value.hpp"
#include "engine/duckdb_errors.h"
#include "engine/encode.h"
#include "engine/json_params.h"
#include "engine/param_binary.h"
#include "engine/param_text.h"
#include "engine/type_map.h"

namespace roost {

using duckdb::LogicalType;
using duckdb::LogicalTypeId;
using duckdb::Value;

namespace {

bool is_known(const LogicalType &type) {
    switch (type.id()) {
        case LogicalTypeId::INVALID:
        case LogicalTypeId::SQLNULL:
        case LogicalTypeId::UNKNOWN:
        case LogicalTypeId::ANY:
        case LogicalTypeId::UNBOUND:
        case LogicalTypeId::TEMPLATE:
            return false;
        default:
            return true;
    }
}

// What the client declared; else what the engine inferred; else text.
LogicalType type_of(const Param &param, const LogicalType &inferred) {
    if (param.pg_oid != 0 && param.pg_oid != pg_oid::unknown) {
        const LogicalType declared = type_of_pg_oid(param.pg_oid);
        if (is_known(declared)) return declared;
    }
    return is_known(inferred) ? inferred : LogicalType(LogicalType::VARCHAR);
}

Result<Value> decode(const Param &param, const LogicalType &inferred, duckdb::ClientContext *context) {
    if (param.form == Param::Form::typed_json)
        return decode_json_param(param.value.value_or("null"), param.type, context);
    const LogicalType type = type_of(param, inferred);
    if (!param.value) return Value(type);
    if (param.form == Param::Form::pg_binary) {
        const bool declared = param.pg_oid != 0 && param.pg_oid != pg_oid::unknown;
        auto value = decode_binary_param(declared ? param.pg_oid : pg_oid_of_param(type), *param.value);
        // The engine casts text to BIGNUM, but no DECIMAL.
        const bool to_bignum =
            value.ok() && inferred.id() == LogicalTypeId::BIGNUM && value->type().id() == LogicalTypeId::DECIMAL;
        return to_bignum ? Result<Value>(Value(value->ToString())) : std::move(value);
    }
    ROOST_RETURN_IF_ERROR(check_utf8(*param.value));
    return ParamText(context).parse(type, *param.value);
}

}  // namespace

Result<Value> decode_param(const Param &param, size_t index, const LogicalType &inferred,
                           duckdb::ClientContext *context) {
    auto value = [&]() -> Result<Value> {
        try {
            return decode(param, inferred, context);
        } catch (const std::exception &e) {
            return status_of(e, {}, {});
        }
    }();
    if (value.ok()) return value;
    Error error = value.status().error();
    error.message = "parameter $" + std::to_string(index + 1) + ": " + error.message;
    return Status(std::move(error));
}

}  // namespace roost
