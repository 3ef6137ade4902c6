#include "service/write_leases.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace roost::service {
namespace {

namespace asio = net::asio;

struct Fixture : ::testing::Test {
    asio::io_context loop;
    SystemClock clock;
    std::shared_ptr<WriteLeases> leases = std::make_shared<WriteLeases>(loop.get_executor(), clock);

    // A writer that takes the lease and keeps it in `held`.
    struct Writer {
        explicit Writer(asio::io_context &loop) : changed(loop.get_executor()) {}
        net::Event changed;
        Status cancelled;
        std::shared_ptr<WriteLease> held;
        Status status;
        bool ended = false;
    };
    void take(Writer &writer, int64_t wait_ms = 60'000) {
        asio::co_spawn(
            loop,
            [this, &writer, wait_ms]() -> net::Task<void> {
                auto lease = co_await leases->acquire("lake", wait_ms, writer.changed, writer.cancelled);
                writer.ended = true;
                writer.status = lease.status();
                if (lease.ok()) writer.held = *lease;
            },
            asio::detached);
        settle();
    }
    void settle() {
        loop.restart();
        while (loop.poll() > 0) {
        }
    }
};

TEST_F(Fixture, OneHoldsItAndTheRestFollowInOrder) {
    Writer a(loop), b(loop), c(loop);
    take(a);
    take(b);
    take(c);
    EXPECT_TRUE(a.held);
    EXPECT_FALSE(b.ended);
    EXPECT_EQ(leases->waiting("lake"), 2u);
    a.held.reset();
    settle();
    EXPECT_TRUE(b.held);
    EXPECT_FALSE(c.ended);
    b.held.reset();
    settle();
    EXPECT_TRUE(c.held);
}

TEST_F(Fixture, ACancelledWaiterLeavesTheLine) {
    Writer a(loop), b(loop), c(loop);
    take(a);
    take(b);
    take(c);
    b.cancelled = Status(Code::cancelled, "no longer wanted");
    b.changed.notify();
    settle();
    EXPECT_TRUE(b.ended);
    EXPECT_EQ(b.status.code(), Code::cancelled);
    a.held.reset();
    settle();
    EXPECT_TRUE(c.held);
}

TEST_F(Fixture, AWaitEndsWithItsDeadline) {
    Writer a(loop), b(loop);
    take(a);
    take(b, 0);
    EXPECT_TRUE(b.ended);
    EXPECT_EQ(b.status.name(), "write_lease_timeout");
    EXPECT_EQ(leases->waiting("lake"), 0u);
}

TEST_F(Fixture, ALeaseIsFreeAgainWhenNobodyWaits) {
    Writer a(loop), b(loop);
    take(a);
    a.held.reset();
    take(b);
    EXPECT_TRUE(b.held);
}

TEST_F(Fixture, CommitsAreCountedByCatalog) {
    leases->count_commit("lake");
    EXPECT_EQ(leases->commits("lake"), 1u);
    EXPECT_EQ(leases->commits("other"), 0u);
}

}  // namespace
}  // namespace roost::service
