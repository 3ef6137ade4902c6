#include "service/profile.h"

#include <nlohmann/json.hpp>

namespace roost::service {

std::string command_tag(const sql::Statement &statement, const Completion &completion, uint64_t rows) {
    using sql::Kind;
    const std::string affected = std::to_string(completion.affected.value_or(0));
    const std::string &object = statement.tag_object;
    switch (statement.kind) {
        case Kind::empty:
            return "";
        case Kind::insert:
            return "INSERT 0 " + (statement.returning ? std::to_string(rows) : affected);
        case Kind::update:
            return "UPDATE " + (statement.returning ? std::to_string(rows) : affected);
        case Kind::delete_rows:
            return "DELETE " + (statement.returning ? std::to_string(rows) : affected);
        case Kind::merge:
            return "MERGE " + affected;
        case Kind::create_table:
            return "CREATE TABLE";
        case Kind::create_table_as:
            return "SELECT " + affected;
        case Kind::create_view:
            return "CREATE VIEW";
        case Kind::create_schema:
            return "CREATE SCHEMA";
        case Kind::create_other:
            return "CREATE " + (object.empty() ? std::string("OBJECT") : object);
        case Kind::alter:
            return "ALTER " + (object.empty() ? std::string("TABLE") : object);
        case Kind::drop:
            return "DROP " + (object.empty() ? std::string("TABLE") : object);
        case Kind::truncate:
            return "TRUNCATE TABLE";
        case Kind::comment_on:
            return "COMMENT";
        case Kind::explain:
            return "EXPLAIN";
        case Kind::copy:
            return "COPY " + affected;
        case Kind::begin:
            return "BEGIN";
        case Kind::commit:
            return "COMMIT";
        case Kind::rollback:
            return "ROLLBACK";
        case Kind::use:
            return "USE";
        default:
            return "SELECT " + std::to_string(rows);
    }
}

std::string error_text(const Status &status) {
    std::string text = status.message();
    const Error &error = status.error();
    if (!error.detail.empty()) text += "\n" + error.detail;
    if (!error.hint.empty()) text += "\nHINT: " + error.hint;
    return text;
}

std::string json_quote(std::string_view text) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        switch (c) {
            case '"':
                out += "\\\"";
                break;
            case '\\':
                out += "\\\\";
                break;
            case '\n':
                out += "\\n";
                break;
            case '\r':
                out += "\\r";
                break;
            case '\t':
                out += "\\t";
                break;
            default:
                if (static_cast<unsigned char>(c) < 0x20) {
                    out += "\\u00";
                    out += digits[static_cast<uint8_t>(c) >> 4];
                    out += digits[static_cast<uint8_t>(c) & 15];
                } else {
                    out += c;
                }
        }
    }
    out += '"';
    return out;
}

namespace {

void put(std::string &out, std::string_view name, int64_t value) {
    out += ",\"";
    out += name;
    out += "\":";
    out += std::to_string(value);
}

std::string bytes_json(const ReadBytes &bytes) {
    std::string out = "\"store_bytes\":" + std::to_string(bytes.store_bytes);
    put(out, "peer_bytes", static_cast<int64_t>(bytes.peer_bytes));
    put(out, "cache_bytes", static_cast<int64_t>(bytes.cache_bytes));
    put(out, "requests", static_cast<int64_t>(bytes.requests));
    return out;
}

// What was read through the segment cache: in all, by table, by segment.
std::string reads_json(const ProfileFacts &facts) {
    std::string out = "{" + bytes_json(facts.completion->read_bytes()) + ",\"units\":[";
    bool first = true;
    for (const UnitRead &read : facts.completion->reads) {
        const std::string table = facts.table_in ? facts.table_in(read.folder) : std::string();
        out += std::string(first ? "" : ",") + "{\"table\":" + (table.empty() ? "null" : json_quote(table));
        out += "," + bytes_json(read.bytes);
        put(out, "files", static_cast<int64_t>(read.files));
        put(out, "warm_bytes", static_cast<int64_t>(read.warm_bytes));
        out += std::string(",\"written\":") + (read.written ? "true" : "false") + ",\"segments\":[";
        for (size_t i = 0; i < read.segments.size(); ++i) {
            out += std::string(i > 0 ? "," : "") + "{\"file\":" + json_quote(read.segments[i].file) + ",";
            out += bytes_json(read.segments[i].bytes) + "}";
        }
        out += "]}";
        first = false;
    }
    return out + "]}";
}

// What it got of its node's memory, and why. wanted_bytes: null where it asked for no size of its own.
std::string admission_json(const Completion &completion) {
    const MemoryAccount &memory = completion.memory;
    const auto or_null = [](uint64_t bytes) { return bytes == 0 ? std::string("null") : std::to_string(bytes); };
    std::string out = "{\"profile\":" + json_quote(memory.profile) + ",\"why\":" + json_quote(memory.why);
    out += ",\"bucket\":" + (memory.bucket.empty() ? "null" : json_quote(memory.bucket));
    out += ",\"estimate_bytes\":" + or_null(memory.estimate_bytes);
    out += ",\"wanted_bytes\":" + or_null(memory.wanted_bytes);
    put(out, "granted_bytes", static_cast<int64_t>(completion.granted_bytes));
    out += ",\"elastic\":[";
    for (const MemoryAccount::Step &step : memory.elastic) {
        if (out.back() != '[') out += ',';
        out += "{\"at_ms\":" + std::to_string(step.at_us / 1000);
        put(out, "bytes", static_cast<int64_t>(step.elastic_bytes));
        out += '}';
    }
    out += ']';
    put(out, "peak_bytes", static_cast<int64_t>(completion.peak_memory_bytes));
    put(out, "spilled_bytes", static_cast<int64_t>(memory.spilled_bytes));
    put(out, "wait_ms", completion.timings.admission_us / 1000);
    return out + ",\"overdue\":" + (memory.overdue ? "true}" : "false}");
}

}  // namespace

