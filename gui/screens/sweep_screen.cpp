#include "gui/screens/sweep_screen.hpp"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>
#include <mutex>

#include "gui/session/workbench.hpp"
#include "gui/text/number_text.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/widgets/arrange.hpp"
#include "gui/widgets/chart_axis.hpp"
#include "gui/widgets/flow_layout.hpp"
#include "planner/parallel/parallel_for.hpp"

namespace meshwright::gui {
namespace {

struct Figure {
  QString title;
  double (*value)(const PlanFigures&);
  QString (*text)(double);
  bool more_is_better;
  std::vector<double> levels;  ///< contour levels; empty for five evenly spaced ones
};

QString share_text(double share) { return percent_text(share); }

std::vector<Figure> figures() {
  return {{SweepScreen::tr("bubble fraction (period)"),
           [](const PlanFigures& f) { return f.bubble_of_period; },
           share_text,
           false,
           {0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5}},
          {SweepScreen::tr("bubble fraction (makespan)"),
           [](const PlanFigures& f) { return f.bubble_of_makespan; },
           share_text,
           false,
           {0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5}},
          {SweepScreen::tr("step time"),
           [](const PlanFigures& f) { return static_cast<double>(f.step_time.value); },
           time_label,
           false,
           {}},
          {SweepScreen::tr("MFU"),
           [](const PlanFigures& f) { return f.mfu; },
           share_text,
           true,
           {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}},
          {SweepScreen::tr("tokens/s per GPU"),
           [](const PlanFigures& f) { return f.tokens_per_second_per_gpu; },
           [](double rate) { return count_text(static_cast<qint64>(rate)); },
           true,
           {}},
          {SweepScreen::tr("peak memory"),
           [](const PlanFigures& f) { return static_cast<double>(f.peak_memory.value); },
           bytes_label,
           false,
           {}}};
}

/// Evenly spaced between the smallest and the largest value.
std::vector<double> levels_between(const ValueGrid& values) {
  std::vector<double> all;
  for (const auto& row : values)
    for (const auto& value : row)
      if (value) all.push_back(*value);
  if (all.empty()) return {};
  const auto [least, greatest] = std::minmax_element(all.begin(), all.end());
  constexpr int kLevels = 5;
  std::vector<double> levels;
  for (int i = 1; i <= kLevels; ++i)
    levels.push_back(*least + (*greatest - *least) * i / (kLevels + 1));
  return levels;
}

}  // namespace

SweepScreen::SweepScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, {.name = "sweep", .title = tr("Sweep")}, parent) {
  auto* column = new QVBoxLayout(this);
  FlowLayout* choices = make_flow();
  column->addWidget(choices->parentWidget());
  for (int knob = 0; knob < kSweepKnobCount; ++knob)
    for (QComboBox* box : {rows_, columns_}) box->addItem(title_of(static_cast<SweepKnob>(knob)));
  rows_->setCurrentIndex(static_cast<int>(SweepKnob::kPipeline));
  columns_->setCurrentIndex(static_cast<int>(SweepKnob::kMicrobatches));
  for (const Figure& figure : figures()) figure_->addItem(figure.title);
  const auto add = [&](const QString& text, const QString& hint, QComboBox* box) {
    box->setToolTip(hint);
    QHBoxLayout* row = make_row();
    add_labeled(*row, text, box);
    choices->addWidget(row->parentWidget());
  };
  add(tr("&Metric"), tr("Quantity shown by the cells and the contour lines"), figure_);
  add(tr("&Rows"), tr("Parameter on the vertical axis"), rows_);
  add(tr("C&olumns"), tr("Parameter on the horizontal axis"), columns_);
  note_->setProperty("role", "faint");
  note_->setWordWrap(true);  // otherwise the note sets the minimum window width
  column->addWidget(note_);
  column->addWidget(map_, 1);
  for (QComboBox* box : {rows_, columns_})
    connect(box, &QComboBox::currentIndexChanged, this, &SweepScreen::start);
  connect(figure_, &QComboBox::currentIndexChanged, this, &SweepScreen::show_grid);
  connect(map_, &HeatMap::cell_chosen, this, &SweepScreen::take_over);
  connect(&workbench.scenario(), &ScenarioEditor::changed, this, [this] {
    if (isVisible()) start();
  });
}

