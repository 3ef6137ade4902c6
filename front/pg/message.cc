#include "front/pg/message.h"

#include <bit>
#include <cstring>

namespace roost::pg {
namespace {

// Big-endian reader; sticky like roost::Reader: after a short read everything is zero and ok() is false.
class Input {
public:
    explicit Input(std::string_view in) : in_(in) {}

    template <class T>
    T get() {
        T value = 0;
        if (!take(sizeof(T))) return value;
        for (size_t i = at_ - sizeof(T); i < at_; i++) {
            value = static_cast<T>(static_cast<uint64_t>(value) << 8 | static_cast<uint8_t>(in_[i]));
        }
        return value;
    }
    std::string_view raw(size_t size) { return take(size) ? in_.substr(at_ - size, size) : std::string_view(); }
    // Up to the next NUL, which is eaten.
    std::string_view text() {
        const size_t end = ok_ ? in_.find('\0', at_) : std::string_view::npos;
        if (end == std::string_view::npos) {
            ok_ = false;
            return {};
        }
        const std::string_view value = in_.substr(at_, end - at_);
        at_ = end + 1;
        return value;
    }
    // A count of items of at least `least_bytes` each. Unsigned: PostgreSQL takes up to 65,535 parameters.
    size_t count(size_t least_bytes) {
        const size_t value = get<uint16_t>();
        if (value * least_bytes > remaining()) ok_ = false;
        return ok_ ? value : 0;
    }
    size_t remaining() const { return ok_ ? in_.size() - at_ : 0; }
    bool ok() const { return ok_; }
    bool done() const { return ok_ && at_ == in_.size(); }

private:
    bool take(size_t size) {
        if (!ok_ || size > in_.size() - at_) ok_ = false;
        if (ok_) at_ += size;
        return ok_;
    }

    std::string_view in_;
    size_t at_ = 0;
    bool ok_ = true;
};

template <class T>
void put(std::string &out, T value) {
    char raw[sizeof(T)];
    for (size_t i = 0; i < sizeof(T); i++) {
        raw[i] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * (sizeof(T) - 1 - i)));
    }
    out.append(raw, sizeof(T));
}

// NUL-ended; a NUL inside would cut the field short and shift what follows, so it is left out.
void put_text(std::string &out, std::string_view text) {
    if (text.find('\0') == std::string_view::npos) {
        out.append(text);
    } else {
        for (const char c : text) {
            if (c != '\0') out.push_back(c);
        }
    }
    out.push_back('\0');
}

// Writes the type and, when it goes out of scope, the length of what was appended since.
class Scope {
public:
    Scope(std::string &out, char type) : out_(out) {
        out_.push_back(type);
        at_ = out_.size();
        out_.append(4, '\0');
    }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    ~Scope() {
        const auto size = static_cast<uint32_t>(out_.size() - at_);
        for (size_t i = 0; i < 4; i++) out_[at_ + i] = static_cast<char>(size >> (24 - 8 * i));
    }

private:
    std::string &out_;
    size_t at_ = 0;
};

// 0: not a message a client may send.
uint32_t cap_bytes(char type) {
    switch (type) {
        case 'Q':
        case 'P':
            return kTextMaxBytes;
        case 'B':
            return kBindMaxBytes;
        case 'd':
            return kCopyDataMaxBytes;
        case 'C':  // Close
        case 'D':  // Describe
        case 'E':  // Execute
        case 'F':  // FunctionCall
        case 'H':  // Flush
        case 'S':  // Sync
        case 'X':  // Terminate
        case 'c':  // CopyDone
        case 'f':
            return kOtherMaxBytes;
        default:
            return 0;
    }
}

Result<std::optional<MessageSize>> sized(std::string_view in, uint32_t cap) {
    Input input(in.substr(1));
    const auto length = input.get<int32_t>();
    if (!input.ok()) return std::optional<MessageSize>();
    if (length < 4) return protocol_violation("invalid message length");
    if (static_cast<uint32_t>(length) > cap) {
        return protocol_violation("message of " + std::to_string(length) + " bytes is over the limit of " +
                                  std::to_string(cap) + " bytes for its type");
    }
    return std::optional<MessageSize>(MessageSize{in[0], static_cast<size_t>(length) + 1});
}

Status malformed(std::string_view what) { return protocol_violation("invalid " + std::string(what) + " message"); }

