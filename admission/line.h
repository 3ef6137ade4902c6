// The line in which statements wait for memory: first in, first out, with turns. Groups (of a workload) take turns by
// weight, those of higher priority before the others; within a group its users take turns; a user's own statements stay
// in order of arrival. So with one user it is plain first in, first out, and a hundred statements of one hold back
// nobody else. Whose turn it is stays so until he is served or leaves: nobody who comes later passes the head.
//
// Turns are start-time fair queueing (Goyal, Vin, Cheng: Start-time Fair Queueing, 1996): a user's next statement is
// due one turn after the last, and who has not waited for a while starts at the turn that is served now, with no
// credit.
//
// Not thread-safe: the ledger's, under its caller's lock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"

namespace roost::admission {

struct GroupOptions {
    std::string name;                 // "" is the group of all that name no other
    double weight = 1;                // turns while groups wait for the same memory; above 0
    int32_t priority = 0;             // a higher one is served first
    uint32_t running_max = 0;         // statements at once; 0: no cap
    uint64_t required_max_bytes = 0;  // of all its running statements; 0: no cap
};

struct Waiter {
    Uuid statement;
    std::string user;
    uint32_t group = 0;  // index in the line's groups
    uint64_t arrival = 0;
    int64_t since_us = 0;
    int64_t deadline_us = 0;
    int64_t own_deadline_us = 0;  // of the statement itself; 0: none
    uint64_t want_bytes = 0;
    uint64_t floor_bytes = 0;
    bool at_once = false;  // runs at whatever size is free
    bool no_wait = false;  // is here only while memory that was called back comes
    bool fixed = false;    // wants no elastic memory
};

class Line {
public:
    explicit Line(std::vector<GroupOptions> groups);

    // Index of the group of that name; of the nameless one when there is no such.
    uint32_t group_of(const std::string &name) const;
    const GroupOptions &group(uint32_t group) const { return groups_[group].options; }

    std::vector<GroupOptions> groups() const;  // the nameless one first
    struct Standing {
        uint32_t running = 0, waiting = 0;
        uint64_t required_bytes = 0;
    };
    Standing standing(size_t group) const;

    // Running statements and their required bytes count against the caps. `charge`: one more runs.
    void charge(uint32_t group, uint64_t bytes);
    void discharge(uint32_t group, uint64_t bytes);
    // With one more statement of at least `floor_bytes` the group is at none of its caps.
    bool may_run(uint32_t group, uint64_t floor_bytes) const;
    // What the group may still be granted under its cap of memory.
    uint64_t room_bytes(uint32_t group) const;

    // REQUIRES: not in line.
    void join(Waiter waiter);
    // Whose turn it is; null when nobody waits or all groups that do are at a cap.
    const Waiter *head();
    // The waiter leaves the line because it was served: its user's turn is over.
    void serve(const Uuid &statement);
    // The waiter leaves unserved.
    void leave(const Uuid &statement);
    const Waiter *find(const Uuid &statement) const;

    size_t size() const { return waiters_.size(); }
    // Of the groups that are at no cap: somebody waits there; what those who do want together.
    bool has_eligible() const;
    unsigned __int128 wanted_bytes() const;
    // Earliest deadline; nothing when nobody waits.
    std::optional<int64_t> next_deadline_us() const;
    // In order of arrival, those whose deadline has passed.
    std::vector<Uuid> overdue(int64_t now_us) const;
    // All, in the order in which they will be served if nobody joins or leaves and no cap is met.
    std::vector<Uuid> order() const;
    uint32_t place(const Uuid &statement) const;  // 1: the head; 0: not in line

private:
    using Turn = double;
    struct User {
        Turn next = 0;                     // start of the turn of its first waiter
        std::map<uint64_t, Uuid> waiters;  // by arrival
    };
    struct Group {
        GroupOptions options;
        Turn next = 0;
        Turn now = 0;  // start of the turn served last, of its users
        uint32_t running = 0;
        uint64_t required_bytes = 0;
        unsigned __int128 wanted_bytes = 0;
        size_t waiting = 0;
        std::unordered_map<std::string, User> users;
        std::set<std::pair<std::pair<Turn, uint64_t>, std::string>> due;  // ((turn, first arrival), user)
    };

    bool eligible(uint32_t group) const;  // its next waiter may run
    // The group whose turn it is among those for which `may` says so; nothing when there is none.
    template <typename May>
    static std::optional<uint32_t> choose(const std::vector<Group> &groups, May &&may);
    static void enter(Group &group, const std::string &name, User &user);
    static void withdraw(Group &group, const std::string &name, const User &user);
    static void take_turn(std::vector<Group> &groups, Turn &now, uint32_t index, User &user);
    void remove(const Uuid &statement, bool served);
    void tidy();

    std::vector<Group> groups_;
    Turn now_ = 0;  // start of the turn served last, of groups
    std::unordered_map<Uuid, Waiter> waiters_;
    std::set<std::pair<int64_t, uint64_t>> deadlines_;  // (deadline, arrival)
    std::map<uint64_t, Uuid> by_arrival_;
    std::optional<Uuid> head_;
};

}  // namespace roost::admission
