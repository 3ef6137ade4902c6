// `auto`: what is required, lent, called back, waited for. Each test drives the engine's side by hand.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "admission/ledger.h"

namespace roost::admission {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kMost = 10 * kGiB / 100 * 85;  // that one statement may have
constexpr int64_t kSecond = 1'000'000;
using Kind = Ledger::Answer::Kind;

// 12 GiB: lanes of 1 GiB each, 10 GiB to lend, XS 1, S 2, M 4 GiB.
class AutoTest : public testing::Test, public EngineOrders {
protected:
    struct Order {
        Uuid account;
        uint64_t number = 0, bytes = 0;
    };

    Ledger make(std::vector<GroupOptions> groups = {}, uint32_t threads = 4) {
        return Ledger({.budget_bytes = 12 * kGiB,
                       .profile = Profile::automatic,
                       .threads = threads,
                       .groups = std::move(groups),
                       .engine = this,
                       .always_audit = true});
    }

    void set_limit(const Uuid &account, uint64_t order, uint64_t bytes) override {
        orders_.push_back({account, order, bytes});
    }
    void cant_shrink(const Uuid &account, uint64_t bytes) override { stuck_.emplace_back(account, bytes); }

    // The engine does all that it was told, and uses nothing.
    Outcome obey(Ledger &ledger, int64_t now_us) {
        Outcome all;
        while (!orders_.empty()) {
            const Order order = orders_.front();
            orders_.pop_front();
            const Outcome one = ledger.limit_confirmed(order.account, order.number, 0, now_us);
            all.grants.insert(all.grants.end(), one.grants.begin(), one.grants.end());
            all.ends.insert(all.ends.end(), one.ends.begin(), one.ends.end());
        }
        return all;
    }

    static Request want(const Uuid &id, uint64_t bytes, const std::string &user = "", const std::string &group = "") {
        return {.account = id, .wanted_bytes = bytes, .admission_wait_us = 300 * kSecond, .user = user, .group = group};
    }

    static std::vector<Uuid> ids(const Outcome &outcome) {
        std::vector<Uuid> out;
        for (const auto &grant : outcome.grants) out.push_back(grant.statement);
        return out;
    }

