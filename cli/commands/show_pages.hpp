/// The pages of `show`, each as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/document.hpp"
#include "core/lowering/lower.hpp"
#include "core/schedule/schedule.hpp"
#include "models/load/load.hpp"

namespace meshwright {

struct Page {
  Document text;
  std::string json;
};

Page models_page();
Page clusters_page();
Page devices_page();
Page schedules_page();
Page model_page(const NamedText& config);
Page cluster_page(const NamedText& toml);
Page device_page(const NamedText& toml);
/// Includes the order of passes in a small example.
Page schedule_page(const ScheduleRule& rule);
Page plan_page(const std::string& path);
/// What every lowering pass changes; one line each.
Page lowering_page(const std::string& plan_path);
Page lowering_page(const std::vector<PassReport>& reports);
Page timeline_page(const std::string& path);

}  // namespace meshwright
