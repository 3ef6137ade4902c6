#include "admission/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <set>

namespace roost::admission {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr int64_t kNever = INT64_MAX;
using Kind = Ledger::Answer::Kind;

Ledger make_ledger(Profile profile, uint64_t budget_bytes = 12 * kGiB) {
    return Ledger({.budget_bytes = budget_bytes, .profile = profile, .always_audit = true});
}

Ledger::Answer ask(Ledger &ledger, const Uuid &id, bool no_wait, int64_t now_us, int64_t deadline_us) {
    return ledger.request({.account = id, .no_wait = no_wait, .admission_wait_us = deadline_us - now_us}, now_us);
}

// Who has waited in vain.
std::vector<Uuid> expire(Ledger &ledger, int64_t now_us) {
    std::vector<Uuid> out;
    for (const auto &end : ledger.tick(now_us).ends) out.push_back(end.statement);
    return out;
}

std::vector<Uuid> statements_of(const std::vector<SlotGrant> &grants) {
    std::vector<Uuid> out;
    for (const auto &grant : grants) out.push_back(grant.statement);
    return out;
}

TEST(Profile, names_round_trip_and_others_are_refused) {
    for (const auto profile :
         {Profile::single, Profile::equal_2, Profile::decaying_2, Profile::decaying_3, Profile::automatic}) {
        EXPECT_EQ(parse_profile(profile_name(profile)), profile);
        const auto weights = ladder(profile);
        EXPECT_TRUE(std::is_sorted(weights.rbegin(), weights.rend()));
    }
    EXPECT_EQ(parse_profile("auto"), Profile::automatic);
    EXPECT_FALSE(parse_profile("automatic").has_value());
    EXPECT_FALSE(parse_profile("").has_value());
}

TEST(Ledger, slots_share_the_budget_less_the_lanes_by_weight) {
    auto ledger = make_ledger(Profile::decaying_3);
    // 12 GiB less two lanes of 1 GiB, by 3:2:1.
    const uint64_t unit = 10 * kGiB / 6;
    EXPECT_EQ(ask(ledger, Uuid::make(), false, 0, kNever).grant.bytes, 10 * kGiB * 3 / 6);
    EXPECT_EQ(ask(ledger, Uuid::make(), false, 0, kNever).grant.bytes, 10 * kGiB * 2 / 6);
    EXPECT_EQ(ask(ledger, Uuid::make(), false, 0, kNever).grant.bytes, unit);
    EXPECT_EQ(ask(ledger, Uuid::make(), false, 0, kNever).kind, Kind::waiting);
    EXPECT_LE(ledger.granted_bytes() + lanes_of(12 * kGiB).small_bytes + lanes_of(12 * kGiB).pinned_bytes, 12 * kGiB);
}

TEST(Ledger, a_statement_takes_the_largest_free_slot) {
    auto ledger = make_ledger(Profile::decaying_2);
    const Uuid first = Uuid::make();
    const auto large = ask(ledger, first, false, 0, kNever).grant;
    const auto small = ask(ledger, Uuid::make(), false, 0, kNever).grant;
    EXPECT_GT(large.bytes, small.bytes);
    EXPECT_NE(large.slot, small.slot);
    ledger.release(first, 1);
    EXPECT_EQ(ask(ledger, Uuid::make(), false, 2, kNever).grant.slot, large.slot);
}

TEST(Ledger, waiters_are_granted_in_order_of_arrival_with_their_wait) {
    auto ledger = make_ledger(Profile::single);
    const Uuid holder = Uuid::make();
    const Uuid first = Uuid::make();
    const Uuid second = Uuid::make();
    ask(ledger, holder, false, 0, kNever);
    ask(ledger, first, false, 10, kNever);
    ask(ledger, second, false, 20, kNever);
    EXPECT_EQ(ledger.place(first), 1U);
    EXPECT_EQ(ledger.place(second), 2U);
    const auto grants = ledger.release(holder, 110).grants;
    ASSERT_EQ(grants.size(), 1U);
    EXPECT_EQ(grants[0].statement, first);
    EXPECT_EQ(grants[0].waited_us, 100);
    EXPECT_EQ(ledger.place(first), 0U);
    EXPECT_EQ(ledger.place(second), 1U);
}

TEST(Ledger, no_wait_says_so_and_leaves_no_trace) {
    auto ledger = make_ledger(Profile::single);
    ask(ledger, Uuid::make(), true, 0, kNever);
    const Uuid asker = Uuid::make();
    EXPECT_EQ(ask(ledger, asker, true, 0, kNever).kind, Kind::would_wait);
    EXPECT_EQ(ledger.waiting(), 0U);
    EXPECT_EQ(ledger.place(asker), 0U);
    // It may come again and wait.
    EXPECT_EQ(ask(ledger, asker, false, 0, kNever).kind, Kind::waiting);
}

TEST(Ledger, a_wait_ends_at_its_deadline_whatever_the_order_of_deadlines) {
    auto ledger = make_ledger(Profile::single);
    ask(ledger, Uuid::make(), false, 0, kNever);
    const Uuid late = Uuid::make();
    const Uuid soon = Uuid::make();
    ask(ledger, late, false, 0, 300);
    ask(ledger, soon, false, 0, 200);
    EXPECT_EQ(ledger.next_event_us(), 200);
    EXPECT_TRUE(expire(ledger, 199).empty());
    EXPECT_EQ(expire(ledger, 200), std::vector<Uuid>{soon});
    EXPECT_EQ(ledger.next_event_us(), 300);
    EXPECT_EQ(expire(ledger, 1000), std::vector<Uuid>{late});
    EXPECT_EQ(ledger.next_event_us(), std::nullopt);
}

TEST(Ledger, a_waiter_may_leave_and_the_rest_move_up) {
    auto ledger = make_ledger(Profile::single);
    const Uuid holder = Uuid::make();
    const Uuid leaver = Uuid::make();
    const Uuid next = Uuid::make();
    ask(ledger, holder, false, 0, kNever);
    ask(ledger, leaver, false, 0, kNever);
    ask(ledger, next, false, 0, kNever);
    EXPECT_TRUE(ledger.abandon(leaver, 0).grants.empty());
    EXPECT_EQ(ledger.waiting(), 1U);
    ledger.abandon(leaver, 0);
    ledger.abandon(holder, 0);
    EXPECT_EQ(ledger.waiting(), 1U);
    EXPECT_EQ(ledger.running(), 1U);
    EXPECT_EQ(ledger.place(next), 1U);
    EXPECT_EQ(statements_of(ledger.release(holder, 1).grants), std::vector<Uuid>{next});
}

TEST(Ledger, memory_of_a_cancelled_statement_is_lent_only_once_it_is_back) {
    auto ledger = make_ledger(Profile::single);
    const Uuid cancelled = Uuid::make();
    const Uuid waiter = Uuid::make();
    ask(ledger, cancelled, false, 0, kNever);
    ask(ledger, waiter, false, 0, kNever);
    ledger.abandon(cancelled, 1);
    EXPECT_TRUE(ledger.end(cancelled, Keep::nothing, 2).grants.empty());
    EXPECT_TRUE(ledger.tick(3'000'000).grants.empty());
    EXPECT_EQ(ledger.place(waiter), 1U);
    EXPECT_EQ(statements_of(ledger.release(cancelled, 3'000'001).grants), std::vector<Uuid>{waiter});
}

TEST(Ledger, releasing_what_holds_nothing_changes_nothing) {
    auto ledger = make_ledger(Profile::single);
    const Uuid holder = Uuid::make();
    ask(ledger, holder, false, 0, kNever);
    EXPECT_TRUE(ledger.release(Uuid::make(), 1).grants.empty());
    EXPECT_EQ(ledger.running(), 1U);
    ledger.release(holder, 2);
    EXPECT_TRUE(ledger.release(holder, 3).grants.empty());
    EXPECT_EQ(ledger.running(), 0U);
    EXPECT_EQ(ledger.granted_bytes(), 0U);
}

TEST(Ledger, a_switch_keeps_running_grants_and_opens_slots_as_their_memory_is_free) {
    auto ledger = make_ledger(Profile::single);
    const Uuid holder = Uuid::make();
    const uint64_t whole = ask(ledger, holder, false, 0, kNever).grant.bytes;
    const Uuid first = Uuid::make();
    const Uuid second = Uuid::make();
    ask(ledger, first, false, 0, kNever);
    ask(ledger, second, false, 0, kNever);
    EXPECT_TRUE(ledger.set_profile(Profile::equal_2, 1).grants.empty());
    EXPECT_EQ(ledger.granted_bytes(), whole);
    const auto grants = ledger.release(holder, 2).grants;
    EXPECT_EQ(statements_of(grants), (std::vector<Uuid>{first, second}));
    EXPECT_EQ(grants[0].bytes, whole / 2);
}

TEST(Ledger, a_switch_to_more_slots_grants_waiters_at_once_where_memory_allows) {
    auto ledger = make_ledger(Profile::decaying_2);
    const Uuid large = Uuid::make();
    const Uuid small = Uuid::make();
    ask(ledger, large, false, 0, kNever);
    ask(ledger, small, false, 0, kNever);
    const Uuid waiter = Uuid::make();
    ask(ledger, waiter, false, 0, kNever);
    ledger.release(large, 1);  // the waiter takes the large slot
    const Uuid next = Uuid::make();
    ask(ledger, next, false, 1, kNever);
    // A third is held by `small`, two thirds by `waiter`: nothing of 3:2:1 fits until one leaves.
    EXPECT_TRUE(ledger.set_profile(Profile::decaying_3, 2).grants.empty());
    const auto grants = ledger.release(waiter, 3).grants;
    EXPECT_EQ(statements_of(grants), std::vector<Uuid>{next});
    EXPECT_EQ(grants[0].bytes, 10 * kGiB / 2);
}

TEST(Ledger, switching_to_the_same_profile_is_nothing) {
    auto ledger = make_ledger(Profile::equal_2);
    const auto grant = ask(ledger, Uuid::make(), false, 0, kNever).grant;
    EXPECT_TRUE(ledger.set_profile(Profile::equal_2, 0).grants.empty());
    EXPECT_EQ(ask(ledger, Uuid::make(), false, 0, kNever).grant.bytes, grant.bytes);
}

TEST(Ledger, any_budget_works) {
    for (const uint64_t budget : {uint64_t{0}, uint64_t{1}, uint64_t{11}, uint64_t{13}, UINT64_MAX}) {
        for (const auto profile : {Profile::single, Profile::decaying_3}) {
            auto ledger = make_ledger(profile, budget);
            const auto slots = ladder(profile).size();
            for (size_t i = 0; i < slots; ++i) EXPECT_EQ(ask(ledger, Uuid::make(), true, 0, 0).kind, Kind::granted);
            EXPECT_EQ(ask(ledger, Uuid::make(), true, 0, 0).kind, Kind::would_wait);
            EXPECT_LE(ledger.granted_bytes(), budget);
        }
    }
}

TEST(LedgerDeathTest, a_second_slot_for_a_statement_stops_the_process) {
    auto ledger = make_ledger(Profile::equal_2);
    const Uuid statement = Uuid::make();
    ask(ledger, statement, false, 0, kNever);
    EXPECT_DEATH(ask(ledger, statement, false, 0, kNever), "second slot");
}

// A model of what everybody outside sees, kept beside the ledger: who holds how much, who waits since when.
class Model {
public:
    Model(uint64_t seed, uint64_t budget_bytes)
        : random_(seed),
          budget_bytes_(budget_bytes),
          ledger_({.budget_bytes = budget_bytes, .profile = Profile::equal_2}) {}

