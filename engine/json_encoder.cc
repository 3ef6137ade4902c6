#include "engine/json_encoder.h"

#include "duckdb/common/types/data_chunk.hpp"

namespace roost {

JsonPageEncoder::JsonPageEncoder(const std::vector<std::string> &names, const std::vector<duckdb::LogicalType> &types,
                                 std::unique_ptr<ZoneOffsets> zone)
    : zone_(std::move(zone)), views_(types.size()) {
    for (size_t i = 0; i < types.size(); ++i) {
        keys_.emplace_back(1, i == 0 ? '{' : ',');
        append_json_string(keys_.back(), names[i]);
        keys_.back() += ':';
        writers_.push_back(make_json_writer(types[i], JsonDialect::page, *zone_));
    }
}

void JsonPageEncoder::append(duckdb::DataChunk &chunk, uint64_t from, uint64_t to, std::string &out) {
    for (size_t i = 0; i < writers_.size(); ++i) views_[i].bind(chunk.data[i], chunk.size());
    for (uint64_t row = from; row < to; ++row) {
        if (out.back() != '[') out += ',';
        for (size_t i = 0; i < writers_.size(); ++i) {
            out += keys_[i];
            if (views_[i].is_null(row)) {
                out += "null";
            } else {
                writers_[i]->append(views_[i], row, out);
            }
        }
        out += '}';
    }
}

}  // namespace roost
