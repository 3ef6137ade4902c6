#include "cluster/messages.h"

namespace roost::cluster {
namespace {

void put_id(Writer &out, const Uuid &id) { out.put_raw(id.raw()); }

Uuid get_id(Reader &in) {
    Uuid id;
    const std::string_view raw = in.get_raw(id.bytes.size());
    if (raw.size() == id.bytes.size()) std::memcpy(id.bytes.data(), raw.data(), raw.size());
    return id;
}

void put_status(Writer &out, const Status &status) {
    out.put_bool(status.ok());
    if (status.ok()) return;
    const Error &error = status.error();
    out.put<uint8_t>(static_cast<uint8_t>(error.code));
    out.put_string(error.name);
    out.put_string(error.sqlstate);
    out.put_string(error.message);
    out.put_string(error.detail);
    out.put_string(error.hint);
    out.put_string(error.rule);
    out.put<uint32_t>(error.position);
    out.put_bool(error.retryable);
}

Status get_status(Reader &in) {
    if (in.get_bool()) return Status();
    Error error;
    const auto code = in.get<uint8_t>();
    const bool known = code > static_cast<uint8_t>(Code::ok) && code <= static_cast<uint8_t>(Code::internal);
    error.code = known ? static_cast<Code>(code) : Code::internal;
    error.name = in.get_string();
    error.sqlstate = in.get_string();
    error.message = in.get_string();
    error.detail = in.get_string();
    error.hint = in.get_string();
    error.rule = in.get_string();
    error.position = in.get<uint32_t>();
    error.retryable = in.get_bool();
    return Status(std::move(error));
}

template <class E>
E get_enum(Reader &in, E last, bool &ok) {
    const auto raw = in.get<uint8_t>();
    if (raw > static_cast<uint8_t>(last)) {
        ok = false;
        return E{};
    }
    return static_cast<E>(raw);
}

Status broken(std::string_view what) { return Status(Code::data_loss, "a broken " + std::string(what) + " message"); }

void put_optional(Writer &out, const std::optional<uint64_t> &value) {
    out.put_bool(value.has_value());
    out.put<uint64_t>(value.value_or(0));
}

// A count of at most `most` items; more is no message of ours.
uint32_t get_limited(Reader &in, size_t least_bytes, size_t most, bool &ok) {
    const uint32_t count = in.get_count(least_bytes);
    if (count <= most) return count;
    ok = false;
    return 0;
}

std::string get_path(Reader &in, bool &ok) {
    const std::string_view path = in.get_view();
    ok = ok && path.size() <= kFolderMaxBytes;
    return std::string(path.substr(0, kFolderMaxBytes));
}

void put_bytes(Writer &out, const ReadBytes &bytes) {
    for (const uint64_t each : {bytes.store_bytes, bytes.peer_bytes, bytes.cache_bytes, bytes.requests}) {
        out.put<uint64_t>(each);
    }
}

ReadBytes get_bytes(Reader &in) {
    ReadBytes bytes;
    for (uint64_t *each : {&bytes.store_bytes, &bytes.peer_bytes, &bytes.cache_bytes, &bytes.requests}) {
        *each = in.get<uint64_t>();
    }
    return bytes;
}

void put_reads(Writer &out, const std::vector<UnitRead> &reads) {
    out.put<uint32_t>(static_cast<uint32_t>(reads.size()));
    for (const UnitRead &read : reads) {
        out.put_string(read.folder);
        put_bytes(out, read.bytes);
        out.put<uint64_t>(read.files);
        out.put<uint64_t>(read.warm_bytes);
        out.put_bool(read.written);
        out.put<uint32_t>(static_cast<uint32_t>(read.segments.size()));
        for (const SegmentRead &segment : read.segments) {
            out.put_string(segment.file);
            put_bytes(out, segment.bytes);
        }
    }
}

std::vector<UnitRead> get_reads(Reader &in, bool &ok) {
    std::vector<UnitRead> reads(get_limited(in, 57, kUnitReadsMax, ok));
    size_t segments = 0;
    for (UnitRead &read : reads) {
        read.folder = get_path(in, ok);
        read.bytes = get_bytes(in);
        read.files = in.get<uint64_t>();
        read.warm_bytes = in.get<uint64_t>();
        read.written = in.get_bool();
        read.segments.resize(get_limited(in, 36, kSegmentReadsMax - segments, ok));
        segments += read.segments.size();
        for (SegmentRead &segment : read.segments) {
            segment.file = get_path(in, ok);
            segment.bytes = get_bytes(in);
        }
    }
    return reads;
}

// In the order of the message.
constexpr uint64_t obs::CacheGauges::*kGauges[] = {
    &obs::CacheGauges::store_bytes, &obs::CacheGauges::peer_bytes, &obs::CacheGauges::cache_bytes,
    &obs::CacheGauges::hits,        &obs::CacheGauges::misses,     &obs::CacheGauges::joined,
    &obs::CacheGauges::inserted,    &obs::CacheGauges::evicted,    &obs::CacheGauges::refused,
    &obs::CacheGauges::corrupt,     &obs::CacheGauges::fetches,    &obs::CacheGauges::fetches_in_flight,
    &obs::CacheGauges::warm_bytes,  &obs::CacheGauges::room_bytes, &obs::CacheGauges::disk_mode};

void put_cache_report(Writer &out, const CacheReport &report) {
    out.put_bool(report.on);
    if (!report.on) return;
    out.put_bool(report.all);
    out.put<uint32_t>(static_cast<uint32_t>(report.folders.size()));
    for (const WarmFolder &folder : report.folders) {
        out.put_string(folder.folder);
        out.put<uint64_t>(folder.warm_bytes);
        out.put<uint64_t>(folder.files);
    }
    for (const auto gauge : kGauges) out.put<uint64_t>(report.gauges.*gauge);
}

CacheReport get_cache_report(Reader &in, bool &ok) {
    CacheReport report;
    report.on = in.get_bool();
    if (!report.on) return report;
    report.all = in.get_bool();
    report.folders.resize(get_limited(in, 20, kWarmFoldersMax, ok));
    for (WarmFolder &folder : report.folders) {
        folder.folder = get_path(in, ok);
        folder.warm_bytes = in.get<uint64_t>();
        folder.files = in.get<uint64_t>();
    }
    for (const auto gauge : kGauges) report.gauges.*gauge = in.get<uint64_t>();
    return report;
}

void put_memory_report(Writer &out, const MemoryReport &report) {
    out.put_string(report.profile);
    out.put<uint32_t>(report.pressure);
    for (const uint64_t number :
         {report.required_bytes, report.elastic_bytes, report.lane_bytes, report.estimates_abandoned,
          report.admission_timeouts, report.not_shrunk, report.cancelled_for_memory}) {
        out.put<uint64_t>(number);
    }
    out.put<uint32_t>(static_cast<uint32_t>(report.groups.size()));
    for (const MemoryReport::Group &group : report.groups) {
        out.put_string(group.name);
        out.put<uint32_t>(group.running);
        out.put<uint32_t>(group.waiting);
        out.put<uint64_t>(group.required_bytes);
    }
}

MemoryReport get_memory_report(Reader &in, bool &ok) {
    MemoryReport report;
    report.profile = in.get_string();
    report.pressure = in.get<uint32_t>();
    for (uint64_t *number :
         {&report.required_bytes, &report.elastic_bytes, &report.lane_bytes, &report.estimates_abandoned,
          &report.admission_timeouts, &report.not_shrunk, &report.cancelled_for_memory}) {
        *number = in.get<uint64_t>();
    }
    report.groups.resize(get_limited(in, 20, kGroupsMax, ok));
    for (MemoryReport::Group &group : report.groups) {
        group.name = in.get_string();
        group.running = in.get<uint32_t>();
        group.waiting = in.get<uint32_t>();
        group.required_bytes = in.get<uint64_t>();
    }
    return report;
}

void put_memory(Writer &out, const MemoryAccount &memory) {
    for (const uint64_t bytes : {memory.estimate_bytes, memory.wanted_bytes, memory.spilled_bytes}) {
        out.put<uint64_t>(bytes);
    }
    for (const std::string *text : {&memory.profile, &memory.bucket, &memory.why}) out.put_string(*text);
    out.put_bool(memory.overdue);
    out.put<uint32_t>(static_cast<uint32_t>(memory.elastic.size()));
    for (const MemoryAccount::Step &step : memory.elastic) {
        out.put<int64_t>(step.at_us);
        out.put<uint64_t>(step.elastic_bytes);
    }
}

MemoryAccount get_memory(Reader &in, bool &ok) {
    MemoryAccount memory;
    for (uint64_t *bytes : {&memory.estimate_bytes, &memory.wanted_bytes, &memory.spilled_bytes}) {
        *bytes = in.get<uint64_t>();
    }
    for (std::string *text : {&memory.profile, &memory.bucket, &memory.why}) *text = in.get_string();
    memory.overdue = in.get_bool();
    memory.elastic.resize(get_limited(in, 16, kElasticStepsMax, ok));
    for (MemoryAccount::Step &step : memory.elastic) {
        step.at_us = in.get<int64_t>();
        step.elastic_bytes = in.get<uint64_t>();
    }
    return memory;
}

}  // namespace

std::string encode(const CacheWork &message) {
    Writer out;
    out.put<uint8_t>(static_cast<uint8_t>(message.action));
    out.put_string(message.catalog);
    out.put_string(message.folder);
    out.put<uint32_t>(static_cast<uint32_t>(message.files.size()));
    for (const CacheWork::File &file : message.files) {
        out.put_string(file.path);
        out.put<uint64_t>(file.size_bytes);
    }
    return out.take();
}

Result<CacheWork> decode_cache_work(std::string_view bytes) {
    Reader in(bytes);
    CacheWork message;
    bool ok = true;
    message.action = get_enum(in, CacheWork::Action::evict, ok);
    message.catalog = get_path(in, ok);
    message.folder = get_path(in, ok);
    message.files.resize(get_limited(in, 12, kCacheFilesMax, ok));
    for (CacheWork::File &file : message.files) {
        file.path = get_path(in, ok);
        file.size_bytes = in.get<uint64_t>();
    }
    if (!ok || !in.done()) return broken("cache work");
    return message;
}

std::string encode(const Hello &message) {
    Writer out;
    out.put<uint32_t>(message.protocol);
    out.put_string(message.version);
    out.put_string(message.name);
    put_id(out, message.node);
    out.put<uint64_t>(message.incarnation);
    out.put_string(message.pool);
    out.put_string(message.engine_version);
    out.put_string(message.dir);
    out.put<int64_t>(message.pid);
    out.put<uint32_t>(message.cpus);
    out.put<uint64_t>(message.memory_bytes);
    out.put<uint64_t>(message.budget_bytes);
    out.put_bool(message.reports_bytes);
    return out.take();
}

Result<Hello> decode_hello(std::string_view bytes) {
    Reader in(bytes);
    Hello message;
    message.protocol = in.get<uint32_t>();
    message.version = in.get_string();
    message.name = in.get_string();
    if (message.protocol != kProtocol && !message.version.empty() && message.version.size() < 100) {
        return Status(Code::failed_precondition, "node '" + message.name.substr(0, 100) + "' runs roost " +
                                                     message.version + ", which speaks protocol " +
                                                     std::to_string(message.protocol) + "; this gateway speaks " +
                                                     std::to_string(kProtocol))
            .with_name("node_incompatible")
            .with_hint("bring both to one version");
    }
    message.node = get_id(in);
    message.incarnation = in.get<uint64_t>();
    message.pool = in.get_string();
    message.engine_version = in.get_string();
    message.dir = in.get_string();
    message.pid = in.get<int64_t>();
    message.cpus = in.get<uint32_t>();
    message.memory_bytes = in.get<uint64_t>();
    message.budget_bytes = in.get<uint64_t>();
    message.reports_bytes = in.get_bool();
    if (!in.done() || message.node.is_nil() || message.cpus == 0) return broken("hello");
    return message;
}

std::string encode(const Heartbeat &message) {
    Writer out;
    out.put<uint32_t>(message.running);
    out.put<uint32_t>(message.waiting);
    out.put<uint32_t>(message.queued);
    out.put<uint64_t>(message.granted_bytes);
    out.put<uint64_t>(message.used_bytes);
    out.put<uint64_t>(message.resident_bytes);
    out.put<uint32_t>(message.cpus);
    out.put_bool(message.stopping);
    put_memory_report(out, message.memory);
    put_cache_report(out, message.cache);
    return out.take();
}

Result<Heartbeat> decode_heartbeat(std::string_view bytes) {
    Reader in(bytes);
    Heartbeat message;
    message.running = in.get<uint32_t>();
    message.waiting = in.get<uint32_t>();
    message.queued = in.get<uint32_t>();
    message.granted_bytes = in.get<uint64_t>();
    message.used_bytes = in.get<uint64_t>();
    message.resident_bytes = in.get<uint64_t>();
    message.cpus = in.get<uint32_t>();
    message.stopping = in.get_bool();
    bool ok = true;
    message.memory = get_memory_report(in, ok);
    message.cache = get_cache_report(in, ok);
    if (!ok || !in.done()) return broken("heartbeat");
    return message;
}

std::string encode(const Welcome &message) {
    Writer out;
    out.put_string(message.gateway_version);
    out.put<uint32_t>(message.heartbeat_ms);
    return out.take();
}

Result<Welcome> decode_welcome(std::string_view bytes) {
    Reader in(bytes);
    Welcome message;
    message.gateway_version = in.get_string();
    message.heartbeat_ms = in.get<uint32_t>();
    if (!in.done() || message.heartbeat_ms == 0) return broken("welcome");
    return message;
}

std::string encode(const Progress &message) {
    Writer out;
    out.put<uint8_t>(static_cast<uint8_t>(message.phase));
    out.put<uint32_t>(message.place);
    out.put_f64(message.percent);
    return out.take();
}

Result<Progress> decode_progress(std::string_view bytes) {
    Reader in(bytes);
    Progress message;
    bool ok = true;
    message.phase = get_enum(in, Progress::Phase::running, ok);
    message.place = in.get<uint32_t>();
    message.percent = in.get_f64();
    if (!ok || !in.done()) return broken("progress");
    return message;
}

std::string encode(const Cancel &message) {
    Writer out;
    put_status(out, message.reason);
    return out.take();
}

Result<Cancel> decode_cancel(std::string_view bytes) {
    Reader in(bytes);
    Cancel message{get_status(in)};
    if (!in.done() || message.reason.ok()) return broken("cancel");
    return message;
}

std::string encode(const SetProfile &message) {
    Writer out;
    out.put_string(message.profile);
    return out.take();
}

Result<SetProfile> decode_set_profile(std::string_view bytes) {
    Reader in(bytes);
    SetProfile message{in.get_string()};
    if (!in.done()) return broken("profile");
    return message;
}

std::string encode(const ReadPage &message) {
    Writer out;
    put_id(out, message.statement);
    out.put<uint64_t>(message.offset_rows);
    out.put<uint32_t>(message.limit_rows);
    return out.take();
}

Result<ReadPage> decode_read_page(std::string_view bytes) {
    Reader in(bytes);
    ReadPage message;
    message.statement = get_id(in);
    message.offset_rows = in.get<uint64_t>();
    message.limit_rows = in.get<uint32_t>();
    if (!in.done()) return broken("read_page");
    return message;
}

namespace {

void put_params(Writer &out, const std::vector<Param> &params) {
    out.put<uint32_t>(static_cast<uint32_t>(params.size()));
    for (const Param &param : params) {
        out.put<uint8_t>(static_cast<uint8_t>(param.form));
        out.put<uint32_t>(param.pg_oid);
        out.put_string(param.type);
        out.put_bool(param.value.has_value());
        out.put_string(param.value.value_or(std::string()));
    }
}

bool get_params(Reader &in, std::vector<Param> &params) {
    bool ok = true;
    const uint32_t count = in.get_count(14);
    params.resize(count);
    for (Param &param : params) {
        param.form = get_enum(in, Param::Form::typed_json, ok);
        param.pg_oid = in.get<uint32_t>();
        param.type = in.get_string();
        const bool has_value = in.get_bool();
        std::string value = in.get_string();
        if (has_value) param.value = std::move(value);
    }
    return ok;
}

void put_rights(Writer &out, const Rights &rights) {
    const auto put_privilege = [&out](Privilege privilege) { out.put<uint8_t>(static_cast<uint8_t>(privilege)); };
    out.put<uint32_t>(static_cast<uint32_t>(rights.size()));
    for (const auto &[catalog, own] : rights) {
        out.put_string(catalog);
        put_privilege(own.all);
        out.put<uint32_t>(static_cast<uint32_t>(own.schemas.size()));
        for (const auto &[schema, privilege] : own.schemas) {
            out.put_string(schema);
            put_privilege(privilege);
        }
        out.put<uint32_t>(static_cast<uint32_t>(own.tables.size()));
        for (const auto &[table, privilege] : own.tables) {
            out.put_string(table.first);
            out.put_string(table.second);
            put_privilege(privilege);
        }
    }
}

Rights get_rights(Reader &in, bool &ok) {
    Rights rights;
    for (uint32_t catalogs = in.get_count(13); catalogs > 0; --catalogs) {
        CatalogRights &own = rights[in.get_string()];
        own.all = get_enum(in, Privilege::writer, ok);
        for (uint32_t schemas = in.get_count(5); schemas > 0; --schemas) {
            const std::string schema = in.get_string();
            own.schemas[schema] = get_enum(in, Privilege::writer, ok);
        }
        for (uint32_t tables = in.get_count(9); tables > 0; --tables) {
            std::string schema = in.get_string();
            std::string table = in.get_string();
            own.tables[{std::move(schema), std::move(table)}] = get_enum(in, Privilege::writer, ok);
        }
    }
    return rights;
}

template <class T>
void put_numbers(Writer &out, const std::vector<T> &numbers) {
    out.put<uint32_t>(static_cast<uint32_t>(numbers.size()));
    for (const T number : numbers) out.put<T>(number);
}

template <class T>
std::vector<T> get_numbers(Reader &in) {
    std::vector<T> numbers(in.get_count(sizeof(T)));
    for (T &number : numbers) number = in.get<T>();
    return numbers;
}

}  // namespace

std::string encode(const StatementSpec &spec) {
    Writer out;
    put_id(out, spec.id);
    out.put<uint8_t>(static_cast<uint8_t>(spec.work));
    out.put_string(spec.sql);
    put_params(out, spec.params);
    put_numbers(out, spec.param_oids);
    put_numbers(out, spec.result_formats);
    out.put<uint8_t>(static_cast<uint8_t>(spec.format));
    out.put_string(spec.settings.catalog);
    out.put<uint32_t>(static_cast<uint32_t>(spec.settings.search_path.size()));
    for (const std::string &schema : spec.settings.search_path) out.put_string(schema);
    out.put_string(spec.settings.time_zone);
    out.put<uint32_t>(static_cast<uint32_t>(spec.settings.variables.size()));
    for (const auto &[name, value] : spec.settings.variables) {
        out.put_string(name);
        out.put_string(value);
    }
    out.put<uint32_t>(static_cast<uint32_t>(spec.catalogs.size()));
    for (const std::string &catalog : spec.catalogs) out.put_string(catalog);
    out.put_string(spec.write_catalog);
    out.put_bool(spec.rights.has_value());
    if (spec.rights) put_rights(out, *spec.rights);
    out.put<uint8_t>(static_cast<uint8_t>(spec.transaction));
    put_id(out, spec.session);
    out.put_bool(spec.session_lasts);
    out.put_bool(spec.read_only);
    out.put_bool(spec.writes);
    out.put_bool(spec.internal);
    out.put_string(spec.user);
    out.put_string(spec.group);
    out.put<uint64_t>(spec.shape);
    out.put_bool(spec.shape_is_large);
    out.put_bool(spec.no_wait);
    out.put<int64_t>(spec.patience_us);
    out.put<uint32_t>(spec.first_page_rows);
    out.put<int64_t>(spec.timeout_ms);
    out.put<int64_t>(spec.admission_wait_ms);
    return out.take();
}

Result<StatementSpec> decode_spec(std::string_view bytes) {
    Reader in(bytes);
    StatementSpec spec;
    bool ok = true;
    spec.id = get_id(in);
    spec.work = get_enum(in, Work::describe, ok);
    spec.sql = in.get_string();
    ok = get_params(in, spec.params) && ok;
    spec.param_oids = get_numbers<uint32_t>(in);
    spec.result_formats = get_numbers<int16_t>(in);
    spec.format = get_enum(in, ResultFormat::value, ok);
    spec.settings.catalog = in.get_string();
    spec.settings.search_path.resize(in.get_count(4));
    for (std::string &schema : spec.settings.search_path) schema = in.get_string();
    spec.settings.time_zone = in.get_string();
    for (uint32_t left = in.get_count(8); left > 0; left--) {
        std::string name = in.get_string();
        spec.settings.variables[std::move(name)] = in.get_string();
    }
    spec.catalogs.resize(in.get_count(4));
    for (std::string &catalog : spec.catalogs) catalog = in.get_string();
    spec.write_catalog = in.get_string();
    if (in.get_bool()) spec.rights = get_rights(in, ok);
    spec.transaction = get_enum(in, TransactionAction::rollback, ok);
    spec.session = get_id(in);
    spec.session_lasts = in.get_bool();
    spec.read_only = in.get_bool();
    spec.writes = in.get_bool();
    spec.internal = in.get_bool();
    spec.user = in.get_string();
    spec.group = in.get_string();
    spec.shape = in.get<uint64_t>();
    spec.shape_is_large = in.get_bool();
    spec.no_wait = in.get_bool();
    spec.patience_us = in.get<int64_t>();
    spec.first_page_rows = in.get<uint32_t>();
    spec.timeout_ms = in.get<int64_t>();
    spec.admission_wait_ms = in.get<int64_t>();
    if (!ok || !in.done()) return broken("dispatch");
    return spec;
}

std::string encode(const ResultHeader &header) {
    Writer out;
    out.put_bool(header.has_grid);
    out.put<uint32_t>(static_cast<uint32_t>(header.columns.size()));
    for (const Column &column : header.columns) {
        out.put_string(column.name);
        out.put_string(column.type);
        out.put<uint32_t>(column.pg_oid);
        out.put<int16_t>(column.pg_typlen);
        out.put<int32_t>(column.pg_typmod);
    }
    put_numbers(out, header.param_oids);
    return out.take();
}

Result<ResultHeader> decode_header(std::string_view bytes) {
    Reader in(bytes);
    ResultHeader header;
    header.has_grid = in.get_bool();
    header.columns.resize(in.get_count(18));
    for (Column &column : header.columns) {
        column.name = in.get_string();
        column.type = in.get_string();
        column.pg_oid = in.get<uint32_t>();
        column.pg_typlen = in.get<int16_t>();
        column.pg_typmod = in.get<int32_t>();
    }
    header.param_oids = get_numbers<uint32_t>(in);
    if (!in.done()) return broken("result header");
    return header;
}

std::string encode(const Completion &completion) {
    Writer out;
    put_status(out, completion.status);
    out.put<uint64_t>(completion.rows);
    put_optional(out, completion.affected);
    out.put<uint64_t>(completion.result_bytes);
    out.put<uint64_t>(completion.peak_memory_bytes);
    out.put<uint64_t>(completion.granted_bytes);
    out.put_bool(completion.ran_large);
    out.put_bool(completion.commit_in_doubt);
    out.put_bool(completion.frozen);
    const NodeTimings &t = completion.timings;
    for (const int64_t us :
         {t.queued_us, t.plan_us, t.admission_us, t.execute_us, t.encode_us, t.blocked_us, t.commit_us}) {
        out.put<int64_t>(us);
    }
    put_memory(out, completion.memory);
    put_reads(out, completion.reads);
    out.put<uint64_t>(completion.committed_snapshot);
    out.put_string(completion.first_page);
    out.put_string(completion.profile_json);
    return out.take();
}

Result<Completion> decode_completion(std::string_view bytes) {
    Reader in(bytes);
    Completion completion;
    completion.status = get_status(in);
    completion.rows = in.get<uint64_t>();
    const bool has_affected = in.get_bool();
    const auto affected = in.get<uint64_t>();
    if (has_affected) completion.affected = affected;
    completion.result_bytes = in.get<uint64_t>();
    completion.peak_memory_bytes = in.get<uint64_t>();
    completion.granted_bytes = in.get<uint64_t>();
    completion.ran_large = in.get_bool();
    completion.commit_in_doubt = in.get_bool();
    completion.frozen = in.get_bool();
    NodeTimings &t = completion.timings;
    for (int64_t *us :
         {&t.queued_us, &t.plan_us, &t.admission_us, &t.execute_us, &t.encode_us, &t.blocked_us, &t.commit_us}) {
        *us = in.get<int64_t>();
    }
    bool ok = true;
    completion.memory = get_memory(in, ok);
    completion.reads = get_reads(in, ok);
    completion.committed_snapshot = in.get<uint64_t>();
    completion.first_page = in.get_string();
    completion.profile_json = in.get_string();
    if (!ok || !in.done()) return broken("completion");
    return completion;
}

std::string encode_id(const Uuid &id) { return std::string(id.raw()); }

Result<Uuid> decode_id(std::string_view bytes) {
    Reader in(bytes);
    const Uuid id = get_id(in);
    if (!in.done()) return broken("id");
    return id;
}

}  // namespace roost::cluster