    void step() {
        now_us_ += static_cast<int64_t>(random_() % 50);
        switch (random_() % 16) {
            case 0:
                switch_profile();
                break;
            case 1:
                leave();
                break;
            case 2:
            case 3:
                expire();
                break;
            case 4:
            case 5:
            case 6:
            case 7:
            case 8:
                finish();
                break;
            default:
                ask();
                break;
        }
        check();
    }

    // Everything ends: with no newcomers, each wait ends by grant or deadline, and all memory comes back.
    void drain() {
        while (!held_.empty() || !line_.empty()) {
            const size_t before = held_.size() + line_.size();
            now_us_ += 1'000'000;
            if (!held_.empty()) {
                finish();
            } else {
                expire();
            }
            check();
            ASSERT_LT(held_.size() + line_.size(), before);
        }
        ASSERT_EQ(ledger_.granted_bytes(), 0U);
    }

    size_t grants_count() const { return grants_; }
    size_t expired_count() const { return expired_; }

private:
    struct Waiting {
        Uuid statement;
        int64_t since_us, deadline_us;
    };

    Uuid new_id() {
        // Cheaper than Uuid::make, and the run is the same for the same seed.
        Uuid id;
        const uint64_t number = ++ids_;
        std::memcpy(id.bytes.data(), &number, sizeof(number));
        return id;
    }

