// DuckDB's public header (3 s and more to parse).
#pragma once

#include "cmake/pch/std.h"

#include "duckdb.hpp"
