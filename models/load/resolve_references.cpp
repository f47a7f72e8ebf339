#include "models/load/resolve_references.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "models/load/load.hpp"
#include "models/text/toml_reader.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kLongestChain = 16;

constexpr std::string_view kExtends = "extends", kSource = "source", kSources = "sources",
                           kCollectives = "collectives";

bool looks_like_path(std::string_view reference) {
  return reference.find('/') != std::string_view::npos || reference.ends_with(".toml");
}

/// Files of one kind.
struct Kind {
  std::string_view noun;
  NamedText (*find)(const std::string& name_or_path);
  std::vector<std::string> (*preset_names)();
};
constexpr Kind kClusters{"cluster", find_cluster_file, cluster_preset_names};
constexpr Kind kDevices{"device", find_device_file, device_preset_names};
constexpr Kind kMeasuredCollectives{"collectives", find_collectives_file, collectives_preset_names};

bool is_preset(const Kind& kind, const std::string& name) {
  const std::vector<std::string> names = kind.preset_names();
  return std::binary_search(names.begin(), names.end(), name);
}

/// Presets say what cannot be left out, so a table without one of these changes a preset.
bool is_whole_device(const toml::table& device) {
  constexpr std::array kRequired{"memory", "memory_bandwidth", "peak"};
  return std::all_of(kRequired.begin(), kRequired.end(),
                     [&](const char* key) { return device.contains(key); });
}

/// The table at `key`, or null.
toml::table* table_at(toml::table& parent, std::string_view key) {
  toml::node* node = parent.get(key);
  return node == nullptr ? nullptr : node->as_table();
}

std::vector<std::string> keys_of(const toml::table& table) {
  std::vector<std::string> keys;
  for (const auto& entry : table) keys.emplace_back(entry.first.str());
  return keys;
}

/// Source of a changed value that has none.
std::string changed_in(const NamedText& file) { return fmt::format("changed in {}", file.where); }

// ---- merging ------------------------------------------------------------------------------------

void replace(toml::table& table, const toml::key& key, toml::node&& value) {
  table.erase(key.str());  // with the position of its key
  table.insert(key, std::move(value));
}

toml::table& sources_of(toml::table& table) {
  if (table_at(table, kSources) == nullptr) table.insert_or_assign(kSources, toml::table());
  return *table_at(table, kSources);
}

/// Changes `base` by `changes`. `untold` is the source of changed values that have none.
void merge(toml::table& base, toml::table&& changes, const std::string& untold) {
  const toml::value<std::string>* all = nullptr;
  if (const toml::node* source = changes.get(kSource)) all = source->as_string();
  const std::string source = all == nullptr ? untold : all->get();
  toml::table* told = table_at(changes, kSources);
  for (auto&& [key, value] : changes) {
    if ((key == kSource && all != nullptr) || (key == kSources && told != nullptr)) continue;
    toml::table* inner = value.as_table();
    toml::table* before = table_at(base, key.str());
    if (inner != nullptr && before != nullptr) {
      merge(*before, std::move(*inner), untold);
      continue;
    }
    const bool is_figure = value.is_value() && key != "schema" && key != "name";
    if (is_figure && (told == nullptr || !told->contains(key.str())))
      sources_of(base).insert_or_assign(key.str(), source);
    replace(base, key, std::move(value));
  }
  if (told == nullptr) return;
  for (auto&& [key, value] : *told) replace(sources_of(base), key, std::move(value));
}

/// Marks all sources below `table`, a device that another one was derived from.
void mark_sources(toml::table& table, const std::string& mark) {
  for (auto&& [key, value] : table) {
    toml::table* inner = value.as_table();
    if (key == kSource && value.is_string()) {
      std::string& text = value.as_string()->get();
      text.insert(0, mark);
    } else if (key == kSources && inner != nullptr) {
      for (auto&& [figure, source] : *inner)
        if (auto* text = source.as_string()) text->get().insert(0, mark);
    } else if (inner != nullptr) {
      mark_sources(*inner, mark);
    }
  }
}

// ---- references ---------------------------------------------------------------------------------

class Resolver {
 public:
  explicit Resolver(References allowed) : allowed_(allowed) {}

