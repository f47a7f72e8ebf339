#include "gui/screens/welcome_screen.hpp"

#include <QDragEnterEvent>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QMimeData>
#include <QScrollArea>
#include <QSettings>
#include <QStyle>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/plan/strategy_text.hpp"
#include "gui/screens/example_card.hpp"
#include "gui/session/state_text.hpp"
#include "gui/session/workbench.hpp"
#include "gui/text/qstring_of.hpp"
#include "gui/widgets/actions.hpp"

namespace meshwright::gui {
namespace {

constexpr int kRecentKept = 12;

struct ExampleText {
  QString title, text;
};

ExampleText text_of(const QString& name) {
  if (name == "textbook")
    return {WelcomeScreen::tr("The textbook bubble"),
            WelcomeScreen::tr(
                "1F1B with four equal stages: a bubble of exactly (p − 1) / (m + p − 1)")};
  if (name == "interleaving")
    return {WelcomeScreen::tr("Interleaved 1F1B"),
            WelcomeScreen::tr(
                "GPT-3 175B with three model chunks per rank: smaller bubble, more messages")};
  if (name == "zero-bubble")
    return {
        WelcomeScreen::tr("Zero bubble"),
        WelcomeScreen::tr("Weight-gradient passes fill the bubbles of 1F1B at the same memory")};
  if (name == "dualpipe")
    return {WelcomeScreen::tr("DualPipeV"),
            WelcomeScreen::tr("Overlapped forward and backward passes on a V-shaped placement")};
  if (name == "straggler")
    return {WelcomeScreen::tr("A straggler"),
            WelcomeScreen::tr("One pipeline rank is 30 % slower: see which ranks wait for it")};
  return {WelcomeScreen::tr("GPT-3 on 1,024 GPUs"),
          WelcomeScreen::tr("TP 8, PP 16 with 6 model chunks, DP 8")};
}

QLabel* heading(const QString& text) {
  auto* label = new QLabel(text);
  label->setProperty("role", "heading");
  return label;
}

}  // namespace

QStringList recent_files() { return QSettings().value("recent_files").toStringList(); }

void add_recent_file(const QString& path) {
  QStringList files = recent_files();
  const QString whole = QFileInfo(path).absoluteFilePath();
  files.removeAll(whole);
  files.prepend(whole);
  QSettings().setValue("recent_files", files.mid(0, kRecentKept));
}

void keep_scenario(const Scenario& scenario) {
  QSettings settings;
  settings.setValue("last_scenario/line", QString::fromStdString(to_state_text(scenario)));
  settings.setValue("last_scenario/title",
                    WelcomeScreen::tr("%1 on %2: %3, %4")
                        .arg(QString::fromStdString(scenario.model.name),
                             QString::fromStdString(scenario.cluster.name),
                             QString::fromStdString(split_text(scenario.strategy)),
                             QString::fromStdString(scenario.strategy.schedule)));
}

WelcomeScreen::WelcomeScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, {.name = "welcome", .title = tr("Welcome"), .uses_scenario = false},
             parent) {
  setAcceptDrops(true);
  auto* scroll = new QScrollArea;  // on small screens
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setFocusPolicy(Qt::NoFocus);
  auto* page = new QWidget;
  scroll->setWidget(page);
  auto* whole = new QVBoxLayout(this);
  whole->setContentsMargins(0, 0, 0, 0);
  whole->addWidget(scroll);
  auto* outer = new QHBoxLayout(page);
  auto* column = new QVBoxLayout;
  outer->addStretch(1);
  outer->addLayout(column, 6);
  outer->addStretch(1);
  column->setSpacing(10);
  column->addStretch(1);
  auto* title = new QLabel("Meshwright");
  title->setProperty("role", "title");
  column->addWidget(title);
  auto* motto = new QLabel(tr("Plan, simulate and run parallel training of large models."));
  motto->setProperty("role", "faint");
  column->addWidget(motto);
  column->addWidget(continue_, 0, Qt::AlignLeft);
  continue_->setToolTip(tr("Opens the scenario of the last session"));
  connect(continue_, &QPushButton::clicked, this, &WelcomeScreen::open_kept_scenario);
  column->addSpacing(10);
  add_examples(*column);
  column->addSpacing(6);
  auto* below = new QHBoxLayout;
  auto* left = new QVBoxLayout;
  left->addWidget(heading(tr("Recent files")));
  left->addWidget(recent_);
  recent_->setMinimumHeight(130);
  recent_->setAccessibleName(tr("Recent files"));
  connect(recent_, &QListWidget::itemActivated, this, [this](QListWidgetItem* item) {
    this->workbench().open({item->data(Qt::UserRole).toString()});
  });
  below->addLayout(left, 1);
  auto* right = new QVBoxLayout;
  right->addWidget(heading(tr("Open")));
  drop_zone_->setProperty("role", "drop");
  auto* in_zone = new QVBoxLayout(drop_zone_);
  auto* what =
      new QLabel(tr("Drop files here: plans, traces (.pftrace, Chrome, Kineto), schedules (CSV),\n"
                    "calibrations, models (config.json), clusters (TOML)"));
  what->setAlignment(Qt::AlignCenter);
  what->setWordWrap(true);
  what->setProperty("role", "faint");
  in_zone->addWidget(what);
  right->addWidget(drop_zone_, 1);
  below->addLayout(right, 1);
  column->addLayout(below);
  column->addStretch(2);
  WelcomeScreen::come_to_front();
}

