#include "engine/value_writer.h"

namespace roost {

using duckdb::PhysicalType;

void VectorView::bind(duckdb::Vector &source, duckdb::idx_t count) {
    vector = &source;
    children.clear();
    variant.reset();
    const auto physical = source.GetType().InternalType();
    const bool has_parallel_children = physical == PhysicalType::STRUCT || physical == PhysicalType::ARRAY;
    // Children of a flat STRUCT or ARRAY line up with its rows; those of a dictionary or constant do not.
    if (has_parallel_children && source.GetVectorType() != duckdb::VectorType::FLAT_VECTOR) source.Flatten(count);
    source.ToUnifiedFormat(count, format);
    if (source.GetType().id() == duckdb::LogicalTypeId::VARIANT) {
        variant = std::make_unique<duckdb::RecursiveUnifiedVectorFormat>();
        duckdb::Vector::RecursiveToUnifiedFormat(source, count, *variant);
        return;
    }
    if (physical == PhysicalType::LIST) {
        children.resize(1);
        children[0].bind(duckdb::ListVector::GetEntry(source), duckdb::ListVector::GetListSize(source));
    } else if (physical == PhysicalType::ARRAY) {
        children.resize(1);
        children[0].bind(duckdb::ArrayVector::GetEntry(source), count * duckdb::ArrayType::GetSize(source.GetType()));
    } else if (physical == PhysicalType::STRUCT) {
        auto &entries = duckdb::StructVector::GetEntries(source);
        children.resize(entries.size());
        for (size_t i = 0; i < entries.size(); ++i) children[i].bind(*entries[i], count);
    }
}

}  // namespace roost