  toml::table read_cluster(const NamedText& file) {
    toml::table cluster = parse_toml(file, kClusters.noun);
    if (toml::table* fabric = table_at(cluster, "fabric")) resolve_collectives(*fabric, file);
    const toml::node* extends = cluster.get(kExtends);
    if (extends == nullptr) {
      resolve_devices(cluster, file);
      return cluster;
    }
    toml::table base = referred(*extends, kClusters, file);
    for (const std::string_view own : {"name", "validation"}) base.erase(own);
    cluster.erase(kExtends);
    expect_known_names(base, cluster, file);
    const toml::table* changed = table_at(cluster, "devices");
    const std::vector<std::string> kept = changed ? keys_of(*changed) : std::vector<std::string>();
    merge(base, std::move(cluster), changed_in(file));
    resolve_devices(base, file);
    drop_unused_devices(base, kept);
    return base;
  }

  toml::table read_device(const NamedText& file) {
    toml::table device = parse_toml(file, kDevices.noun);
    resolve_collectives(device, file);
    const toml::node* extends = device.get(kExtends);
    if (extends == nullptr) return device;
    toml::table base = referred(*extends, kDevices, file);
    mark_sources(base, fmt::format("scaled from {} by datasheet: ", extends->as_string()->get()));
    base.erase("name");
    device.erase(kExtends);
    merge(base, std::move(device), changed_in(file));
    return base;
  }

  bool had_references() const { return had_references_; }

 private:
  [[noreturn]] static void refuse(const toml::node& at, const NamedText& file, std::string what,
                                  std::string hint) {
    throw InputError({place_of(at, file.where), std::move(what), std::move(hint)});
  }

  /// The file that `node` of `file` names, resolved.
  toml::table referred(const toml::node& node, const Kind& kind, const NamedText& file) {
    had_references_ = true;
    const auto* text = node.as_string();
    if (text == nullptr)
      refuse(node, file,
             fmt::format("expected the name of a {} or the path of its file", kind.noun),
             "put it in quotes");
    const NamedText found = find(text->get(), node, kind, file);
    const auto is_found = [&](const std::string& where) {
      return std::filesystem::path(where).lexically_normal() == found.where;
    };
    if (is_found(file.where) || std::any_of(chain_.begin(), chain_.end(), is_found))
      refuse(node, file, fmt::format("'{}' refers back to itself", text->get()),
             "remove one of the references");
    if (chain_.size() >= kLongestChain)
      refuse(node, file, fmt::format("more than {} files refer to one another", kLongestChain),
             "copy the keys of one file into another");
    chain_.push_back(file.where);
    toml::table table = read(found, kind);
    chain_.pop_back();
    return table;
  }

  toml::table read(const NamedText& file, const Kind& kind) {
    if (kind.noun == kDevices.noun) return read_device(file);
    if (kind.noun == kClusters.noun) return read_cluster(file);
    return parse_toml(file, kind.noun);
  }

  /// Replaces `collectives = "NAME"` by the table of that file.
  void resolve_collectives(toml::table& parent, const NamedText& file) {
    const toml::node* reference = parent.get(kCollectives);
    if (reference == nullptr || reference->is_table()) return;
    toml::table table = referred(*reference, kMeasuredCollectives, file);
    table.erase("schema");
    parent.insert_or_assign(kCollectives, std::move(table));
  }

  NamedText find(const std::string& name, const toml::node& node, const Kind& kind,
                 const NamedText& file) const {
    if (is_preset(kind, name)) return kind.find(name);
    if (!looks_like_path(name))
      refuse(node, file, fmt::format("unknown {} '{}'", kind.noun, name),
             suggest_names(name, kind, {}));
    if (allowed_ == References::kPresets)
      refuse(node, file, fmt::format("cannot open '{}': this text may refer to presets only", name),
             fmt::format("use a preset, or copy the keys of the {} here", kind.noun));
    // A text from standard input or a preset has no folder: its `where` contains no '/'.
    const std::filesystem::path folder = std::filesystem::path(file.where).parent_path();
    return kind.find((folder / name).lexically_normal().string());
  }

  static std::string suggest_names(const std::string& name, const Kind& kind,
                                   std::vector<std::string> others) {
    for (std::string& preset : kind.preset_names()) others.push_back(std::move(preset));
    return fmt::format("{} (for a {} file, give a path such as ./{}.toml)", suggest(name, others),
                       kind.noun, kind.noun);
  }

