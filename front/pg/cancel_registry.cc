#include "front/pg/cancel_registry.h"

#include <openssl/crypto.h>

#include <cstring>

#include "base/ids.h"

namespace roost::pg {
namespace {

uint32_t random_u32() {
    uint32_t value = 0;
    std::memcpy(&value, random_bytes(sizeof(value)).data(), sizeof(value));
    return value;
}

}  // namespace

CancelRegistry::Key CancelRegistry::add(Connection &connection) {
    while (true) {
        const Key key{static_cast<int32_t>(random_u32() & 0x7fffffff), random_u32()};
        if (key.pid != 0 && connections_.try_emplace(key.pid, Entry{key.secret, &connection}).second) return key;
    }
}

Connection *CancelRegistry::find(const Key &key) const {
    const auto at = connections_.find(key.pid);
    if (at == connections_.end()) return nullptr;
    const bool is_right = CRYPTO_memcmp(&at->second.secret, &key.secret, sizeof(key.secret)) == 0;
    return is_right ? at->second.connection : nullptr;
}

}  // namespace roost::pg
