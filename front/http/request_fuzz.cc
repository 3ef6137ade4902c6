// A request's text on its way to the service: path, query string, cursor, bodies. The first byte says what the rest is
// taken for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "front/http/decode.h"
#include "front/http/json.h"
#include "front/http/render.h"
#include "front/http/routes.h"

namespace {

using namespace roost;

void check(bool holds) {
    if (!holds) std::abort();
}

void fuzz_target(std::string_view text) {
    const size_t blank = text.find(' ');
    const auto target = http::parse_target(text.substr(blank == std::string_view::npos ? 0 : blank + 1));
    if (!target.ok()) return check(!http::error_response(target.status()).body.empty());
    const auto match = http::match_route(text.substr(0, blank), target->segments);
    check(match.route != http::Route::wrong_method || !match.allow.empty());
    const auto history = http::decode_history(target->query);
    check(!history.ok() || (history->filter.limit >= 1 && history->filter.limit <= 1000));
}

void fuzz_cursor(std::string_view text) {
    const Uuid id = Uuid::from_name("fuzz");
    const auto offset_rows = http::decode_cursor(id, text);
    // Leading zeros apart there is one text for each place.
    if (offset_rows.ok()) check(*http::decode_cursor(id, http::encode_cursor(id, *offset_rows)) == *offset_rows);
}

void fuzz_json(std::string_view text) {
    const auto fields = http::parse_fields(text, {"sql", "parameters", "a"}, {.items_max = 1000});
    if (!fields.ok()) return;
    for (const auto &[name, value] : *fields) {
        // What was read is written as JSON again, and reads the same.
        const std::string again = "{\"" + name + "\":" + http::to_json(value) + "}";
        const auto twice = http::parse_fields(again, {"sql", "parameters", "a"});
        check(twice.ok() && http::to_json(twice->at(name)) == http::to_json(value));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size_bytes) {
    if (size_bytes == 0) return 0;
    const std::string_view text(reinterpret_cast<const char *>(data) + 1, size_bytes - 1);
    switch (data[0] % 8) {
        case 0:
            fuzz_target(text);
            break;
        case 1:
            fuzz_cursor(text);
            break;
        case 2:
            fuzz_json(text);
            break;
        case 3: {
            const auto body = roost::http::decode_submit(text);
            if (body.ok()) check(body->wait_ms >= 0 && body->wait_ms <= 30'000 && body->first_page_rows <= 200);
            break;
        }
        case 4:
            static_cast<void>(roost::http::decode_import(text));
            break;
        case 5:
            static_cast<void>(roost::http::parse_time_us(text));
            break;
        case 6:
            static_cast<void>(roost::http::decode_sql(text));
            break;
        default:
            static_cast<void>(roost::http::bearer_token(text));
            static_cast<void>(roost::http::client_product(text));
    }
    return 0;
}
