#include "engine/json_params.h"

#include <nlohmann/json.hpp>

#include "duckdb/common/types.hpp"
#include "duckdb/common/types/blob.hpp"
#include "engine/param_text.h"
#include "engine/type_map.h"

namespace roost {

using duckdb::LogicalType;
using duckdb::LogicalTypeId;
using duckdb::Value;
using nlohmann::json;

namespace {

constexpr size_t kMaxTypeBytes = 4096;
constexpr int kMaxDepth = 32;

Status bad(std::string message) { return Status(Code::invalid_argument, std::move(message)); }

// Digits only: of any size, which a JSON library would round.
bool is_integer_text(std::string_view text) {
    if (text.starts_with('-')) text.remove_prefix(1);
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<Value> integer_by_magnitude(const ParamText &texts, std::string_view digits) {
    for (const auto &type : {LogicalType::INTEGER, LogicalType::BIGINT, LogicalType::HUGEINT}) {
        auto value = texts.parse(type, digits);
        if (value.ok()) return value;
    }
    return texts.parse(LogicalType::UHUGEINT, digits);
}

std::string_view trim(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

Result<json> parse_document(std::string_view text) {
    // Python writes these three bare.
    if (text == "NaN" || text == "Infinity" || text == "-Infinity") return json(std::string(text));
    json document = json::parse(text, nullptr, false);
    if (document.is_discarded()) return bad("the value is not JSON").with_sqlstate("22P02");
    return document;
}

Result<Value> untyped(std::string_view text, const ParamText &texts) {
    if (is_integer_text(text)) return integer_by_magnitude(texts, text);
    ROOST_ASSIGN_OR_RETURN(const json document, parse_document(text));
    if (document.is_string() && !text.starts_with('"')) return texts.parse(LogicalType::DOUBLE, text);
    if (document.is_null()) return Value();
    if (document.is_boolean()) return Value::BOOLEAN(document.get<bool>());
    if (document.is_number()) return Value::DOUBLE(document.get<double>());
    if (!document.is_string()) return bad("an array or object needs a type").with_sqlstate("42804");
    const auto &string = document.get_ref<const std::string &>();
    ROOST_RETURN_IF_ERROR(check_utf8(string));
    return Value(string);
}

Result<LogicalType> parse_type(std::string_view text) {
    if (text.size() > kMaxTypeBytes) return bad("the type's name is too long").with_sqlstate("42704");
    // Known to the catalog only, which is not asked here.
    if (duckdb::StringUtil::CIEquals(std::string(text), LogicalType::JSON_TYPE_NAME)) return LogicalType::JSON();
    try {
        LogicalType type = duckdb::UnboundType::TryParseAndDefaultBind(std::string(text));
        const bool usable = type.id() != LogicalTypeId::INVALID && type.id() != LogicalTypeId::UNBOUND &&
                            type.id() != LogicalTypeId::UNKNOWN;
        if (usable) return type;
    } catch (const std::exception &) {
        // Said below: the parser's words would be about a statement.
    }
    return bad("unknown type \"" + std::string(text) + "\"").with_sqlstate("42704");
}

// Puts a value into exactly the type that was asked for; digits that would be lost are an error.
Result<Value> fit(Value value, const LogicalType &type) {
    if (value.type() == type) return value;
    if (type.id() == LogicalTypeId::DECIMAL && value.type().id() == LogicalTypeId::DECIMAL &&
        duckdb::DecimalType::GetScale(value.type()) > duckdb::DecimalType::GetScale(type)) {
        return out_of_range(type.ToString(), value.ToString());
    }
    Value out;
    std::string message;
    if (!value.DefaultTryCastAs(type, out, &message)) return out_of_range(type.ToString(), value.ToString());
    return out;
}

class TypedJson {
public:
    explicit TypedJson(const ParamText &texts) : texts_(texts) {}

    Result<Value> value(const json &document, const LogicalType &type, int depth) const {
        if (depth > kMaxDepth) return bad("the value is nested too deep").with_sqlstate("54001");
        if (document.is_null()) return Value(type);
        if (type.id() == LogicalTypeId::LIST || type.id() == LogicalTypeId::ARRAY) return list(document, type, depth);
        if (type.id() == LogicalTypeId::BLOB) return blob(document);
        if (type.IsJSONType() && !document.is_string()) return texts_.parse(type, document.dump());
        if (document.is_boolean()) return fit(Value::BOOLEAN(document.get<bool>()), type);
        const bool is_text = document.is_string();
        if (!is_text && !document.is_number())
            return bad("an array or object is no value of type " + type.ToString()).with_sqlstate("42804");
        if (!is_text && !type.IsNumeric())
            return bad("a number is no value of type " + type.ToString()).with_sqlstate("42804");
        const std::string text = is_text ? document.get<std::string>() : document.dump();
        ROOST_RETURN_IF_ERROR(check_utf8(text));
        ROOST_ASSIGN_OR_RETURN(auto parsed, texts_.parse(type, text));
        // Local times without a zone and types known to the engine alone stay text: the statement's cast resolves them.
        const bool left_as_text = parsed.type().id() == LogicalTypeId::VARCHAR;
        return left_as_text ? Result<Value>(std::move(parsed)) : fit(std::move(parsed), type);
    }

private:
    Result<Value> list(const json &document, const LogicalType &type, int depth) const {
        if (!document.is_array()) return bad("a list needs a JSON array").with_sqlstate("42804");
        const auto &element = element_type(type);
        duckdb::vector<Value> values;
        values.reserve(document.size());
        for (const auto &item : document) {
            ROOST_ASSIGN_OR_RETURN(auto parsed, value(item, element, depth + 1));
            values.push_back(std::move(parsed));
        }
        if (type.id() == LogicalTypeId::LIST) {
            for (const auto &item : values) {
                // One element left as text makes a list of texts; the statement's cast resolves it as a whole.
                if (item.type() != element) return text_list(std::move(values));
            }
            return Value::LIST(element, std::move(values));
        }
        return fit(Value::LIST(element, std::move(values)), type);
    }

    static Result<Value> text_list(duckdb::vector<Value> values) {
        for (auto &item : values) item = item.DefaultCastAs(LogicalType::VARCHAR);
        return Value::LIST(LogicalType::VARCHAR, std::move(values));
    }

    static Result<Value> blob(const json &document) {
        if (!document.is_string()) return bad("a BLOB is a base64 string").with_sqlstate("42804");
        try {
            const auto &text = document.get_ref<const std::string &>();
            return Value::BLOB_RAW(duckdb::Blob::FromBase64(duckdb::string_t(text)));
        } catch (const std::exception &) {
            return bad("the BLOB is not base64").with_sqlstate("22P02");
        }
    }

    const ParamText &texts_;
};

}  // namespace

Result<Value> decode_json_param(std::string_view text, std::string_view type_text, duckdb::ClientContext *context) {
    text = trim(text);
    const ParamText texts(context);
    if (type_text.empty()) return untyped(text, texts);
    ROOST_ASSIGN_OR_RETURN(const LogicalType type, parse_type(type_text));
    // Digits as they stand: a JSON number type would round what does not fit 64 bits.
    if (is_integer_text(text) && type.IsNumeric()) {
        ROOST_ASSIGN_OR_RETURN(auto parsed, texts.parse(type, text));
        return fit(std::move(parsed), type);
    }
    ROOST_ASSIGN_OR_RETURN(const json document, parse_document(text));
    return TypedJson(texts).value(document, type, 0);
}

}  // namespace roost