    void granted(const SlotGrant &grant) {
        ASSERT_TRUE(held_.emplace(grant.statement, grant.bytes).second) << "granted twice";
        ASSERT_TRUE(slots_.emplace(grant.slot).second) << "a slot with two holders";
        slot_of_[grant.statement] = grant.slot;
        held_bytes_ += grant.bytes;
        ++grants_;
    }

    void granted_to_waiters(const std::vector<SlotGrant> &grants) {
        for (const auto &grant : grants) {
            ASSERT_FALSE(line_.empty());
            ASSERT_EQ(grant.statement, line_.front().statement) << "somebody was passed";
            ASSERT_EQ(grant.waited_us, now_us_ - line_.front().since_us);
            line_.pop_front();
            granted(grant);
        }
    }

    void ask() {
        const Uuid id = new_id();
        const bool no_wait = random_() % 3 == 0;
        const int64_t deadline_us = now_us_ + 1 + static_cast<int64_t>(random_() % 2000);
        const auto answer = roost::admission::ask(ledger_, id, no_wait, now_us_, deadline_us);
        if (answer.kind == Kind::granted) {
            ASSERT_TRUE(line_.empty()) << "a newcomer passed a waiter";
            ASSERT_EQ(answer.grant.statement, id);
            granted(answer.grant);
            return;
        }
        ASSERT_FALSE(held_.empty()) << "waits though nothing runs";
        ASSERT_EQ(answer.kind, no_wait ? Kind::would_wait : Kind::waiting);
        if (no_wait) return;
        line_.push_back({id, now_us_, deadline_us});
        ASSERT_EQ(ledger_.waiting(), line_.size());
    }

