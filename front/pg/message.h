// PostgreSQL's frontend/backend protocol 3.0 as bytes: takes client messages apart and writes server messages. Pure
// functions, no I/O, no state; thread-safe. Every length and count is checked against what is there before anything is
// read or allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/statement.h"

namespace roost::pg {

// Codes of the untyped first packet.
constexpr int32_t kSslRequest = 80877103;
constexpr int32_t kGssEncRequest = 80877104;
constexpr int32_t kCancelRequest = 80877102;
constexpr int32_t kProtocol30 = 196608;
constexpr int32_t kProtocol20 = 131072;

constexpr uint32_t kStartupMinBytes = 8;
constexpr uint32_t kStartupMaxBytes = 10'000;
constexpr uint32_t kPasswordMaxBytes = 64 * 1024;
constexpr uint32_t kTextMaxBytes = 64 * 1024 * 1024;  // Query and Parse
constexpr uint32_t kBindMaxBytes = 256 * 1024 * 1024;
constexpr uint32_t kCopyDataMaxBytes = 64 * 1024 * 1024;
constexpr uint32_t kOtherMaxBytes = 64 * 1024;
constexpr size_t kColumnsMax = 32'767;  // a row description counts its columns in an int16

// --- client to server

struct StartupPacket {
    int32_t code = 0;  // one of the codes above, or the protocol version asked for
    int32_t cancel_pid = 0;
    uint32_t cancel_secret = 0;
    std::vector<std::pair<std::string, std::string>> parameters;  // in the client's order
};

// Whole size of the startup packet that `in` begins with. nullopt: fewer than four bytes. Error (connection to be
// closed without an answer): a length outside 8…10,000.
Result<std::optional<uint32_t>> startup_bytes(std::string_view in);
// REQUIRES: `packet` is whole. A protocol 3.x packet has its parameters read, a cancel request its key; of the others
// only the code.
Result<StartupPacket> decode_startup(std::string_view packet);

// A typed message as it lies in the buffer; `body` points into it.
struct Message {
    char type = 0;
    std::string_view body;
};

struct MessageSize {
    char type = 0;
    size_t total_bytes = 0;  // type byte and length included
};

// What the first bytes of `in` announce. nullopt: fewer than five bytes. Error (08P01, the connection can't go on):
// unknown type, a length below four or over the type's cap.
Result<std::optional<MessageSize>> message_size(std::string_view in);
// The same in the time before authentication, when only 'p' may come.
Result<std::optional<MessageSize>> password_message_size(std::string_view in);

// Bodies. The views point into the body. Errors: 08P01 malformed, 22021 not UTF-8 or a NUL inside; the connection goes
// on.
struct ParseMessage {
    std::string_view name, query;
    std::vector<uint32_t> param_oids;
};
struct BindMessage {
    std::string_view portal, statement;
    std::vector<int16_t> param_formats;  // 0, 1 or as many as values: checked
    std::vector<std::optional<std::string_view>> values;
    std::vector<int16_t> result_formats;
};
struct TargetMessage {  // Describe and Close
    char kind = 'S';    // 'S' statement, 'P' portal
    std::string_view name;
};
struct ExecuteMessage {
    std::string_view portal;
    uint32_t max_rows = 0;  // 0: all
};
struct SaslInitial {
    std::string_view mechanism, data;
};

Result<std::string_view> decode_query(std::string_view body);
Result<ParseMessage> decode_parse(std::string_view body);
Result<BindMessage> decode_bind(std::string_view body);
Result<TargetMessage> decode_target(std::string_view body);
Result<ExecuteMessage> decode_execute(std::string_view body);
Result<SaslInitial> decode_sasl_initial(std::string_view body);

// Strict UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF.
bool is_utf8(std::string_view text);

// --- server to client: each appends one whole message

enum class Severity : uint8_t { error, fatal };

void put_error(std::string &out, const Status &status, Severity severity = Severity::error);
void put_warning(std::string &out, std::string_view sqlstate, std::string_view message);
void put_auth_ok(std::string &out);
void put_auth_sasl(std::string &out);  // offers SCRAM-SHA-256
void put_auth_sasl_continue(std::string &out, std::string_view data);
void put_auth_sasl_final(std::string &out, std::string_view data);
void put_negotiate_version(std::string &out, const std::vector<std::string> &unknown_options);
void put_parameter_status(std::string &out, std::string_view name, std::string_view value);
void put_backend_key(std::string &out, int32_t pid, uint32_t secret);
void put_ready(std::string &out, char transaction_status);
// REQUIRES: columns.size() <= kColumnsMax. `formats` as Bind gives them: none, one for all, or one each.
void put_row_description(std::string &out, const std::vector<Column> &columns, const std::vector<int16_t> &formats);
void put_parameter_description(std::string &out, const std::vector<uint32_t> &oids);
void put_text_row(std::string &out, const std::vector<std::optional<std::string>> &values);
void put_command_complete(std::string &out, std::string_view tag);
// The messages that are nothing but their type.
constexpr char kParseComplete = '1', kBindComplete = '2', kCloseComplete = '3', kNoData = 'n', kEmptyQuery = 'I',
               kPortalSuspended = 's';
void put_empty(std::string &out, char type);

// Where the first `rows` DataRow messages of `bytes` end. Error (data_loss): they do not hold that many whole messages.
Result<size_t> rows_bytes(std::string_view bytes, uint32_t rows);

Status protocol_violation(std::string message);
// For a result of more than kColumnsMax columns.
Status too_many_columns();

}  // namespace roost::pg