std::string profile_json(const ProfileFacts &facts) {
    std::string out = "{\"statement_id\":" + json_quote(facts.statement.to_string());
    out += ",\"kind\":" + json_quote(facts.kind);
    out += ",\"node\":" + json_quote(facts.node) + ",\"node_name\":" + json_quote(facts.node_name);
    out += ",\"reason\":" + json_quote(facts.decision ? facts.decision->reason : "");
    if (facts.decision && !facts.decision->why.empty()) out += ",\"why\":" + json_quote(facts.decision->why);
    out += ",\"candidates\":[";
    if (facts.decision) {
        for (size_t i = 0; i < facts.decision->candidates.size(); ++i) {
            if (i > 0) out += ',';
            out += json_quote(facts.decision->candidates[i].to_string());
        }
    }
    out += ']';
    put(out, "retries", facts.retries);
    put(out, "conflicts", facts.conflicts);
    put(out, "refused_by", facts.refused_by);
    put(out, "total_us", facts.gateway.total_us);
    out += ",\"stages\":{\"parse_us\":" + std::to_string(facts.gateway.parse_us);
    put(out, "write_lease_us", facts.gateway.lease_us);
    put(out, "route_us", facts.gateway.route_us);
    put(out, "first_frame_us", facts.gateway.first_frame_us);
    if (facts.completion) {
        const NodeTimings &t = facts.completion->timings;
        put(out, "node_queue_us", t.queued_us);
        put(out, "plan_us", t.plan_us);
        put(out, "admission_us", t.admission_us);
        put(out, "execute_us", t.execute_us);
        put(out, "encode_us", t.encode_us);
        put(out, "blocked_us", t.blocked_us);
        put(out, "commit_us", t.commit_us);
    }
    out += '}';
    if (facts.completion) {
        put(out, "admission_wait_ms", facts.completion->timings.admission_us / 1000);
        put(out, "granted_bytes", static_cast<int64_t>(facts.completion->granted_bytes));
        put(out, "peak_memory_bytes", static_cast<int64_t>(facts.completion->peak_memory_bytes));
        out += ",\"admission\":" + admission_json(*facts.completion);
        put(out, "rows", static_cast<int64_t>(facts.completion->rows));
        put(out, "result_bytes", static_cast<int64_t>(facts.completion->result_bytes));
        out += std::string(",\"lane\":\"") + (facts.completion->ran_large ? "slot" : "small") + "\"";
        out += std::string(",\"catalog\":\"") + (facts.completion->frozen ? "frozen" : "live") + "\"";
        if (!facts.completion->reads.empty()) out += ",\"reads\":" + reads_json(facts);
        if (!facts.completion->profile_json.empty()) out += ",\"operators\":" + facts.completion->profile_json;
    }
    out += '}';
    return out;
}

std::string column_schema_json(const std::vector<Column> &columns) {
    std::string out = "[";
    for (const Column &column : columns) {
        if (out.size() > 1) out += ',';
        out += "{\"name\":" + json_quote(column.name) + ",\"type\":" + json_quote(column.type) + "}";
    }
    return out + "]";
}

std::vector<Column> parse_column_schema(const std::string &json) {
    std::vector<Column> columns;
    const auto parsed = nlohmann::json::parse(json, nullptr, false);
    if (!parsed.is_array()) return columns;
    for (const auto &entry : parsed) {
        if (!entry.is_object()) continue;
        Column column;
        column.name = entry.value("name", std::string());
        column.type = entry.value("type", std::string());
        columns.push_back(std::move(column));
    }
    return columns;
}

}  // namespace roost::service