    std::deque<Order> orders_;
    std::vector<std::pair<Uuid, uint64_t>> stuck_;
};

TEST(Sizing, buckets_are_shares_of_the_budget) {
    const uint64_t budget = 12 * kGiB;
    EXPECT_EQ(bucket_bytes(Bucket::xs, budget), kGiB);
    EXPECT_EQ(bucket_bytes(Bucket::s, budget), 2 * kGiB);
    EXPECT_EQ(bucket_bytes(Bucket::m, budget), 4 * kGiB);
    EXPECT_EQ(bucket_bytes(Bucket::l, budget), 6 * kGiB);
    EXPECT_EQ(bucket_bytes(Bucket::xl, budget), budget);
    EXPECT_EQ(bucket_of(0, budget), Bucket::xs);
    EXPECT_EQ(bucket_of(kGiB, budget), Bucket::xs);
    EXPECT_EQ(bucket_of(kGiB + 1, budget), Bucket::s);
    EXPECT_EQ(bucket_of(100 * kGiB, budget), Bucket::xl);
    EXPECT_EQ(bucket_name(Bucket::xl), "XL");
}

TEST(Sizing, a_want_is_capped_at_a_third_and_the_floor_scales_with_threads) {
    SizingOptions options{.budget_bytes = 12 * kGiB, .lendable_bytes = 10 * kGiB};
    EXPECT_EQ(size_of(options, 9 * kGiB).want_bytes, 4 * kGiB);
    EXPECT_EQ(size_of(options, 9 * kGiB).floor_bytes, 2 * kGiB);
    EXPECT_EQ(size_of(options, 0).want_bytes, 4 * kGiB) << "unknown is M";
    EXPECT_EQ(size_of(options, 1).want_bytes, 64 * kMiB);
    EXPECT_EQ(size_of(options, 1).floor_bytes, 64 * kMiB);
    options.threads = 64;
    EXPECT_EQ(least_bytes(options), 512 * kMiB);
    EXPECT_EQ(size_of(options, 1).want_bytes, 512 * kMiB);
    EXPECT_EQ(size_of(options, 600 * kMiB).floor_bytes, 512 * kMiB);
    options.lendable_bytes = 100 * kMiB;
    EXPECT_EQ(size_of(options, kGiB).floor_bytes, 100 * kMiB) << "a small node gives what it has";
}

TEST_F(AutoTest, a_statement_alone_is_lent_what_is_free_and_it_comes_back_before_anybody_waits_for_long) {
    Ledger ledger = make();
    const Uuid first = Uuid::make(), second = Uuid::make();
    const auto grant = ledger.request(want(first, 2 * kGiB), 0).grant;
    EXPECT_EQ(grant.bytes, 2 * kGiB);
    EXPECT_EQ(grant.bytes + grant.elastic_bytes, kMost);
    // Only what lacks is called back; it is granted when the engine has given it.
    EXPECT_EQ(ledger.request(want(second, 4 * kGiB), 10).kind, Kind::waiting);
    ASSERT_EQ(orders_.size(), 1U);
    EXPECT_EQ(orders_[0].account, first);
    EXPECT_EQ(orders_[0].bytes, 6 * kGiB);
    EXPECT_EQ(ledger.view(first).counted_bytes, kMost);
    EXPECT_TRUE(ledger.limit_confirmed(first, orders_[0].number, 7 * kGiB, 20).grants.empty()) << "still used";
    const auto grants = ledger.used(first, 6 * kGiB, 30).grants;
    ASSERT_EQ(grants.size(), 1U);
    EXPECT_EQ(grants[0].bytes, 4 * kGiB);
    EXPECT_EQ(grants[0].waited_us, 20);
    EXPECT_EQ(ledger.view(first).required_bytes, 2 * kGiB);
}

TEST_F(AutoTest, an_order_that_was_followed_by_another_proves_nothing) {
    Ledger ledger = make();
    const Uuid first = Uuid::make(), second = Uuid::make();
    ledger.request(want(first, 2 * kGiB), 0);
    ledger.request(want(second, 4 * kGiB), 0);
    const Order lower = orders_.front();
    ledger.abandon(second, 1);  // nobody waits: the limit is raised again
    ASSERT_GT(orders_.size(), 1U);
    EXPECT_GT(orders_.back().bytes, lower.bytes);
    ledger.limit_confirmed(first, lower.number, 0, 2);
    EXPECT_EQ(ledger.view(first).counted_bytes, kMost);
    // Lowered twice: the first order's confirmation is not the second's.
    ledger.request(want(Uuid::make(), 4 * kGiB), 3);
    const Order one = orders_.back();
    ledger.request(want(Uuid::make(), 4 * kGiB), 4);
    ASSERT_LT(orders_.back().bytes, one.bytes);
    ledger.limit_confirmed(first, one.number, 0, 5);
    EXPECT_EQ(ledger.view(first).counted_bytes, kMost);
}

TEST_F(AutoTest, who_does_not_shrink_in_two_seconds_is_reported_and_not_reckoned_with) {
    Ledger ledger = make();
    const Uuid pinned = Uuid::make(), waiter = Uuid::make();
    ledger.request(want(pinned, 4 * kGiB), 0);
    ledger.request(want(waiter, 4 * kGiB), 0);
    EXPECT_EQ(ledger.next_event_us(), 2 * kSecond);
    EXPECT_TRUE(ledger.tick(2 * kSecond - 1).grants.empty());
    EXPECT_TRUE(stuck_.empty());
    // Not even the floor is free: it waits on, and what is stuck is not lent.
    EXPECT_TRUE(ledger.tick(2 * kSecond).grants.empty());
    ASSERT_EQ(stuck_.size(), 1U);
    EXPECT_EQ(stuck_[0].first, pinned);
    EXPECT_TRUE(ledger.view(pinned).stuck);
    EXPECT_EQ(ledger.view(pinned).counted_bytes, kMost);
    // Late is not never.
    EXPECT_EQ(ids(obey(ledger, 9 * kSecond)), std::vector<Uuid>{waiter});
    EXPECT_FALSE(ledger.view(pinned).stuck);
}

TEST_F(AutoTest, when_nothing_runs_less_than_the_floor_will_do_but_never_what_is_not_back) {
    Ledger ledger = make();
    const Uuid gone = Uuid::make(), next = Uuid::make(), last = Uuid::make();
    ledger.request(want(gone, 4 * kGiB), 0);
    ledger.end(gone, Keep::nothing, 1);
    EXPECT_EQ(ledger.running(), 0U);
    EXPECT_EQ(ledger.request(want(next, 4 * kGiB), 2).kind, Kind::waiting) << "its memory may come back any moment";
    const auto grants = ledger.tick(2 * kSecond + 1).grants;
    ASSERT_EQ(grants.size(), 1U) << "it does not, and nothing else would give any";
    EXPECT_EQ(grants[0].bytes, 10 * kGiB - kMost);
    EXPECT_LT(grants[0].bytes, 2 * kGiB) << "less than its floor";
    // The least is not there either.
    EXPECT_EQ(ledger.request(want(last, 4 * kGiB), 3 * kSecond).kind, Kind::waiting);
    EXPECT_TRUE(ledger.tick(200 * kSecond).grants.empty());
    EXPECT_EQ(ids(obey(ledger, 201 * kSecond)), std::vector<Uuid>{last});
}

TEST_F(AutoTest, a_failed_order_is_given_again) {
    Ledger ledger = make();
    const Uuid first = Uuid::make(), second = Uuid::make();
    ledger.request(want(first, 4 * kGiB), 0);
    ledger.request(want(second, 4 * kGiB), 0);
    const Order order = orders_.front();
    orders_.clear();
    ledger.limit_failed(first, order.number, 10);
    ASSERT_TRUE(ledger.next_event_us().has_value());
    ledger.tick(*ledger.next_event_us());
    ASSERT_EQ(orders_.size(), 1U);
    EXPECT_EQ(orders_[0].bytes, order.bytes);
    EXPECT_GT(orders_[0].number, order.number);
    EXPECT_EQ(ids(obey(ledger, kSecond)), std::vector<Uuid>{second});
}

TEST_F(AutoTest, idle_sessions_give_back_first_then_the_largest) {
    Ledger ledger = make();
    const Uuid session = Uuid::make(), small = Uuid::make();
    ledger.request(want(session, 2 * kGiB), 0);
    ledger.end(session, Keep::elastic, 1);
    obey(ledger, 1);
    const uint64_t kept = ledger.view(session).elastic_bytes;
    EXPECT_GT(kept, 2 * kGiB) << "it keeps its cache";
    EXPECT_EQ(ledger.required_bytes(), 0U);
    ledger.request(want(small, kGiB), 2);
    obey(ledger, 2);
    orders_.clear();
    const Uuid other = Uuid::make();
    EXPECT_EQ(ledger.request(want(other, 4 * kGiB), 3).kind, Kind::waiting);
    ASSERT_FALSE(orders_.empty());
    EXPECT_EQ(orders_.front().account, session);
    EXPECT_EQ(ids(obey(ledger, 4)), std::vector<Uuid>{other});
    EXPECT_GE(ledger.view(session).elastic_bytes, 64 * kMiB);
}

TEST_F(AutoTest, a_session_runs_again_on_what_it_kept) {
    Ledger ledger = make();
    const Uuid session = Uuid::make();
    ledger.request(want(session, 4 * kGiB), 0);
    ledger.end(session, Keep::elastic, 1);
    obey(ledger, 1);
    const uint64_t kept = ledger.view(session).elastic_bytes;
    const auto again = ledger.request(want(session, kGiB), 2);
    EXPECT_EQ(again.kind, Kind::granted);
    EXPECT_EQ(again.grant.bytes, kGiB);
    EXPECT_GE(again.grant.bytes + again.grant.elastic_bytes, kept);
}

TEST_F(AutoTest, an_idle_session_never_blocks_anybody) {
    Ledger ledger = make();
    std::vector<Uuid> sessions;
    for (int i = 0; i < 40; ++i) {
        sessions.push_back(Uuid::make());
        ledger.request(want(sessions.back(), 256 * kMiB), 0);
        obey(ledger, 0);
    }
    for (const Uuid &session : sessions) {
        ledger.end(session, Keep::elastic, 1);
        obey(ledger, 1);
    }
    std::vector<Uuid> heavy;
    size_t granted = 0;
    for (int i = 0; i < 2; ++i) {
        heavy.push_back(Uuid::make());
        granted += ledger.request(want(heavy.back(), 4 * kGiB), 2).kind == Kind::granted ? 1 : 0;
        granted += obey(ledger, 2).grants.size();
    }
    EXPECT_EQ(granted, 2U);
    EXPECT_EQ(ledger.required_bytes(), 8 * kGiB);
}

TEST_F(AutoTest, a_waiter_shrinks_to_the_idle_minimum) {
    Ledger ledger = make();
    const Uuid session = Uuid::make();
    ledger.request(want(session, 2 * kGiB), 0);
    ledger.end(session, Keep::elastic, 1);
    obey(ledger, 1);
    const Uuid one = Uuid::make(), two = Uuid::make(), three = Uuid::make();
    for (const Uuid &id : {one, two, three}) ledger.request(want(id, 4 * kGiB), 2);
    obey(ledger, 2);
    EXPECT_EQ(ledger.request(want(session, 4 * kGiB), 3).kind, Kind::waiting);
    obey(ledger, 3);
    EXPECT_LE(ledger.view(session).counted_bytes, 64 * kMiB);
    EXPECT_EQ(ledger.place(session), ledger.waiting());
}

TEST_F(AutoTest, no_wait_says_how_long_it_would_be_and_waits_only_for_what_is_called_back) {
    Ledger ledger = make();
    const Uuid one = Uuid::make(), two = Uuid::make(), three = Uuid::make();
    ledger.request(want(one, 4 * kGiB), 0);
    Request impatient = want(two, 4 * kGiB);
    impatient.no_wait = true;
    EXPECT_EQ(ledger.request(impatient, 1).kind, Kind::waiting) << "elastic memory is coming";
    EXPECT_EQ(ids(obey(ledger, 2)), std::vector<Uuid>{two});
    impatient.account = three;
    impatient.wanted_bytes = 4 * kGiB;
    const auto third = ledger.request(impatient, 3);
    obey(ledger, 3);
    if (third.kind == Kind::granted || third.kind == Kind::waiting) {
        EXPECT_EQ(ledger.view(three).required_bytes, 2 * kGiB) << "its floor is there";
    }
    impatient.account = Uuid::make();
    const auto fourth = ledger.request(impatient, 4);
    EXPECT_EQ(fourth.kind, Kind::would_wait);
    EXPECT_FALSE(fourth.expected_wait_us.has_value() && *fourth.expected_wait_us < 0);
    EXPECT_EQ(ledger.waiting(), 0U);
    // After something came back there is a figure.
    ledger.end(three, Keep::nothing, 5 * kSecond);
    obey(ledger, 5 * kSecond);
    ledger.end(one, Keep::nothing, 15 * kSecond);
    obey(ledger, 15 * kSecond);
    ledger.request(want(Uuid::make(), 4 * kGiB), 15 * kSecond);
    ledger.request(want(Uuid::make(), 4 * kGiB), 15 * kSecond);
    obey(ledger, 15 * kSecond);
    const auto last = ledger.request(impatient, 15 * kSecond);
    ASSERT_EQ(last.kind, Kind::would_wait);
    ASSERT_TRUE(last.expected_wait_us.has_value());
    EXPECT_GT(*last.expected_wait_us, 0);
}

TEST_F(AutoTest, a_no_wait_asker_is_sent_away_when_what_was_called_back_does_not_come) {
    Ledger ledger = make();
    const Uuid pinned = Uuid::make(), asker = Uuid::make();
    ledger.request(want(pinned, 4 * kGiB), 0);
    Request request = want(asker, 4 * kGiB);
    request.no_wait = true;
    ASSERT_EQ(ledger.request(request, 0).kind, Kind::waiting);
    const auto outcome = ledger.tick(2 * kSecond);
    ASSERT_EQ(outcome.ends.size(), 1U);
    EXPECT_EQ(outcome.ends[0].statement, asker);
    EXPECT_EQ(outcome.ends[0].why, WaitEnd::Why::would_wait);
}

TEST_F(AutoTest, at_the_end_of_its_wait_it_runs_if_its_floor_is_there_else_it_fails) {
    Ledger ledger = make();
    const Uuid one = Uuid::make(), two = Uuid::make(), head = Uuid::make(), small = Uuid::make(), late = Uuid::make();
    ledger.request(want(one, 4 * kGiB), 0);
    ledger.request(want(two, 4 * kGiB), 0);
    obey(ledger, 0);
    ledger.request(want(Uuid::make(), 1536 * kMiB), 0);  // 0.5 GiB is left
    obey(ledger, 0);
    ledger.request(want(head, 4 * kGiB), 1);
    obey(ledger, 1);
    Request soon = want(small, 512 * kMiB);
    soon.admission_wait_us = kSecond;
    EXPECT_EQ(ledger.request(soon, 2).kind, Kind::waiting) << "it would fit, and does not pass the head";
    soon.account = late;
    soon.wanted_bytes = 4 * kGiB;
    ledger.request(soon, 3);
    const auto outcome = ledger.tick(kSecond + 3);
    EXPECT_EQ(ids(outcome), std::vector<Uuid>{small});
    EXPECT_TRUE(outcome.grants[0].overdue);
    ASSERT_EQ(outcome.ends.size(), 1U);
    EXPECT_EQ(outcome.ends[0].statement, late);
    EXPECT_EQ(outcome.ends[0].why, WaitEnd::Why::admission_timeout);
}

TEST_F(AutoTest, a_statements_own_timeout_ends_its_wait) {
    Ledger ledger = make();
    for (int i = 0; i < 3; ++i) ledger.request(want(Uuid::make(), 4 * kGiB), 0);
    obey(ledger, 0);
    Request request = want(Uuid::make(), 4 * kGiB);
    request.timeout_us = kSecond;
    ledger.request(request, 0);
    const auto outcome = ledger.tick(kSecond);
    ASSERT_EQ(outcome.ends.size(), 1U);
    EXPECT_EQ(outcome.ends[0].why, WaitEnd::Why::own_timeout);
}

TEST_F(AutoTest, with_a_wait_of_zero_it_runs_at_once_at_whatever_size_is_free) {
    Ledger ledger = make();
    ledger.request(want(Uuid::make(), 4 * kGiB), 0);
    ledger.request(want(Uuid::make(), 4 * kGiB), 0);
    obey(ledger, 0);
    ledger.request(want(Uuid::make(), 1792 * kMiB), 0);
    obey(ledger, 0);
    Request request = want(Uuid::make(), 4 * kGiB);
    request.admission_wait_us = 0;
    EXPECT_EQ(ledger.request(request, 1).kind, Kind::waiting) << "what is free is lent, and called back";
    const auto outcome = obey(ledger, 2);
    ASSERT_EQ(ids(outcome), std::vector<Uuid>{request.account});
    EXPECT_EQ(outcome.grants[0].bytes, 256 * kMiB);
    request.account = Uuid::make();
    EXPECT_EQ(ledger.request(request, 3).kind, Kind::refused);
}

TEST_F(AutoTest, one_users_hundred_statements_hold_back_nobody) {
    Ledger ledger = make();
    std::vector<Uuid> running;
    for (int i = 0; i < 2; ++i) {
        running.push_back(Uuid::make());
        ledger.request(want(running.back(), 4 * kGiB, "a"), 0);
        obey(ledger, 0);
    }
    running.push_back(Uuid::make());
    ledger.request(want(running.back(), 2 * kGiB, "a"), 0);
    obey(ledger, 0);
    std::vector<Uuid> of_a;
    for (int i = 0; i < 100; ++i) {
        of_a.push_back(Uuid::make());
        ledger.request(want(of_a.back(), 2 * kGiB, "a"), i);
    }
    const Uuid b1 = Uuid::make(), b2 = Uuid::make();
    ledger.request(want(b1, 2 * kGiB, "b"), 200);
    ledger.request(want(b2, 2 * kGiB, "b"), 201);
    EXPECT_EQ(ledger.place(of_a[0]), 1U) << "the head stays the head";
    EXPECT_EQ(ledger.place(b1), 2U);
    EXPECT_EQ(ledger.place(b2), 4U);
    EXPECT_EQ(ledger.place(of_a.back()), 102U);
    const std::vector<Uuid> line = ledger.line();
    ledger.release(running[0], 300);
    EXPECT_EQ(ledger.view(b1).required_bytes, 2 * kGiB);
    EXPECT_EQ(ledger.line(), std::vector<Uuid>(line.begin() + 2, line.end()));
}

TEST_F(AutoTest, groups_take_turns_by_weight_and_priority_goes_first) {
    Ledger ledger = make({{"bi", 3, 0, 0, 0}, {"etl", 1, 0, 0, 0}, {"gold", 1, 5, 0, 0}});
    const Uuid holder = Uuid::make();
    for (int i = 0; i < 2; ++i) {
        ledger.request(want(i == 0 ? holder : Uuid::make(), 4 * kGiB), 0);
        obey(ledger, 0);
    }
    ledger.request(want(Uuid::make(), 2 * kGiB), 0);
    obey(ledger, 0);
    std::map<Uuid, std::string> group_of;
    for (int i = 0; i < 40; ++i) {
        const Uuid id = Uuid::make();
        group_of[id] = i % 2 == 0 ? "etl" : "bi";
        ledger.request(want(id, 4 * kGiB, "u", group_of[id]), i);
    }
    const Uuid gold = Uuid::make();
    ledger.request(want(gold, 4 * kGiB, "u", "gold"), 100);
    EXPECT_EQ(ledger.place(gold), 2U) << "behind the head alone";
    int bi = 0;
    const std::vector<Uuid> line = ledger.line();
    for (size_t i = 2; i < 22; ++i) bi += group_of[line[i]] == "bi" ? 1 : 0;
    EXPECT_NEAR(bi, 15, 1);
}

TEST_F(AutoTest, a_group_at_its_cap_waits_for_itself_and_not_the_others) {
    Ledger ledger = make({{"etl", 1, 0, 1, 0}, {"bi", 1, 0, 0, 3 * kGiB}});
    const Uuid first = Uuid::make(), second = Uuid::make();
    EXPECT_EQ(ledger.request(want(first, kGiB, "", "etl"), 0).kind, Kind::granted);
    EXPECT_EQ(ledger.request(want(second, kGiB, "", "etl"), 1).kind, Kind::waiting);
    Uuid other = Uuid::make();
    if (ledger.request(want(other, kGiB), 2).kind == Kind::waiting) {
        EXPECT_EQ(ids(obey(ledger, 2)), std::vector<Uuid>{other});
    }
    // A cap of memory: 3 GiB of the group, whatever is free.
    const Uuid bi = Uuid::make();
    ledger.request(want(bi, 4 * kGiB, "", "bi"), 3);
    obey(ledger, 3);
    EXPECT_EQ(ledger.view(bi).required_bytes, 3 * kGiB);
    EXPECT_EQ(ledger.request(want(Uuid::make(), kGiB, "", "bi"), 4).kind, Kind::waiting);
    obey(ledger, 4);
    EXPECT_EQ(ledger.waiting(), 2U);
    EXPECT_EQ(ids(ledger.release(first, 5)), std::vector<Uuid>{second});
}

TEST_F(AutoTest, the_small_lane_is_a_promise_of_its_own) {
    Ledger ledger = make();
    for (int i = 0; i < 20; ++i) ledger.request(want(Uuid::make(), 4 * kGiB), 0);
    obey(ledger, 0);
    EXPECT_GT(ledger.waiting(), 10U);
    const Uuid heavy = Uuid::make(), again = Uuid::make();
    EXPECT_FALSE(ledger.enter_lane(Uuid::make(), kGiB + 1)) << "not small";
    EXPECT_TRUE(ledger.enter_lane(heavy, kGiB - kMiB));
    EXPECT_TRUE(ledger.enter_lane(again, 0));
    EXPECT_FALSE(ledger.enter_lane(Uuid::make(), 0)) << "the lane is full";
    ledger.leave_lane(heavy);
    EXPECT_TRUE(ledger.enter_lane(Uuid::make(), 0));
    ledger.leave_lane(Uuid::make());
}

TEST_F(AutoTest, profiles_switch_while_statements_run) {
    Ledger ledger = make();
    const Uuid first = Uuid::make(), second = Uuid::make();
    ledger.request(want(first, 2 * kGiB), 0);
    ledger.set_profile(Profile::equal_2, 1);
    EXPECT_EQ(ledger.view(first).required_bytes, 2 * kGiB);
    EXPECT_EQ(ledger.elastic_bytes(), 0U);
    EXPECT_EQ(ledger.request(want(second, 0), 2).kind, Kind::waiting) << "the lent memory is not back";
    EXPECT_EQ(ids(obey(ledger, 3)), std::vector<Uuid>{second});
    EXPECT_EQ(ledger.view(second).required_bytes, 5 * kGiB);
    ledger.set_profile(Profile::automatic, 4);
    EXPECT_EQ(ledger.view(second).required_bytes, 5 * kGiB);
    const Uuid third = Uuid::make();
    EXPECT_EQ(ledger.request(want(third, 2 * kGiB), 5).kind, Kind::waiting) << "it is lent again";
    EXPECT_EQ(ids(obey(ledger, 6)), std::vector<Uuid>{third});
}

TEST_F(AutoTest, under_a_ladder_a_session_keeps_its_slot) {
    Ledger ledger = make();
    ledger.set_profile(Profile::single, 0);
    const Uuid session = Uuid::make(), other = Uuid::make();
    const auto grant = ledger.request(want(session, 0), 1).grant;
    ledger.end(session, Keep::elastic, 2);
    EXPECT_EQ(ledger.request(want(other, 0), 3).kind, Kind::waiting);
    const auto again = ledger.request(want(session, 0), 4);
    EXPECT_EQ(again.kind, Kind::granted);
    EXPECT_EQ(again.grant.slot, grant.slot);
    EXPECT_EQ(again.grant.bytes, grant.bytes);
    EXPECT_TRUE(ledger.end(session, Keep::nothing, 5).grants.empty());
    EXPECT_EQ(ids(obey(ledger, 6)), std::vector<Uuid>{other});
}

TEST_F(AutoTest, under_pressure_elastic_memory_goes_then_nobody_is_admitted) {
    Ledger ledger = make();
    const Uuid first = Uuid::make(), second = Uuid::make();
    ledger.request(want(first, 2 * kGiB), 0);
    ledger.set_pressure(Pressure::shed, 1);
    EXPECT_EQ(ledger.elastic_bytes(), 0U);
    obey(ledger, 2);
    EXPECT_EQ(ledger.granted_bytes(), 2 * kGiB);
    ledger.set_pressure(Pressure::refuse, 3);
    EXPECT_EQ(ledger.request(want(second, kGiB), 4).kind, Kind::waiting);
    EXPECT_EQ(ids(ledger.set_pressure(Pressure::none, 5)), std::vector<Uuid>{second});
}

TEST_F(AutoTest, what_is_used_beyond_a_limit_is_not_lent) {
    Ledger ledger = make();
    const Uuid first = Uuid::make();
    ledger.request(want(first, 4 * kGiB), 0);
    ledger.set_pressure(Pressure::shed, 0);
    obey(ledger, 0);
    ledger.used(first, 9 * kGiB, 1);  // an aggregate that no limit holds
    ledger.set_pressure(Pressure::none, 2);
    EXPECT_EQ(ledger.request(want(Uuid::make(), 4 * kGiB), 3).kind, Kind::waiting);
    EXPECT_EQ(ledger.used(first, kGiB, 4).grants.size(), 1U);
}

// It is one instance, whatever the profile is called by then: another one beside it would be memory that nobody counts.
TEST_F(AutoTest, an_instance_that_a_session_kept_keeps_its_place_when_it_is_granted_a_slot) {
    Ledger ledger = make();
    const Uuid session = Uuid::make();
    const auto first = ledger.request(want(session, kGiB), 0);
    ASSERT_EQ(first.kind, Kind::granted);
    ledger.end(session, Keep::elastic, 1);
    obey(ledger, 1);
    std::vector<Uuid> others;
    for (int i = 0; i < 3; ++i) {
        others.push_back(Uuid::make());
        ledger.request(want(others.back(), i < 2 ? 4 * kGiB : kGiB), 2);
        obey(ledger, 2);
    }
    EXPECT_EQ(ledger.request(want(session, 4 * kGiB), 3).kind, Kind::waiting);
    EXPECT_GT(ledger.view(session).counted_bytes, 0U) << "its instance is there";
    Outcome all = ledger.set_profile(Profile::equal_2, 4);
    for (const Uuid &other : others) {
        const Outcome one = ledger.release(other, 5);
        all.grants.insert(all.grants.end(), one.grants.begin(), one.grants.end());
    }
    // The engine has not closed what was kept when there is room for a slot.
    ASSERT_EQ(ids(all), std::vector{session});
    EXPECT_EQ(all.grants[0].slot, first.grant.slot);
    ledger.end(session, Keep::nothing, 7);
    ledger.release(session, 8);
    const auto next = ledger.request(want(Uuid::make(), kGiB), 9);
    EXPECT_EQ(next.kind, Kind::granted) << "and the slot is there for others";
}

}  // namespace
}  // namespace roost::admission
