#include "front/http/decode.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "front/http/json.h"
#include "obs/json_text.h"

namespace roost::http {
namespace {

using Kind = JsonValue::Kind;

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const size_t size_bytes = obs::utf8_char_bytes(text);
        if (size_bytes == 0) return false;
        text.remove_prefix(size_bytes);
    }
    return true;
}

Status bad_target(std::string message) {
    return Status(Code::invalid_argument, std::move(message)).with_name("bad_request");
}

// Guards a cursor against slips (one of another statement, a digit changed), not against forgery: any offset may be
// asked for.
uint32_t cursor_check(const Uuid &statement, uint64_t offset_rows) {
    uint32_t hash = 2166136261u;  // FNV-1a
    const auto mix = [&hash](uint8_t byte) { hash = (hash ^ byte) * 16777619u; };
    for (const uint8_t byte : statement.bytes) mix(byte);
    for (int shift = 0; shift < 64; shift += 8) mix(static_cast<uint8_t>(offset_rows >> shift));
    return hash;
}

template <class T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
    T value{};
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (text.empty() || ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<double> parse_real(std::string_view text) {
    double value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || ec != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
        return std::nullopt;
    }
    return value;
}

std::string range_text(auto least, auto most) {
    const auto print = [](auto value) {
        char digits[32];
        const auto end = std::to_chars(digits, digits + sizeof(digits), value);
        return std::string(digits, end.ptr);
    };
    return print(least) + " to " + print(most);
}

// --- typed access to the fields of a body; a field that is missing or null leaves the default

const JsonValue *given(const JsonFields &fields, std::string_view name) {
    const auto at = fields.find(name);
    return at == fields.end() || at->second.kind == Kind::null ? nullptr : &at->second;
}

Status read_string(const JsonFields &fields, std::string_view name, bool required, std::string &out) {
    const JsonValue *value = given(fields, name);
    if (!value) return required ? bad_field(name, "is required") : Status();
    if (value->kind != Kind::string) return bad_field(name, "must be a string");
    out = value->text;
    return {};
}

Status read_bool(const JsonFields &fields, std::string_view name, bool &out) {
    const JsonValue *value = given(fields, name);
    if (!value) return Status();
    if (value->kind != Kind::boolean) return bad_field(std::string(name), "must be true or false");
    out = value->text == "true";
    return Status();
}

Status read_seconds(const JsonFields &fields, std::string_view name, bool zero_allowed, double most_s,
                    int64_t &out_ms) {
    const JsonValue *value = given(fields, name);
    if (!value) return {};
    if (value->kind != Kind::integer && value->kind != Kind::real)
        return bad_field(name, "must be a number of seconds");
    const auto seconds = parse_real(value->text);
    if (!seconds || *seconds < 0 || *seconds > most_s || (!zero_allowed && *seconds == 0)) {
        return bad_field(name, "must be in the range " + range_text(0.0, most_s) +
                                   (zero_allowed ? " seconds" : " seconds, and more than 0"));
    }
    out_ms = static_cast<int64_t>(std::ceil(*seconds * 1000));
    return {};
}

// An integer of at least 0; what is larger than `most` counts as `most`.
Status read_capped(const JsonFields &fields, std::string_view name, uint32_t most, uint32_t &out) {
    const JsonValue *value = given(fields, name);
    if (!value) return {};
    if (value->kind != Kind::integer || value->text.starts_with('-')) {
        return bad_field(name, "must be an integer of at least 0");
    }
    const auto number = parse_number<uint32_t>(value->text);
    out = number ? std::min(*number, most) : most;
    return {};
}

Status read_uuid(const JsonFields &fields, std::string_view name, std::optional<Uuid> &out) {
    const JsonValue *value = given(fields, name);
    if (!value) return {};
    if (value->kind == Kind::string) out = Uuid::parse(value->text);
    return out ? Status() : bad_field(name, "must be a UUID");
}