Status bad_text(std::string message) {
    return Status(Code::invalid_argument, std::move(message)).with_sqlstate("22021");
}

Status check_texts(std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts) {
        if (!is_utf8(text)) return bad_text("invalid byte sequence for encoding \"UTF8\"");
    }
    return {};
}

}  // namespace

Status protocol_violation(std::string message) {
    return Status(Code::invalid_argument, std::move(message)).with_sqlstate("08P01").with_name("protocol_violation");
}

Status too_many_columns() {
    return Status(Code::unimplemented, "a result of more than 32767 columns can't be sent").with_sqlstate("54011");
}

Result<std::optional<uint32_t>> startup_bytes(std::string_view in) {
    Input input(in);
    const auto length = input.get<int32_t>();
    if (!input.ok()) return std::optional<uint32_t>();
    if (length < static_cast<int32_t>(kStartupMinBytes) || length > static_cast<int32_t>(kStartupMaxBytes)) {
        return protocol_violation("invalid length of startup packet");
    }
    return std::optional<uint32_t>(static_cast<uint32_t>(length));
}

Result<StartupPacket> decode_startup(std::string_view packet) {
    Input input(packet);
    input.get<int32_t>();
    StartupPacket startup;
    startup.code = input.get<int32_t>();
    if (startup.code == kCancelRequest) {
        startup.cancel_pid = input.get<int32_t>();
        startup.cancel_secret = input.get<uint32_t>();
        if (!input.done()) return malformed("cancel request");
        return startup;
    }
    if (startup.code >> 16 != 3) return startup;
    while (input.remaining() > 1) {
        const std::string_view name = input.text();
        const std::string_view value = input.text();
        if (!input.ok() || name.empty()) return malformed("startup");
        if (!is_utf8(name) || !is_utf8(value)) return malformed("startup");
        startup.parameters.emplace_back(name, value);
    }
    if (input.get<uint8_t>() != 0 || !input.done()) return malformed("startup");
    return startup;
}

Result<std::optional<MessageSize>> message_size(std::string_view in) {
    if (in.empty()) return std::optional<MessageSize>();
    const uint32_t cap = cap_bytes(in[0]);
    if (cap == 0) {
        return protocol_violation("invalid frontend message type " + std::to_string(static_cast<uint8_t>(in[0])));
    }
    return sized(in, cap);
}

Result<std::optional<MessageSize>> password_message_size(std::string_view in) {
    if (in.empty()) return std::optional<MessageSize>();
    if (in[0] != 'p') return protocol_violation("expected a password response");
    return sized(in, kPasswordMaxBytes);
}

Result<std::string_view> decode_query(std::string_view body) {
    if (body.empty() || body.back() != '\0') return malformed("query");
    body.remove_suffix(1);
    if (body.find('\0') != std::string_view::npos) return bad_text("the statement contains a NUL character");
    ROOST_RETURN_IF_ERROR(check_texts({body}));
    return body;
}

Result<ParseMessage> decode_parse(std::string_view body) {
    Input input(body);
    ParseMessage message;
    message.name = input.text();
    message.query = input.text();
    const size_t count = input.count(4);
    message.param_oids.reserve(count);
    for (size_t i = 0; i < count; i++) message.param_oids.push_back(input.get<uint32_t>());
    if (!input.done()) return malformed("Parse");
    ROOST_RETURN_IF_ERROR(check_texts({message.name, message.query}));
    return message;
}

namespace {

// A list of format codes, each 0 or 1.
Result<std::vector<int16_t>> decode_formats(Input &input) {
    const size_t count = input.count(2);
    std::vector<int16_t> formats;
    formats.reserve(count);
    for (size_t i = 0; i < count; i++) {
        formats.push_back(input.get<int16_t>());
        if (formats.back() != 0 && formats.back() != 1) {
            return Status(Code::invalid_argument, "unsupported format code: " + std::to_string(formats.back()));
        }
    }
    if (!input.ok()) return malformed("Bind");
    return formats;
}

}  // namespace

