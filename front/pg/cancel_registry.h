// Finds the connection that a CancelRequest means. Keys are drawn at random, so that nobody cancels by guessing. Loop
// thread only.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace roost::pg {

class Connection;

class CancelRegistry {
public:
    struct Key {
        int32_t pid = 0;
        uint32_t secret = 0;
    };

    // The key for `connection` until remove(). Its pid is positive and no other live connection's.
    Key add(Connection &connection);
    void remove(const Key &key) { connections_.erase(key.pid); }
    // nullptr: no such key. The secret is compared in constant time.
    Connection *find(const Key &key) const;

private:
    struct Entry {
        uint32_t secret = 0;
        Connection *connection = nullptr;
    };
    std::unordered_map<int32_t, Entry> connections_;
};

}  // namespace roost::pg