Result<Param> decode_param(const JsonValue &item, size_t index) {
    const auto wrong = [index](std::string_view why) {
        return bad_field("parameters[" + std::to_string(index) + "]", why);
    };
    Param param;
    param.form = Param::Form::typed_json;
    if (item.kind == Kind::array) return wrong("must be a plain value or an object with type and value");
    if (item.kind == Kind::null) return param;
    if (item.kind != Kind::object) {
        param.value = to_json(item);
        return param;
    }
    auto fields = parse_fields(item.text, {"type", "value"});
    if (!fields.ok()) return wrong("is not valid");
    if (Status status = read_string(*fields, "type", true, param.type); !status.ok() || param.type.empty()) {
        return wrong("needs a type");
    }
    const auto value = fields->find("value");
    if (value == fields->end()) return wrong("needs a value");
    if (value->second.kind == Kind::object) return wrong("has an object as its value");
    if (value->second.kind != Kind::null) param.value = to_json(value->second);
    return param;
}

Result<std::vector<Param>> decode_params(const JsonFields &fields) {
    std::vector<Param> params;
    const JsonValue *value = given(fields, "parameters");
    if (!value) return params;
    if (value->kind != Kind::array) return bad_field("parameters", "must be an array");
    params.reserve(value->items.size());
    for (const JsonValue &item : value->items) {
        ROOST_ASSIGN_OR_RETURN(Param param, decode_param(item, params.size()));
        params.push_back(std::move(param));
    }
    return params;
}

// --- times

// Reads exactly `digits` digits off the front.
std::optional<int> take_digits(std::string_view &text, size_t digits) {
    if (text.size() < digits) return std::nullopt;
    const auto value = parse_number<unsigned>(text.substr(0, digits));
    if (!value) return std::nullopt;
    text.remove_prefix(digits);
    return static_cast<int>(*value);
}

bool take(std::string_view &text, std::string_view any_of) {
    if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
    text.remove_prefix(1);
    return true;
}

// "12:34", "12:34:56", "12:34:56.789"
std::optional<int64_t> take_clock_us(std::string_view &text) {
    const auto hour = take_digits(text, 2);
    if (!hour || *hour > 23 || !take(text, ":")) return std::nullopt;
    const auto minute = take_digits(text, 2);
    if (!minute || *minute > 59) return std::nullopt;
    int64_t us = (*hour * 60 + *minute) * int64_t{60'000'000};
    if (!take(text, ":")) return us;
    const auto second = take_digits(text, 2);
    if (!second || *second > 59) return std::nullopt;
    us += *second * int64_t{1'000'000};
    if (!take(text, ".")) return us;
    int64_t unit_us = 100'000;
    if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
    while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
        us += (text.front() - '0') * unit_us;
        unit_us /= 10;
        text.remove_prefix(1);
    }
    return us;
}

// "Z", "+02:00", "+0200", "+02". A '+' that a query string turned into a blank counts.
std::optional<int64_t> take_offset_us(std::string_view &text) {
    if (text.empty() || take(text, "Zz")) return 0;
    const bool negative = text.front() == '-';
    if (!take(text, "+- ")) return std::nullopt;
    const auto hours = take_digits(text, 2);
    if (!hours || *hours > 18) return std::nullopt;
    int minutes = 0;
    if (!text.empty()) {
        take(text, ":");
        const auto given_minutes = take_digits(text, 2);
        if (!given_minutes || *given_minutes > 59) return std::nullopt;
        minutes = *given_minutes;
    }
    const int64_t us = (*hours * 60 + minutes) * int64_t{60'000'000};
    return negative ? -us : us;
}

Status read_time(const QueryString &query, std::string_view name, int64_t &out_us) {
    const std::string *text = query.find(name);
    if (!text) return {};
    const auto us = parse_time_us(*text);
    if (!us) return bad_field(name, "must be an ISO 8601 time");
    out_us = *us;
    return {};
}

Status read_uuid(const QueryString &query, std::string_view name, std::optional<Uuid> &out) {
    const std::string *text = query.find(name);
    if (!text) return {};
    out = Uuid::parse(*text);
    return out ? Status() : bad_field(name, "must be a UUID");
}