Result<BindMessage> decode_bind(std::string_view body) {
    Input input(body);
    BindMessage message;
    message.portal = input.text();
    message.statement = input.text();
    ROOST_ASSIGN_OR_RETURN(message.param_formats, decode_formats(input));
    const size_t count = input.count(4);
    if (!input.ok()) return malformed("Bind");
    message.values.reserve(count);
    for (size_t i = 0; i < count; i++) {
        const auto length = input.get<int32_t>();
        if (length < -1 || (length > 0 && static_cast<size_t>(length) > input.remaining())) return malformed("Bind");
        if (length == -1) {
            message.values.emplace_back();
        } else {
            message.values.emplace_back(input.raw(static_cast<size_t>(length)));
        }
    }
    ROOST_ASSIGN_OR_RETURN(message.result_formats, decode_formats(input));
    if (!input.done()) return malformed("Bind");
    if (message.param_formats.size() > 1 && message.param_formats.size() != message.values.size()) {
        return protocol_violation("bind message has " + std::to_string(message.param_formats.size()) +
                                  " parameter formats but " + std::to_string(message.values.size()) + " parameters");
    }
    ROOST_RETURN_IF_ERROR(check_texts({message.portal, message.statement}));
    return message;
}

Result<TargetMessage> decode_target(std::string_view body) {
    Input input(body);
    TargetMessage message;
    message.kind = input.get<char>();
    message.name = input.text();
    if (!input.done() || (message.kind != 'S' && message.kind != 'P')) return malformed("Describe or Close");
    ROOST_RETURN_IF_ERROR(check_texts({message.name}));
    return message;
}

Result<ExecuteMessage> decode_execute(std::string_view body) {
    Input input(body);
    ExecuteMessage message;
    message.portal = input.text();
    const auto max_rows = input.get<int32_t>();
    if (!input.done()) return malformed("Execute");
    message.max_rows = max_rows > 0 ? static_cast<uint32_t>(max_rows) : 0;  // negative means all, as in PostgreSQL
    ROOST_RETURN_IF_ERROR(check_texts({message.portal}));
    return message;
}

Result<SaslInitial> decode_sasl_initial(std::string_view body) {
    Input input(body);
    SaslInitial message;
    message.mechanism = input.text();
    const auto length = input.get<int32_t>();
    if (length >= 0) message.data = input.raw(static_cast<size_t>(length));
    if (length < -1 || !input.done()) return malformed("SASL");
    return message;
}

bool is_utf8(std::string_view text) {
    const auto *at = reinterpret_cast<const uint8_t *>(text.data());
    const auto *end = at + text.size();
    const auto follows = [&](int count) {  // `count` continuation bytes after at[0]
        if (end - at <= count) return false;
        for (int i = 1; i <= count; i++) {
            if ((at[i] & 0xC0) != 0x80) return false;
        }
        return true;
    };
    while (at < end) {
        uint64_t eight = 0;  // SQL is mostly ASCII
        if (end - at >= 8) {
            std::memcpy(&eight, at, 8);
            if ((eight & 0x8080808080808080ULL) == 0) {
                at += 8;
                continue;
            }
        }
        const uint8_t c = *at;
        if (c < 0x80) {
            at += 1;
        } else if (c >= 0xC2 && c <= 0xDF) {
            if (!follows(1)) return false;
            at += 2;
        } else if (c >= 0xE0 && c <= 0xEF) {
            if (!follows(2)) return false;
            if ((c == 0xE0 && at[1] < 0xA0) || (c == 0xED && at[1] > 0x9F)) return false;
            at += 3;
        } else if (c >= 0xF0 && c <= 0xF4) {
            if (!follows(3)) return false;
            if ((c == 0xF0 && at[1] < 0x90) || (c == 0xF4 && at[1] > 0x8F)) return false;
            at += 4;
        } else {
            return false;
        }
    }
    return true;
}

namespace {

void put_field(std::string &out, char kind, std::string_view value) {
    if (value.empty()) return;
    out.push_back(kind);
    put_text(out, value);
}

}  // namespace

void put_error(std::string &out, const Status &status, Severity severity) {
    const Error &error = status.error();
    const Scope scope(out, 'E');
    const std::string_view name = severity == Severity::fatal ? "FATAL" : "ERROR";
    put_field(out, 'S', name);
    put_field(out, 'V', name);
    put_field(out, 'C', status.sqlstate());
    put_field(out, 'M', error.message.empty() ? std::string_view("unknown error") : std::string_view(error.message));
    std::string detail = error.detail;
    if (!error.rule.empty()) detail += (detail.empty() ? "rule: " : "\nrule: ") + error.rule;
    put_field(out, 'D', detail);
    put_field(out, 'H', error.hint);
    if (error.position != 0) put_field(out, 'P', std::to_string(error.position));
    // pgjdbc plans a statement again and goes on when it reads this routine name.
    if (error.name == "cached_plan_changed") put_field(out, 'R', "RevalidateCachedQuery");
    out.push_back('\0');
}