    void finish() {
        if (held_.empty()) return;
        auto holder = held_.begin();
        std::advance(holder, random_() % held_.size());
        const Uuid id = holder->first;
        held_bytes_ -= holder->second;
        held_.erase(holder);
        slots_.erase(slot_of_[id]);
        slot_of_.erase(id);
        granted_to_waiters(ledger_.release(id, now_us_).grants);
    }

    void leave() {
        if (line_.empty()) return;
        const auto waiter = line_.begin() + static_cast<ptrdiff_t>(random_() % line_.size());
        ASSERT_TRUE(ledger_.abandon(waiter->statement, now_us_).grants.empty());
        line_.erase(waiter);
    }

    void expire() {
        std::vector<Uuid> expected;
        std::erase_if(line_, [&](const Waiting &waiter) {
            if (waiter.deadline_us > now_us_) return false;
            expected.push_back(waiter.statement);
            return true;
        });
        ASSERT_EQ(roost::admission::expire(ledger_, now_us_), expected);
        expired_ += expected.size();
    }

    void switch_profile() {
        if (random_() % 8 != 0) return;
        const auto before = held_;
        const auto profile = static_cast<Profile>(random_() % 4);
        granted_to_waiters(ledger_.set_profile(profile, now_us_).grants);
        ASSERT_EQ(ledger_.profile(), profile);
        for (const auto &[id, bytes] : before) ASSERT_EQ(held_.at(id), bytes) << "a running grant changed";
    }

    void check() {
        const Lanes lanes = lanes_of(budget_bytes_);
        ASSERT_LE(held_bytes_ + lanes.small_bytes + lanes.pinned_bytes, budget_bytes_) << "memory lent twice";
        ASSERT_EQ(ledger_.granted_bytes(), held_bytes_);
        ASSERT_EQ(ledger_.running(), held_.size());
        ASSERT_EQ(ledger_.waiting(), line_.size());
        ASSERT_FALSE(!line_.empty() && held_.empty()) << "a wait that nothing will end";
        if (line_.empty()) {
            ASSERT_EQ(ledger_.next_event_us(), std::nullopt);
        } else {
            ASSERT_EQ(ledger_.place(line_.back().statement), line_.size());
        }
    }

    std::mt19937_64 random_;
    const uint64_t budget_bytes_;
    Ledger ledger_;
    int64_t now_us_ = 1;
    uint64_t ids_ = 0;
    std::map<Uuid, uint64_t> held_;
    std::map<Uuid, uint32_t> slot_of_;
    std::set<uint32_t> slots_;
    std::deque<Waiting> line_;
    uint64_t held_bytes_ = 0;
    size_t grants_ = 0;
    size_t expired_ = 0;
};

// ROOST_TEST_SEED repeats a run.
TEST(LedgerProperty, a_million_random_transitions_keep_every_promise) {
    const char *given = std::getenv("ROOST_TEST_SEED");
    const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    size_t grants = 0;
    size_t expired = 0;
    constexpr int kRuns = 1'000;
    constexpr int kSteps = 1'200;
    for (int run = 0; run < kRuns; ++run) {
        std::mt19937_64 random(seed + static_cast<uint64_t>(run));
        Model model(random(), random() % (64 * kGiB));
        for (int step = 0; step < kSteps; ++step) {
            model.step();
            ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << " run " << run << " step " << step;
        }
        model.drain();
        ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << " run " << run << " draining";
        grants += model.grants_count();
        expired += model.expired_count();
    }
    // The run went through what it is about.
    EXPECT_GT(grants, 100'000U);
    EXPECT_GT(expired, 10'000U);
}

}  // namespace
}  // namespace roost::admission
