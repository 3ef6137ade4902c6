// The parts of Asio that the folders with sockets use.
#pragma once

#include "cmake/pch/std.h"

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
