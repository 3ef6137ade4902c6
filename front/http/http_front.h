// The HTTP front: the server, who is asking, and which route it is. Built by app/; loop thread only. stop() it before
// the service goes.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <string>

#include "base/clock.h"
#include "front/http/api.h"
#include "net/http_server.h"
#include "obs/log.h"
#include "service/service.h"

namespace roost::http {

class HttpFront final : private net::HttpHandler {
public:
    HttpFront(net::asio::io_context &loop, service::Service &service, const Clock &clock, obs::Log &log,
              ApiOptions options, net::HttpLimits limits = {});
    ~HttpFront() override;

    // "host:port"; port 0: any free one.
    Status listen(const std::string &address) { return server_.listen(address); }
    std::string endpoint() const { return server_.endpoint(); }
    // Running requests get `drain_ms` to finish.
    net::Task<void> stop(int64_t drain_ms) { return server_.stop(drain_ms); }

private:
    net::Task<net::HttpResponse> handle(net::HttpRequest request, net::HttpBody &body) override;
    net::HttpResponse refuse(const net::HttpRefusal &refusal) override;
    void connection_opened() override { service_.connection_opened("http"); }
    void connection_closed() override { service_.connection_closed("http"); }

    Result<service::Principal> authenticate(const net::HttpRequest &request);

    service::Service &service_;
    obs::Log &log_;
    net::asio::thread_pool files_;
    Api api_;
    net::HttpServer server_;
};

}  // namespace roost::http
