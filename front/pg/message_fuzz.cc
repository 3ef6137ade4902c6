// Every decoder of the Postgres front over arbitrary bytes. The first byte picks the decoder, so that the corpus stays
// readable; what decodes must hold what the decoders promise.
#include <cstdint>
#include <cstdlib>

#include "front/pg/login.h"
#include "front/pg/message.h"
#include "front/pg/scram.h"
#include "front/pg/sql_arguments.h"
#include "service/session_variables.h"

namespace {

using namespace roost;

void require(bool condition) {
    if (!condition) std::abort();
}

void fuzz_startup(std::string_view in) {
    const auto size = pg::startup_bytes(in);
    if (!size.ok() || !size->has_value() || in.size() < **size) return;
    require(**size <= pg::kStartupMaxBytes);
    const auto packet = pg::decode_startup(in.substr(0, **size));
    if (!packet.ok()) return;
    for (const auto &[name, value] : packet->parameters) {
        require(!name.empty() && pg::is_utf8(value));
        if (name == "options") (void)pg::parse_startup_options(value).ok();
    }
}

void fuzz_messages(std::string_view in) {
    while (true) {
        const auto size = pg::message_size(in);
        if (!size.ok() || !size->has_value()) return;
        require((*size)->total_bytes >= 5 && (*size)->total_bytes <= size_t{pg::kBindMaxBytes} + 1);
        if (in.size() < (*size)->total_bytes) return;
        const std::string_view body = in.substr(5, (*size)->total_bytes - 5);
        if (const auto query = pg::decode_query(body); query.ok()) require(pg::is_utf8(*query));
        if (const auto parse = pg::decode_parse(body); parse.ok()) require(parse->param_oids.size() * 4 <= body.size());
        if (const auto bind = pg::decode_bind(body); bind.ok()) {
            require(bind->param_formats.size() <= 1 || bind->param_formats.size() == bind->values.size());
            size_t bytes = 0;
            for (const auto &value : bind->values) bytes += value ? value->size() : 0;
            require(bytes <= body.size());
        }
        (void)pg::decode_target(body).ok();
        (void)pg::decode_execute(body).ok();
        in.remove_prefix((*size)->total_bytes);
    }
}

void fuzz_scram(std::string_view in) {
    pg::ScramExchange exchange(pg::mock_scram_verifier("secret", "user"), "servernonce");
    const size_t split = in.find('\n');
    const auto initial = pg::decode_sasl_initial(in.substr(0, split));
    const auto first = exchange.first(initial.ok() ? initial->data : in.substr(0, split));
    // Nobody knows the password of a mock verifier.
    if (first.ok()) require(!exchange.final(split == std::string_view::npos ? in : in.substr(split + 1)).ok());
    (void)pg::parse_scram_verifier(in);
}

void fuzz_variables(std::string_view in) {
    service::SessionVariables variables({.user = "ann"});
    const size_t equals = in.find('=');
    const std::string_view name = in.substr(0, equals);
    const std::string value(equals == std::string_view::npos ? std::string_view() : in.substr(equals + 1));
    (void)variables.set_default(name, value).ok();
    if (variables.set(name, {value}, false).ok()) require(variables.show(name).ok());
    service::Session session;
    variables.apply_to(session);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
    if (size_bytes == 0) return 0;
    const std::string_view in(reinterpret_cast<const char *>(data) + 1, size_bytes - 1);
    switch (data[0]) {
        case 's':
            fuzz_startup(in);
            break;
        case 'm':
            fuzz_messages(in);
            break;
        case 'a':
            fuzz_scram(in);
            break;
        case 'v':
            fuzz_variables(in);
            break;
        case 'r':
            (void)pg::rows_bytes(in, static_cast<uint32_t>(in.size() % 64)).ok();
            break;
        case 'x':
            (void)pg::parse_arguments(in).ok();
            break;
        default:
            break;
    }
    return 0;
}
