#include "engine/foreign_scan.h"

#include "duckdb/common/multi_file/multi_file_function.hpp"
#include "duckdb/storage/object_cache.hpp"
#include "engine/file_system.h"

namespace roost {

namespace {

constexpr const char *kWallKey = "roost_file_wall";

class KnownWall final : public duckdb::ObjectCacheEntry {
public:
    explicit KnownWall(std::shared_ptr<const FileWall> known) : wall(std::move(known)) {}
    static std::string ObjectType() { return kWallKey; }
    std::string GetObjectType() override { return ObjectType(); }
    duckdb::optional_idx GetEstimatedCacheMemory() const override { return {}; }  // stays

    const std::shared_ptr<const FileWall> wall;
};

// In the place of the Parquet reader's own interface, which does all the work.
class ForeignFilesInterface final : public duckdb::MultiFileReaderInterface {
public:
    using Interface = duckdb::unique_ptr<duckdb::MultiFileReaderInterface>;
    using Context = duckdb::ClientContext;

    ForeignFilesInterface(Interface own, std::shared_ptr<const FileWall> wall)
        : own_(std::move(own)), wall_(std::move(wall)) {}

    void InitializeInterface(Context &context, duckdb::MultiFileReader &reader, duckdb::MultiFileList &files) override {
        own_->InitializeInterface(context, reader, files);
    }
    duckdb::unique_ptr<duckdb::BaseFileReaderOptions> InitializeOptions(
        Context &context, duckdb::optional_ptr<duckdb::TableFunctionInfo> info) override {
        return own_->InitializeOptions(context, info);
    }
    bool ParseCopyOption(Context &context, const std::string &key, const duckdb::vector<duckdb::Value> &values,
                         duckdb::BaseFileReaderOptions &options, duckdb::vector<std::string> &names,
                         duckdb::vector<duckdb::LogicalType> &types) override {
        return own_->ParseCopyOption(context, key, values, options, names, types);
    }
    bool ParseOption(Context &context, const std::string &key, const duckdb::Value &value,
                     duckdb::MultiFileOptions &file_options, duckdb::BaseFileReaderOptions &options) override {
        return own_->ParseOption(context, key, value, file_options, options);
    }
    void FinalizeCopyBind(Context &context, duckdb::BaseFileReaderOptions &options,
                          const duckdb::vector<std::string> &names,
                          const duckdb::vector<duckdb::LogicalType> &types) override {
        own_->FinalizeCopyBind(context, options, names, types);
    }
    duckdb::unique_ptr<duckdb::TableFunctionData> InitializeBindData(
        duckdb::MultiFileBindData &data, duckdb::unique_ptr<duckdb::BaseFileReaderOptions> options) override {
        return own_->InitializeBindData(data, std::move(options));
    }
    void BindReader(Context &context, duckdb::vector<duckdb::LogicalType> &types, duckdb::vector<std::string> &names,
                    duckdb::MultiFileBindData &data) override {
        own_->BindReader(context, types, names, data);
    }
    void FinalizeBindData(duckdb::MultiFileBindData &data) override { own_->FinalizeBindData(data); }
    void GetBindInfo(const duckdb::TableFunctionData &data, duckdb::BindInfo &info) override {
        own_->GetBindInfo(data, info);
    }
    duckdb::optional_idx MaxThreads(const duckdb::MultiFileBindData &data, const duckdb::MultiFileGlobalState &state,
                                    duckdb::FileExpandResult expanded) override {
        return own_->MaxThreads(data, state, expanded);
    }
    duckdb::unique_ptr<duckdb::GlobalTableFunctionState> InitializeGlobalState(
        Context &context, duckdb::MultiFileBindData &data, duckdb::MultiFileGlobalState &state) override {
        return own_->InitializeGlobalState(context, data, state);
    }
    duckdb::unique_ptr<duckdb::LocalTableFunctionState> InitializeLocalState(
        duckdb::ExecutionContext &context, duckdb::GlobalTableFunctionState &state) override {
        return own_->InitializeLocalState(context, state);
    }
    duckdb::shared_ptr<duckdb::BaseFileReader> CreateReader(Context &context, duckdb::GlobalTableFunctionState &state,
                                                            duckdb::BaseUnionData &united,
                                                            const duckdb::MultiFileBindData &data) override {
        return own_->CreateReader(context, state, united, data);
    }
    duckdb::shared_ptr<duckdb::BaseFileReader> CreateReader(Context &context, duckdb::GlobalTableFunctionState &state,
                                                            const duckdb::OpenFileInfo &file, duckdb::idx_t index,
                                                            const duckdb::MultiFileBindData &data) override {
        return own_->CreateReader(context, state, anew(file), index, data);
    }
    duckdb::shared_ptr<duckdb::BaseFileReader> CreateReader(Context &context, const duckdb::OpenFileInfo &file,
                                                            duckdb::BaseFileReaderOptions &options,
                                                            const duckdb::MultiFileOptions &file_options) override {
        return own_->CreateReader(context, anew(file), options, file_options);
    }
    void FinishReading(Context &context, duckdb::GlobalTableFunctionState &state,
                       duckdb::LocalTableFunctionState &local) override {
        own_->FinishReading(context, state, local);
    }
    duckdb::unique_ptr<duckdb::NodeStatistics> GetCardinality(const duckdb::MultiFileBindData &data,
                                                              duckdb::idx_t files) override {
        return own_->GetCardinality(data, files);
    }
    duckdb::unique_ptr<duckdb::NodeStatistics> GetCardinality(Context &context, const duckdb::MultiFileBindData &data,
                                                              duckdb::idx_t files) override {
        return own_->GetCardinality(context, data, files);
    }
    void GetVirtualColumns(Context &context, duckdb::MultiFileBindData &data,
                           duckdb::virtual_column_map_t &columns) override {
        own_->GetVirtualColumns(context, data, columns);
    }
    Interface Copy() override { return duckdb::make_uniq<ForeignFilesInterface>(own_->Copy(), wall_); }
    duckdb::FileGlobInput GetGlobInput() override { return own_->GetGlobInput(); }

private:
    duckdb::OpenFileInfo anew(const duckdb::OpenFileInfo &file) const {
        if (!file.extended_info || !wall_->is_external(file.path)) return file;
        duckdb::OpenFileInfo asked(file.path);
        asked.extended_info = duckdb::make_shared_ptr<duckdb::ExtendedOpenFileInfo>(*file.extended_info);
        asked.extended_info->options["validate_external_file_cache"] = duckdb::Value::BOOLEAN(true);
        return asked;
    }

    const Interface own_;
    const std::shared_ptr<const FileWall> wall_;
};

}  // namespace

void remember_wall(duckdb::ClientContext &context, std::shared_ptr<const FileWall> wall) {
    duckdb::ObjectCache::GetObjectCache(context).Put(kWallKey, duckdb::make_shared_ptr<KnownWall>(std::move(wall)));
}

void open_foreign_files_anew(duckdb::ClientContext &context, duckdb::FunctionData &bound) {
    const auto known = duckdb::ObjectCache::GetObjectCache(context).Get<KnownWall>(kWallKey);
    if (!known || !known->wall->has_external()) return;
    auto &data = bound.Cast<duckdb::MultiFileBindData>();
    data.interface = duckdb::make_uniq<ForeignFilesInterface>(std::move(data.interface), known->wall);
}

}  // namespace roost