void put_warning(std::string &out, std::string_view sqlstate, std::string_view message) {
    const Scope scope(out, 'N');
    put_field(out, 'S', "WARNING");
    put_field(out, 'V', "WARNING");
    put_field(out, 'C', sqlstate);
    put_field(out, 'M', message);
    out.push_back('\0');
}

void put_auth_ok(std::string &out) {
    const Scope scope(out, 'R');
    put<int32_t>(out, 0);
}

void put_auth_sasl(std::string &out) {
    const Scope scope(out, 'R');
    put<int32_t>(out, 10);
    put_text(out, "SCRAM-SHA-256");
    out.push_back('\0');
}

void put_auth_sasl_continue(std::string &out, std::string_view data) {
    const Scope scope(out, 'R');
    put<int32_t>(out, 11);
    out.append(data);
}

void put_auth_sasl_final(std::string &out, std::string_view data) {
    const Scope scope(out, 'R');
    put<int32_t>(out, 12);
    out.append(data);
}

void put_negotiate_version(std::string &out, const std::vector<std::string> &unknown_options) {
    const Scope scope(out, 'v');
    put<int32_t>(out, kProtocol30);
    put<int32_t>(out, static_cast<int32_t>(unknown_options.size()));
    for (const std::string &option : unknown_options) put_text(out, option);
}

void put_parameter_status(std::string &out, std::string_view name, std::string_view value) {
    const Scope scope(out, 'S');
    put_text(out, name);
    put_text(out, value);
}

void put_backend_key(std::string &out, int32_t pid, uint32_t secret) {
    const Scope scope(out, 'K');
    put(out, pid);
    put(out, secret);
}

void put_ready(std::string &out, char transaction_status) {
    const Scope scope(out, 'Z');
    out.push_back(transaction_status);
}

void put_row_description(std::string &out, const std::vector<Column> &columns, const std::vector<int16_t> &formats) {
    const Scope scope(out, 'T');
    put<int16_t>(out, static_cast<int16_t>(columns.size()));
    for (size_t i = 0; i < columns.size(); i++) {
        const Column &column = columns[i];
        put_text(out, column.name);
        put<uint32_t>(out, 0);  // no table behind it
        put<int16_t>(out, 0);
        put<uint32_t>(out, column.pg_oid);
        put<int16_t>(out, column.pg_typlen);
        put<int32_t>(out, column.pg_typmod);
        put<int16_t>(out, formats.empty() ? int16_t{0} : formats.size() == 1 ? formats[0] : formats[i]);
    }
}

void put_parameter_description(std::string &out, const std::vector<uint32_t> &oids) {
    const Scope scope(out, 't');
    put<int16_t>(out, static_cast<int16_t>(oids.size()));
    for (const uint32_t oid : oids) put(out, oid);
}

void put_text_row(std::string &out, const std::vector<std::optional<std::string>> &values) {
    const Scope scope(out, 'D');
    put<int16_t>(out, static_cast<int16_t>(values.size()));
    for (const auto &value : values) {
        put<int32_t>(out, value ? static_cast<int32_t>(value->size()) : -1);
        if (value) out.append(*value);
    }
}

void put_command_complete(std::string &out, std::string_view tag) {
    const Scope scope(out, 'C');
    put_text(out, tag);
}

void put_empty(std::string &out, char type) { const Scope scope(out, type); }

Result<size_t> rows_bytes(std::string_view bytes, uint32_t rows) {
    size_t at = 0;
    for (uint32_t i = 0; i < rows; i++) {
        Input input(bytes.substr(at));
        const auto type = input.get<char>();
        const auto length = input.get<int32_t>();
        if (!input.ok() || type != 'D' || length < 6 || static_cast<size_t>(length) > bytes.size() - at - 1) {
            return Status(Code::data_loss, "a frame of rows holds fewer rows than it says");
        }
        at += static_cast<size_t>(length) + 1;
    }
    return at;
}

}  // namespace roost::pg
