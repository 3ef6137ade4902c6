// Hostile bytes on a link: the framing and every control message. Whatever decodes must encode to something that
// decodes to the same bytes again.
#include <cstdlib>

#include "cluster/messages.h"
#include "net/frame.h"
#include "net/link.h"

namespace {

template <class T>
void round_trip(const roost::Result<T> &decoded, roost::Result<T> (*decode)(std::string_view)) {
    if (!decoded.ok()) return;
    const std::string once = roost::cluster::encode(*decoded);
    const auto again = decode(once);
    if (!again.ok() || roost::cluster::encode(*again) != once) std::abort();
}

void decode_all(std::string_view bytes) {
    using namespace roost::cluster;
    round_trip(decode_hello(bytes), decode_hello);
    round_trip(decode_heartbeat(bytes), decode_heartbeat);
    round_trip(decode_welcome(bytes), decode_welcome);
    round_trip(decode_progress(bytes), decode_progress);
    round_trip(decode_cancel(bytes), decode_cancel);
    round_trip(decode_read_page(bytes), decode_read_page);
    round_trip(decode_spec(bytes), decode_spec);
    round_trip(decode_header(bytes), decode_header);
    round_trip(decode_completion(bytes), decode_completion);
    round_trip(decode_cache_work(bytes), decode_cache_work);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char *>(data), size);
    decode_all(bytes);
    (void)roost::net::parse_link_request(bytes);
    // The same bytes as a stream, fed in two parts.
    roost::net::FrameDecoder decoder;
    for (const std::string_view part : {bytes.substr(0, size / 2), bytes.substr(size / 2)}) {
        decoder.feed(part);
        for (;;) {
            auto frame = decoder.next();
            if (!frame.ok() || !frame->has_value()) break;
            decode_all((*frame)->payload);
        }
    }
    return 0;
}