void SweepScreen::add_actions(ActionSet& actions) {
  actions.add(
      {"sweep.schedules", MenuId::kTools, tr("Sweep &schedules"),
       tr("Sweeps all schedules over the number of micro-batches"), shortcuts("Ctrl+Alt+S")},
      [this] {
        workbench().show_screen(traits().name);
        rows_->setCurrentIndex(static_cast<int>(SweepKnob::kSchedule));
        columns_->setCurrentIndex(static_cast<int>(SweepKnob::kMicrobatches));
      });
  actions.add(
      {"sweep.figure", MenuId::kTools, tr("&Next sweep metric"),
       tr("Cycles through bubble fraction, step time, MFU, tokens/s and peak memory"),
       shortcuts("Ctrl+Alt+F")},
      [this] { figure_->setCurrentIndex((figure_->currentIndex() + 1) % figure_->count()); });
}

void SweepScreen::come_to_front() {
  if (grid_.scenarios.empty() || base_ != workbench().scenario().scenario()) start();
}

void SweepScreen::start() {
  base_ = workbench().scenario().scenario();
  grid_ = {.rows = sweep_axis(static_cast<SweepKnob>(rows_->currentIndex()), base_),
           .columns = sweep_axis(static_cast<SweepKnob>(columns_->currentIndex()), base_),
           .scenarios = {},
           .cells = {}};
  for (const SweepValue& row : grid_.rows.values)
    for (const SweepValue& column : grid_.columns.values) {
      grid_.scenarios.push_back(base_);
      row.put(grid_.scenarios.back());
      column.put(grid_.scenarios.back());
    }
  note_->setText(tr("%n combinations…", nullptr, static_cast<int>(grid_.scenarios.size())));
  JobLibrary& library = workbench().library();
  workbench().jobs().start<std::vector<Cell>>(
      {tr("Sweep"), "sweep", true}, this,
      [scenarios = grid_.scenarios, &library](const JobContext& context) {
        std::vector<Cell> cells(scenarios.size());
        std::mutex mutex;
        std::int64_t done = 0;
        parallel_for(scenarios.size(), 0, [&](std::size_t i) {
          context.stop_if_canceled();
          const auto simulation = simulate_scenario(scenarios[i], library);
          if (simulation->is_sound())
            cells[i].figures = simulation->figures;
          else
            cells[i].problem = QString::fromStdString(simulation->problems.front().what);
          const std::lock_guard lock(mutex);
          context.report(++done, static_cast<std::int64_t>(scenarios.size()));
        });
        return cells;
      },
      [this](std::vector<Cell> cells) {
        grid_.cells = std::move(cells);
        show_grid();
      });
}

void SweepScreen::show_grid() {
  if (grid_.cells.empty()) return;
  const Figure figure = figures()[static_cast<std::size_t>(figure_->currentIndex())];
  HeatMapContent content;
  content.row_title = grid_.rows.title;
  content.column_title = grid_.columns.title;
  content.more_is_better = figure.more_is_better;
  content.levels = figure.levels;
  content.level_text = figure.text;
  for (std::size_t c = 0; c < grid_.columns.values.size(); ++c) {
    content.columns += grid_.columns.values[c].label;
    if (grid_.columns.values[c].is_now) content.chosen_column = static_cast<int>(c);
  }
  int impossible = 0;
  for (std::size_t r = 0, i = 0; r < grid_.rows.values.size(); ++r) {
    content.rows += grid_.rows.values[r].label;
    if (grid_.rows.values[r].is_now) content.chosen_row = static_cast<int>(r);
    auto& values = content.values.emplace_back();
    auto& texts = content.texts.emplace_back();
    auto& marked = content.marked.emplace_back();
    for (std::size_t c = 0; c < grid_.columns.values.size(); ++c, ++i) {
      const Cell& cell = grid_.cells[i];
      impossible += cell.figures ? 0 : 1;
      values.push_back(cell.figures ? std::optional(figure.value(*cell.figures)) : std::nullopt);
      texts.push_back(cell.figures ? figure.text(*values.back()) : cell.problem);
      marked.push_back(cell.figures && cell.figures->peak_memory > cell.figures->memory_capacity);
    }
  }
  if (content.levels.empty()) content.levels = levels_between(content.values);
  map_->show_content(std::move(content));
  note_->setText(tr("hatched: does not fit in memory · –: invalid (%1 of %2 combinations) · click "
                    "a cell to use its values")
                     .arg(impossible)
                     .arg(grid_.cells.size()));
}

void SweepScreen::take_over(int row, int column) {
  const std::size_t i = static_cast<std::size_t>(row) * grid_.columns.values.size() +
                        static_cast<std::size_t>(column);
  if (i >= grid_.scenarios.size()) return;
  workbench().scenario().replace(
      tr("Use %1 %2, %3 %4")
          .arg(grid_.rows.title, grid_.rows.values[static_cast<std::size_t>(row)].label,
               grid_.columns.title, grid_.columns.values[static_cast<std::size_t>(column)].label),
      grid_.scenarios[i]);
}

}  // namespace meshwright::gui