Status read_order(const QueryString &query, meta::StatementFilter &filter) {
    if (const std::string *sort = query.find("sort")) {
        if (*sort != "started_at" && *sort != "duration") return bad_field("sort", "must be started_at or duration");
        filter.by_duration = *sort == "duration";
    }
    if (const std::string *dir = query.find("dir")) {
        if (*dir != "asc" && *dir != "desc") return bad_field("dir", "must be asc or desc");
        filter.ascending = *dir == "asc";
    }
    return {};
}

Status read_kinds(const QueryString &query, meta::StatementFilter &filter) {
    for (const std::string_view name : query.all("status")) {
        const auto status = meta::parse_status(name);
        if (!status) return bad_field("status", "must be queued, running, done, failed or cancelled");
        filter.statuses.push_back(*status);
    }
    for (const std::string_view type : query.all("statement_type")) {
        auto kinds = kinds_of_type(type);
        if (!kinds) {
            return bad_field(
                "statement_type",
                "must be select, insert, update, delete, merge, copy, create, alter, drop, describe or other");
        }
        filter.kinds.insert(filter.kinds.end(), kinds->begin(), kinds->end());
    }
    if (const std::string *origin = query.find("origin")) {
        static constexpr std::string_view kOrigins[] = {"interactive", "session", "scheduled", "import"};
        if (std::ranges::find(kOrigins, *origin) == std::end(kOrigins)) {
            return bad_field("origin", "must be interactive, session, scheduled or import");
        }
        filter.origin = *origin;
    }
    return {};
}

std::string_view type_of(sql::Kind kind) {
    using enum sql::Kind;
    switch (kind) {
        case select:
            return "select";
        case insert:
            return "insert";
        case update:
            return "update";
        case delete_rows:
            return "delete";
        case merge:
            return "merge";
        case copy:
            return "copy";
        case create_table:
        case create_table_as:
        case create_view:
        case create_schema:
        case create_other:
            return "create";
        case alter:
            return "alter";
        case drop:
            return "drop";
        case describe:
        case explain:
        case show:
            return "describe";
        default:
            return "other";
    }
}

constexpr uint8_t kLastKind = static_cast<uint8_t>(sql::Kind::other);

}  // namespace

Status bad_field(std::string_view field, std::string_view message) {
    return Status(Code::invalid_argument, std::string(field) + " " + std::string(message) + ".")
        .with_detail("field: " + std::string(field));
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank) {
    std::string out;
    out.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
            const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0) return std::nullopt;
            c = static_cast<char>(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_blank) {
            c = ' ';
        }
        if (c == '\0') return std::nullopt;
        out += c;
    }
    if (!is_utf8(out)) return std::nullopt;
    return out;
}

Result<QueryString> QueryString::parse(std::string_view text, const DecodeLimits &limits) {
    QueryString query;
    while (!text.empty()) {
        const size_t end = std::min(text.find('&'), text.size());
        const std::string_view field = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (field.empty()) continue;
        if (query.fields_.size() >= limits.query_fields_max) return bad_target("The query string has too many fields.");
        const size_t equals = std::min(field.find('='), field.size());
        auto name = percent_decode(field.substr(0, equals), true);
        auto value = percent_decode(field.substr(std::min(equals + 1, field.size())), true);
        if (!name || !value) return bad_target("The query string is not valid percent-encoded UTF-8.");
        query.fields_.emplace_back(std::move(*name), std::move(*value));
    }
    return query;
}

const std::string *QueryString::find(std::string_view name) const {
    for (auto field = fields_.rbegin(); field != fields_.rend(); ++field) {
        if (field->first == name) return &field->second;
    }
    return nullptr;
}

std::vector<std::string_view> QueryString::all(std::string_view name) const {
    std::vector<std::string_view> values;
    for (const auto &[key, value] : fields_) {
        if (key == name) values.push_back(value);
    }
    return values;
}

Result<uint64_t> QueryString::integer(std::string_view name, uint64_t fallback, uint64_t least, uint64_t most) const {
    const std::string *text = find(name);
    if (!text) return fallback;
    const auto value = parse_number<uint64_t>(*text);
    if (!value || *value < least || *value > most) {
        return bad_field(name, "must be an integer in the range " + range_text(least, most));
    }
    return *value;
}

