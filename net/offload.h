// Blocking work (files, SQLite listings) away from the loop.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>

#include "net/async.h"

namespace roost::net {

// Runs `work` on a thread of the pool; the caller goes on, on its own executor, with what it returned. The work may
// outlive a caller that is destroyed meanwhile: what it uses must be its own or shared.
template <class Work>
auto run_blocking(asio::thread_pool &pool, Work work) -> Task<decltype(work())> {
    auto body = [](Work mine) -> Task<decltype(mine())> { co_return mine(); };
    auto task = body(std::move(work));
    co_return co_await asio::co_spawn(pool.get_executor(), std::move(task), asio::use_awaitable);
}

}  // namespace roost::net