void WelcomeScreen::add_examples(QVBoxLayout& column) {
  column.addWidget(heading(tr("Examples")));
  auto* grid = new QGridLayout;
  grid->setSpacing(10);
  int index = 0;
  constexpr int kColumns = 3;
  for (const Example& example : example_scenarios()) {
    const QString name = qstring_of(example.name);
    const ExampleText text = text_of(name);
    auto* card = new ExampleCard(text.title, text.text, example.scenario);
    card->setObjectName("example." + name);
    card->setToolTip(text.text);
    connect(card, &ExampleCard::clicked, this, [this, name] { open_example(name); });
    grid->addWidget(card, index / kColumns, index % kColumns);
    ++index;
  }
  column.addLayout(grid);
}

void WelcomeScreen::add_actions(ActionSet& actions) {
  actions.add({"file.continue", MenuId::kFile, tr("&Continue where you left off"),
               continue_->toolTip(), shortcuts("Ctrl+L")},
              [this] { open_kept_scenario(); });
  int number = 0;
  for (const Example& example : example_scenarios()) {
    const QString name = qstring_of(example.name);
    actions.add({"example." + name, MenuId::kHelp, tr("Example: %1").arg(text_of(name).title),
                 text_of(name).text, shortcuts(QString("Ctrl+Shift+%1").arg(++number))},
                [this, name] { open_example(name); });
  }
}

void WelcomeScreen::open_example(const QString& name) {
  for (const Example& example : example_scenarios())
    if (name.toStdString() == example.name)
      workbench().scenario().replace(tr("Open example %1").arg(text_of(name).title),
                                     example.scenario);
  workbench().show_screen("explore");
}

/// Runs in a job because the line may refer to files.
void WelcomeScreen::open_kept_scenario() {
  const std::string line = QSettings().value("last_scenario/line").toString().toStdString();
  if (line.empty()) return workbench().log(tr("No scenario from an earlier session"));
  workbench().jobs().start<Scenario>(
      {tr("Continue where you left off"), "paste", true}, this,
      [line](const JobContext&) { return scenario_from_state_text(line); },
      [this](const Scenario& scenario) {
        workbench().scenario().replace(tr("Continue where you left off"), scenario);
        workbench().show_screen("explore");
      });
}

void WelcomeScreen::come_to_front() {
  const QString last = QSettings().value("last_scenario/title").toString();
  continue_->setText(tr("Continue: %1").arg(last));
  continue_->setVisible(!last.isEmpty());
  recent_->clear();
  for (const QString& path : recent_files()) {
    auto* item = new QListWidgetItem(QFileInfo(path).fileName());
    item->setToolTip(path);
    item->setData(Qt::UserRole, path);
    recent_->addItem(item);
  }
  if (recent_->count() > 0) return;
  auto* none = new QListWidgetItem(tr("No recent files"));
  none->setFlags(Qt::NoItemFlags);
  recent_->addItem(none);
}

void WelcomeScreen::show_drop_zone_active(bool active) {
  drop_zone_->setProperty("active", active);
  style()->unpolish(drop_zone_);
  style()->polish(drop_zone_);
}

void WelcomeScreen::dragEnterEvent(QDragEnterEvent* event) {
  if (!event->mimeData()->hasUrls()) return;
  event->acceptProposedAction();
  show_drop_zone_active(true);
}

void WelcomeScreen::dragLeaveEvent(QDragLeaveEvent*) { show_drop_zone_active(false); }

void WelcomeScreen::dropEvent(QDropEvent* event) {
  show_drop_zone_active(false);
  QStringList paths;
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) paths.append(url.toLocalFile());
  workbench().open(paths);
}

}  // namespace meshwright::gui