Result<double> QueryString::real(std::string_view name, double fallback, double least, double most) const {
    const std::string *text = find(name);
    if (!text) return fallback;
    const auto value = parse_real(*text);
    if (!value || *value < least || *value > most) {
        return bad_field(name, "must be a number in the range " + range_text(least, most));
    }
    return *value;
}

Result<bool> QueryString::flag(std::string_view name, bool fallback) const {
    const std::string *text = find(name);
    if (!text) return fallback;
    if (*text == "true" || *text == "1") return true;
    if (*text == "false" || *text == "0") return false;
    return bad_field(name, "must be true or false");
}

Result<Target> parse_target(std::string_view text, const DecodeLimits &limits) {
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (!text.starts_with(scheme)) continue;
        text.remove_prefix(scheme.size());
        text.remove_prefix(std::min(text.find_first_of("/?"), text.size()));
        if (text.empty()) text = "/";
        break;
    }
    if (!text.starts_with('/')) return bad_target("The request's target must start with '/'.");
    text = text.substr(0, text.find('#'));
    const size_t mark = std::min(text.find('?'), text.size());
    Target target;
    ROOST_ASSIGN_OR_RETURN(target.query, QueryString::parse(text.substr(std::min(mark + 1, text.size())), limits));
    std::string_view path = text.substr(1, mark - std::min<size_t>(mark, 1));
    while (true) {
        const size_t end = std::min(path.find('/'), path.size());
        auto segment = percent_decode(path.substr(0, end), false);
        if (!segment) return bad_target("The path is not valid percent-encoded UTF-8.");
        target.segments.push_back(std::move(*segment));
        if (target.segments.size() > limits.segments_max) return bad_target("The path has too many segments.");
        if (end == path.size()) return target;
        path.remove_prefix(end + 1);
    }
}

std::string encode_cursor(const Uuid &statement, uint64_t offset_rows) {
    char text[40] = {'r'};
    char *end = std::to_chars(text + 1, text + sizeof(text), offset_rows, 16).ptr;
    *end++ = '-';
    end = std::to_chars(end, text + sizeof(text), cursor_check(statement, offset_rows), 16).ptr;
    return {text, end};
}

Result<uint64_t> decode_cursor(const Uuid &statement, std::string_view cursor) {
    const Status invalid =
        bad_field("cursor", "is not one that this statement's pages gave").with_name("invalid_cursor");
    const size_t dash = cursor.find('-');
    if (!cursor.starts_with('r') || dash == std::string_view::npos) return invalid;
    const auto offset_rows = parse_number<uint64_t>(cursor.substr(1, dash - 1), 16);
    const auto check = parse_number<uint32_t>(cursor.substr(dash + 1), 16);
    if (!offset_rows || !check || *check != cursor_check(statement, *offset_rows)) return invalid;
    return *offset_rows;
}