  /// Nodes and devices of `changes` must exist in `base` unless they are described in full.
  static void expect_known_names(toml::table& base, toml::table& changes, const NamedText& file) {
    std::vector<Diagnostic> unknown;
    const auto expect = [&](std::string_view key, std::string_view noun, const auto& is_whole) {
      toml::table* changed = table_at(changes, key);
      toml::table* known = table_at(base, key);
      if (changed == nullptr || known == nullptr) return;
      for (auto&& [name, value] : *changed)
        if (value.is_table() && !known->contains(name.str()) &&
            !is_whole(std::string(name.str()), *value.as_table()))
          unknown.push_back({place_of(value, file.where),
                             fmt::format("unknown {} '{}' in the extended cluster", noun,
                                         std::string_view(name.str())),
                             suggest(name.str(), keys_of(*known))});
    };
    expect("nodes", "node",
           [](const std::string&, const toml::table& node) { return node.contains("device"); });
    expect("devices", "device", [](const std::string& name, const toml::table& device) {
      return device.contains(kExtends) || is_whole_device(device) || is_preset(kDevices, name);
    });
    throw_if_any(unknown);
  }

  /// Replaces all references to device files by tables in `devices`.
  void resolve_devices(toml::table& cluster, const NamedText& file) {
    if (!cluster.contains("devices") && table_at(cluster, "nodes") != nullptr)
      cluster.insert("devices", toml::table());
    toml::table* devices = table_at(cluster, "devices");
    if (devices == nullptr) return;
    for (auto&& [name, value] : *devices)
      if (toml::table* device = value.as_table()) complete(std::string(name.str()), *device, file);
    toml::table* nodes = table_at(cluster, "nodes");
    if (nodes == nullptr) return;
    for (auto&& [name, value] : *nodes) {
      toml::table* node = value.as_table();
      toml::node* device = node == nullptr ? nullptr : node->get("device");
      if (device != nullptr && device->is_string()) add_device(*device, *devices, file);
    }
  }

  /// A table of `devices` that changes a device file.
  void complete(const std::string& name, toml::table& device, const NamedText& file) {
    resolve_collectives(device, file);
    toml::table base;
    if (const toml::node* extends = device.get(kExtends))
      base = device_table(*extends, file);
    else if (!is_whole_device(device) && is_preset(kDevices, name))
      base = read_preset(name);
    else
      return;
    device.erase(kExtends);
    merge(base, std::move(device), changed_in(file));
    device = std::move(base);
  }

  toml::table read_preset(const std::string& name) {
    had_references_ = true;
    toml::table table = read_device(find_device_file(name));
    table.erase("schema");
    return table;
  }

  toml::table device_table(const toml::node& reference, const NamedText& file) {
    toml::table table = referred(reference, kDevices, file);
    table.erase("schema");
    return table;
  }

  /// `device` is the value of nodes.X.device: a key of `devices`, or a reference.
  void add_device(toml::node& device, toml::table& devices, const NamedText& file) {
    auto& name = device.as_string()->get();
    if (devices.contains(name)) return;
    if (!is_preset(kDevices, name) && !looks_like_path(name))
      refuse(device, file, fmt::format("unknown device '{}'", name),
             suggest_names(name, kDevices, keys_of(devices)));
    toml::table table = device_table(device, file);
    if (looks_like_path(name)) name = std::filesystem::path(name).stem().string();
    toml::table* changes = table_at(devices, name);
    if (changes != nullptr) merge(table, std::move(*changes), changed_in(file));
    devices.insert_or_assign(name, std::move(table));
  }

  /// Devices of the extended cluster that no node has any more, except for `used`.
  static void drop_unused_devices(toml::table& cluster, std::vector<std::string> used) {
    toml::table* devices = table_at(cluster, "devices");
    toml::table* nodes = table_at(cluster, "nodes");
    if (devices == nullptr || nodes == nullptr) return;
    for (auto&& [name, value] : *nodes)
      if (const toml::table* node = value.as_table())
        if (const auto* device = node->get_as<std::string>("device")) used.push_back(device->get());
    for (const std::string& name : keys_of(*devices))
      if (std::find(used.begin(), used.end(), name) == used.end()) devices->erase(name);
  }

  References allowed_;
  std::vector<std::string> chain_;  ///< `where` of the files that are being read
  bool had_references_ = false;
};

}  // namespace

bool describes_device(const NamedText& toml) {
  const toml::table table = parse_toml(toml);
  if (table.contains("nodes") || table.contains("groups")) return false;
  const auto* extends = table.get_as<std::string>(kExtends);
  return is_whole_device(table) || (extends != nullptr && is_preset(kDevices, extends->get()));
}

ResolvedToml resolve_cluster(const NamedText& file, References allowed) {
  Resolver resolver(allowed);
  toml::table table = resolver.read_cluster(file);
  return {std::move(table), resolver.had_references()};
}

ResolvedToml resolve_device(const NamedText& file, References allowed) {
  Resolver resolver(allowed);
  toml::table table = resolver.read_device(file);
  return {std::move(table), resolver.had_references()};
}

}  // namespace meshwright