std::optional<int64_t> parse_time_us(std::string_view text) {
    const auto year = take_digits(text, 4);
    if (!year || !take(text, "-")) return std::nullopt;
    const auto month = take_digits(text, 2);
    if (!month || !take(text, "-")) return std::nullopt;
    const auto day = take_digits(text, 2);
    if (!day) return std::nullopt;
    namespace chrono = std::chrono;
    const chrono::year_month_day date(chrono::year(*year), chrono::month(static_cast<unsigned>(*month)),
                                      chrono::day(static_cast<unsigned>(*day)));
    if (!date.ok()) return std::nullopt;
    int64_t us = chrono::sys_days(date).time_since_epoch().count() * int64_t{86'400'000'000};
    if (text.empty()) return us;
    if (!take(text, "Tt ")) return std::nullopt;
    const auto clock_us = take_clock_us(text);
    if (!clock_us) return std::nullopt;
    const auto offset_us = take_offset_us(text);
    if (!offset_us || !text.empty()) return std::nullopt;
    return us + *clock_us - *offset_us;
}

std::string_view statement_type(std::string_view kind_name) {
    for (uint8_t i = 0; i <= kLastKind; ++i) {
        const auto kind = static_cast<sql::Kind>(i);
        if (sql::kind_name(kind) == kind_name) return type_of(kind);
    }
    return "other";
}

std::optional<std::vector<std::string>> kinds_of_type(std::string_view type) {
    std::vector<std::string> kinds;
    for (uint8_t i = 0; i <= kLastKind; ++i) {
        const auto kind = static_cast<sql::Kind>(i);
        if (type_of(kind) == type) kinds.emplace_back(sql::kind_name(kind));
    }
    if (kinds.empty()) return std::nullopt;
    return kinds;
}

Result<SubmitBody> decode_submit(std::string_view body, const DecodeLimits &limits) {
    ROOST_ASSIGN_OR_RETURN(const JsonFields fields,
                           parse_fields(body, {"sql", "catalog", "agent_id", "timeout_s", "wait_timeout_s",
                                               "first_page_limit", "parameters"}));
    SubmitBody submit;
    submit.timeout_ms = static_cast<int64_t>(limits.timeout_default_s * 1000);
    submit.first_page_rows = limits.first_page_max_rows;
    ROOST_RETURN_IF_ERROR(read_string(fields, "sql", true, submit.sql));
    ROOST_RETURN_IF_ERROR(read_string(fields, "catalog", false, submit.catalog));
    ROOST_RETURN_IF_ERROR(read_uuid(fields, "agent_id", submit.agent));
    ROOST_RETURN_IF_ERROR(read_seconds(fields, "timeout_s", false, limits.timeout_max_s, submit.timeout_ms));
    ROOST_RETURN_IF_ERROR(read_seconds(fields, "wait_timeout_s", true, limits.wait_max_s, submit.wait_ms));
    ROOST_RETURN_IF_ERROR(read_capped(fields, "first_page_limit", limits.first_page_max_rows, submit.first_page_rows));
    ROOST_ASSIGN_OR_RETURN(submit.params, decode_params(fields));
    return submit;
}

Result<OpenSessionBody> decode_open_session(std::string_view body) {
    if (body.empty()) return OpenSessionBody();
    // A session is open at once: how long a client would wait for that does not matter.
    ROOST_ASSIGN_OR_RETURN(const JsonFields fields, parse_fields(body, {"catalog", "agent_id"}));
    OpenSessionBody open;
    ROOST_RETURN_IF_ERROR(read_string(fields, "catalog", false, open.catalog));
    ROOST_RETURN_IF_ERROR(read_uuid(fields, "agent_id", open.agent));
    return open;
}

namespace {

Result<std::vector<std::string>> decode_paths(const JsonValue *value, const std::string &field) {
    if (!value || value->kind != Kind::array || value->items.empty()) {
        return bad_field(field, "must be an array of at least one file, glob or folder");
    }
    std::vector<std::string> paths;
    for (const JsonValue &path : value->items) {
        if (path.kind != Kind::string || path.text.empty()) {
            return bad_field(field, "must hold texts that are not empty");
        }
        paths.push_back(path.text);
    }
    return paths;
}

Result<RegisterFiles> decode_in_place(const JsonValue &value) {
    if (value.kind != Kind::object) return bad_field("in_place", "must be an object");
    ROOST_ASSIGN_OR_RETURN(
        const JsonFields fields,
        parse_fields(value.text, {"paths", "allow_missing", "ignore_extra", "skip_registered", "hive_partitioning"},
                     {.items_max = 100'000}));
    RegisterFiles request;
    ROOST_ASSIGN_OR_RETURN(request.patterns, decode_paths(given(fields, "paths"), "in_place.paths"));
    ROOST_RETURN_IF_ERROR(read_bool(fields, "allow_missing", request.allow_missing));
    ROOST_RETURN_IF_ERROR(read_bool(fields, "ignore_extra", request.ignore_extra));
    ROOST_RETURN_IF_ERROR(read_bool(fields, "skip_registered", request.skip_registered));
    if (given(fields, "hive_partitioning")) {
        ROOST_RETURN_IF_ERROR(read_bool(fields, "hive_partitioning", request.hive_partitioning.emplace()));
    }
    return request;
}

}  // namespace

Result<ImportBody> decode_import(std::string_view body, const DecodeLimits &limits) {
    ROOST_ASSIGN_OR_RETURN(
        const JsonFields fields,
        parse_fields(body, {"catalog", "schema", "table", "files", "sources", "in_place", "wait_timeout_s"},
                     {.items_max = 100'000}));
    ImportBody import;
    ROOST_RETURN_IF_ERROR(read_string(fields, "catalog", false, import.catalog));
    ROOST_RETURN_IF_ERROR(read_string(fields, "schema", true, import.schema));
    ROOST_RETURN_IF_ERROR(read_string(fields, "table", true, import.table));
    ROOST_RETURN_IF_ERROR(read_seconds(fields, "wait_timeout_s", true, limits.wait_max_s, import.wait_ms));
    if (const JsonValue *in_place = given(fields, "in_place")) {
        for (const char *other : {"files", "sources"}) {
            if (given(fields, other)) return bad_field(other, "can't stand beside in_place");
        }
        ROOST_ASSIGN_OR_RETURN(import.in_place, decode_in_place(*in_place));
        return import;
    }
    if (const JsonValue *sources = given(fields, "sources")) {
        if (given(fields, "files")) return bad_field("files", "can't stand beside sources");
        ROOST_ASSIGN_OR_RETURN(import.sources, decode_paths(sources, "sources"));
        return import;
    }
    const JsonValue *files = given(fields, "files");
    if (!files || files->kind != Kind::array || files->items.empty()) {
        return bad_field("files", "must be an array of at least one file");
    }
    for (const JsonValue &item : files->items) {
        const std::string at = "files[" + std::to_string(import.files.size()) + "]";
        if (item.kind != Kind::object) return bad_field(at, "must be an object");
        ROOST_ASSIGN_OR_RETURN(const JsonFields parts, parse_fields(item.text, {"name", "original", "format"}));
        ImportBody::File file;
        ROOST_RETURN_IF_ERROR(read_string(parts, "name", true, file.name));
        ROOST_RETURN_IF_ERROR(read_string(parts, "original", false, file.original));
        ROOST_RETURN_IF_ERROR(read_string(parts, "format", true, file.format));
        if (file.format != "parquet" && file.format != "csv") {
            return bad_field(at + ".format", "must be parquet or csv");
        }
        if (file.original.empty()) file.original = file.name;
        import.files.push_back(std::move(file));
    }
    return import;
}

Result<AccessBody> decode_access(std::string_view body) {
    ROOST_ASSIGN_OR_RETURN(const JsonFields fields,
                           parse_fields(body, {"name", "email", "password", "slug", "user_id", "tier", "schema_name",
                                               "table_name", "access_mode", "role", "is_active"}));
    AccessBody access;
    for (const auto &[name, target] : {std::pair<const char *, std::string *>{"name", &access.name},
                                       {"email", &access.email},
                                       {"password", &access.password},
                                       {"slug", &access.slug},
                                       {"user_id", &access.user_id},
                                       {"tier", &access.tier},
                                       {"schema_name", &access.schema_name},
                                       {"table_name", &access.table_name},
                                       {"access_mode", &access.access_mode}}) {
        ROOST_RETURN_IF_ERROR(read_string(fields, name, false, *target));
    }
    if (given(fields, "role")) {
        ROOST_RETURN_IF_ERROR(read_string(fields, "role", false, access.role.emplace()));
    }
    if (const JsonValue *active = given(fields, "is_active")) {
        if (active->kind != Kind::boolean) return bad_field("is_active", "must be true or false");
        access.active = active->text == "true";
    }
    return access;
}

Result<std::string> decode_sql(std::string_view body) {
    ROOST_ASSIGN_OR_RETURN(const JsonFields fields, parse_fields(body, {"sql"}));
    std::string sql;
    ROOST_RETURN_IF_ERROR(read_string(fields, "sql", true, sql));
    return sql;
}

Result<std::string> decode_profile(std::string_view body) {
    ROOST_ASSIGN_OR_RETURN(const JsonFields fields, parse_fields(body, {"profile"}));
    std::string profile;
    ROOST_RETURN_IF_ERROR(read_string(fields, "profile", true, profile));
    return profile;
}

Result<CacheBody> decode_cache_body(std::string_view body) {
    ROOST_ASSIGN_OR_RETURN(const JsonFields fields, parse_fields(body, {"action", "table", "node"}));
    CacheBody request;
    std::string action;
    ROOST_RETURN_IF_ERROR(read_string(fields, "action", true, action));
    ROOST_RETURN_IF_ERROR(read_string(fields, "table", true, request.table));
    ROOST_RETURN_IF_ERROR(read_string(fields, "node", false, request.node));
    constexpr std::string_view kActions[] = {"warm", "pin", "unpin", "evict"};
    const auto found = std::ranges::find(kActions, action);
    if (found == std::end(kActions)) {
        return Status(Code::invalid_argument, "action must be warm, pin, unpin or evict");
    }
    request.action = static_cast<CacheWork::Action>(found - std::begin(kActions));
    return request;
}

Result<HistoryQuery> decode_history(const QueryString &query, const DecodeLimits &limits) {
    HistoryQuery history;
    meta::StatementFilter &filter = history.filter;
    ROOST_RETURN_IF_ERROR(read_kinds(query, filter));
    ROOST_RETURN_IF_ERROR(read_time(query, "since", filter.since_us));
    ROOST_RETURN_IF_ERROR(read_time(query, "until", filter.until_us));
    ROOST_RETURN_IF_ERROR(read_uuid(query, "session_id", filter.session));
    ROOST_RETURN_IF_ERROR(read_uuid(query, "agent_id", filter.node));
    ROOST_RETURN_IF_ERROR(read_uuid(query, "user_id", filter.user));
    ROOST_RETURN_IF_ERROR(read_order(query, filter));
    if (const std::string *text = query.find("q")) filter.text = *text;
    if (const std::string *cursor = query.find("cursor")) filter.cursor = *cursor;
    ROOST_ASSIGN_OR_RETURN(const uint64_t slower_ms, query.integer("slower_than_ms", 0, 0, 1'000'000'000'000));
    filter.slower_than_ms = static_cast<int64_t>(slower_ms);
    ROOST_ASSIGN_OR_RETURN(const uint64_t limit,
                           query.integer("limit", limits.page_default_rows, 1, limits.page_max_rows));
    filter.limit = static_cast<uint32_t>(limit);
    ROOST_ASSIGN_OR_RETURN(history.all_workspaces, query.flag("all_workspaces", false));
    return history;
}

Result<meta::AuditFilter> decode_audit(const QueryString &query, const DecodeLimits &limits) {
    meta::AuditFilter filter;
    ROOST_RETURN_IF_ERROR(read_time(query, "since", filter.since_us));
    ROOST_RETURN_IF_ERROR(read_time(query, "until", filter.until_us));
    if (const std::string *event = query.find("event")) filter.event = *event;
    if (const std::string *rule = query.find("rule")) filter.rule = *rule;
    if (const std::string *user = query.find("user")) filter.user_name = *user;
    ROOST_ASSIGN_OR_RETURN(filter.before, query.integer("cursor", 0, 0, INT64_MAX));
    ROOST_ASSIGN_OR_RETURN(const uint64_t limit,
                           query.integer("limit", limits.page_default_rows, 1, limits.page_max_rows));
    filter.limit = static_cast<uint32_t>(limit);
    return filter;
}

std::string_view bearer_token(std::string_view authorization) {
    constexpr std::string_view kScheme = "bearer ";
    if (authorization.size() <= kScheme.size()) return {};
    for (size_t i = 0; i < kScheme.size(); ++i) {
        const char c = authorization[i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != kScheme[i]) return {};
    }
    authorization.remove_prefix(kScheme.size());
    while (authorization.starts_with(' ')) authorization.remove_prefix(1);
    while (authorization.ends_with(' ')) authorization.remove_suffix(1);
    return authorization;
}

std::string_view client_product(std::string_view user_agent) {
    constexpr size_t kMaxBytes = 128;
    const std::string_view word = user_agent.substr(0, user_agent.find(' ')).substr(0, kMaxBytes);
    return is_utf8(word) ? word : std::string_view();
}

}  // namespace roost::http
