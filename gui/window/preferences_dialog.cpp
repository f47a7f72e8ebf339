#include "gui/window/preferences_dialog.hpp"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHeaderView>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QPushButton>
#include <QTabWidget>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "gui/text/translations.hpp"
#include "gui/widgets/actions.hpp"

namespace meshwright::gui {

PreferencesDialog::PreferencesDialog(Preferences& preferences, ActionSet& actions, QWidget* parent)
    : QDialog(parent), preferences_(preferences), actions_(actions), before_(preferences.values()) {
  setWindowTitle(tr("Preferences"));
  auto* column = new QVBoxLayout(this);
  auto* pages = new QTabWidget;
  pages->setDocumentMode(true);  // no pane: in dark themes it is lighter than its content
  pages->addTab(looks_page(), tr("Appearance"));
  pages->addTab(keys_page(actions), tr("Shortcuts"));
  column->addWidget(pages);
  auto* nothing_is_sent = new QLabel(tr("Meshwright collects no telemetry."));
  nothing_is_sent->setProperty("role", "faint");
  column->addWidget(nothing_is_sent);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel |
                                       QDialogButtonBox::RestoreDefaults);
  // Qt's own translations may not be installed.
  buttons->button(QDialogButtonBox::Ok)->setText(tr("OK"));
  buttons->button(QDialogButtonBox::Cancel)->setText(tr("Cancel"));
  buttons->button(QDialogButtonBox::RestoreDefaults)->setText(tr("Restore defaults"));
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &PreferencesDialog::reject);
  connect(buttons->button(QDialogButtonBox::RestoreDefaults), &QPushButton::clicked, this, [this] {
    preferences_.set(PreferenceValues{});
    show_values();
  });
  column->addWidget(buttons);
  constexpr QSize kUsual(560, 560);
  resize(kUsual);
  show_values();
}

QWidget* PreferencesDialog::looks_page() {
  auto* page = new QWidget;
  auto* form = new QFormLayout(page);
  const auto add_box = [&](const QString& label, const QString& hint, const QStringList& items) {
    auto* box = new QComboBox;
    box->addItems(items);
    box->setAccessibleName(label);
    box->setToolTip(hint);
    form->addRow(label, box);
    connect(box, &QComboBox::activated, this, &PreferencesDialog::take_values);
    return box;
  };
  theme_ = add_box(tr("Theme"), tr("Color theme of the program"),
                   {tr("System default"), tr("Light"), tr("Dark"), tr("High contrast")});
  palette_ = add_box(tr("Pass colors"),
                     tr("Colors of forward, backward and weight-gradient passes in timelines"),
                     {tr("Okabe–Ito (colorblind-safe)"), tr("PyTorch"), tr("Megatron paper"),
                      tr("Zero Bubble paper")});
  time_unit_ = add_box(tr("Time unit"), tr("Unit of all displayed times"),
                       {tr("automatic"), "ns", "µs", "ms", "s"});
  language_ = add_box(tr("Language"), tr("Language of menus and texts"), {});
  language_->addItem(tr("System default"), QString());
  for (const Language& language : languages()) language_->addItem(language.own_name, language.code);
  auto* at_next_start = new QLabel(tr("A language change takes effect after a restart."));
  at_next_start->setProperty("role", "faint");
  form->addRow(QString(), at_next_start);
  font_scale_ = new QDoubleSpinBox;
  font_scale_->setRange(0.75, 2.0);
  font_scale_->setSingleStep(0.05);
  font_scale_->setAccessibleName(tr("Text size"));
  font_scale_->setToolTip(tr("1 is the system text size"));
  form->addRow(tr("Text size"), font_scale_);
  connect(font_scale_, &QDoubleSpinBox::valueChanged, this, &PreferencesDialog::take_values);
  reduced_motion_ = new QCheckBox(tr("Reduce motion"));
  reduced_motion_->setToolTip(tr("Turns off slice animations and smooth zooming"));
  form->addRow(tr("Motion"), reduced_motion_);
  connect(reduced_motion_, &QCheckBox::clicked, this, &PreferencesDialog::take_values);
  return page;
}

QWidget* PreferencesDialog::keys_page(const ActionSet& actions) {
  auto* page = new QWidget;
  auto* column = new QVBoxLayout(page);
  auto* list = new QTreeWidget;
  list->setHeaderLabels({tr("Action"), tr("Shortcut")});
  list->setRootIsDecorated(false);
  list->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  list->header()->setStretchLastSection(false);
  list->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
  column->addWidget(list);
  conflicts_ = new QLabel;
  conflicts_->setProperty("role", "problem");
  conflicts_->setWordWrap(true);
  column->addWidget(conflicts_);
  const auto add = [&](const QString& name, const QString& text, const QString& hint) {
    auto* item = new QTreeWidgetItem({text});
    item->setToolTip(0, hint);
    list->addTopLevelItem(item);
    auto* edit = new QKeySequenceEdit;
    edit->setAccessibleName(text);
    edit->setToolTip(hint);
    list->setItemWidget(item, 1, edit);
    keys_[name] = edit;
    connect(edit, &QKeySequenceEdit::editingFinished, this, &PreferencesDialog::take_values);
  };
  const QStringList held = held_key_texts();
  for (std::size_t i = 0; i < kHeldKeyNames.size(); ++i)
    add(kHeldKeyNames[i], held[static_cast<qsizetype>(i)],
        tr("Moves the timeline while the key is held. Default: the keys at the positions of W, S, "
           "A, D on a US keyboard"));
  for (const ActionEntry& entry : actions.entries())
    add(entry.name, entry.action->iconText(), entry.action->toolTip());
  return page;
}

QStringList PreferencesDialog::held_key_texts() {
  return {tr("Hold: zoom in"), tr("Hold: zoom out"), tr("Hold: pan left"), tr("Hold: pan right")};
}

void PreferencesDialog::show_values() {
  is_showing_ = true;
  const PreferenceValues& v = preferences_.values();
  theme_->setCurrentIndex(static_cast<int>(v.theme));
  palette_->setCurrentIndex(static_cast<int>(v.palette));
  time_unit_->setCurrentIndex(static_cast<int>(v.time_unit));
  language_->setCurrentIndex(std::max(0, language_->findData(v.language)));
  font_scale_->setValue(v.font_scale);
  reduced_motion_->setChecked(v.reduced_motion);
  for (const ActionEntry& entry : actions_.entries())
    keys_[entry.name]->setKeySequence(entry.action->shortcut());
  for (const char* name : kHeldKeyNames) {
    const auto own = v.keys.find(name);
    keys_[name]->setKeySequence(own == v.keys.end() ? QKeySequence() : own->second);
  }
  show_conflicts();
  is_showing_ = false;
}

void PreferencesDialog::take_values() {
  if (is_showing_) return;
  PreferenceValues v = preferences_.values();
  v.theme = static_cast<ThemeChoice>(theme_->currentIndex());
  v.palette = static_cast<SlicePalette>(palette_->currentIndex());
  v.time_unit = static_cast<TimeUnit>(time_unit_->currentIndex());
  v.language = language_->currentData().toString();
  v.font_scale = font_scale_->value();
  v.reduced_motion = reduced_motion_->isChecked();
  v.keys.clear();
  for (const ActionEntry& entry : actions_.entries()) {
    const QKeySequence keys = keys_[entry.name]->keySequence();
    const QKeySequence own = entry.own_keys.isEmpty() ? QKeySequence() : entry.own_keys.front();
    if (keys != own) v.keys[entry.name] = keys;
  }
  for (const char* name : kHeldKeyNames)
    if (const QKeySequence keys = keys_[name]->keySequence(); !keys.isEmpty()) v.keys[name] = keys;
  preferences_.set(v);
  show_conflicts();
}

/// With two actions on the same shortcut, Qt triggers neither.
void PreferencesDialog::show_conflicts() {
  std::map<QString, QStringList> users;
  for (const ActionEntry& entry : actions_.entries())
    if (const QKeySequence keys = keys_[entry.name]->keySequence(); !keys.isEmpty())
      users[keys.toString()] += entry.action->iconText();
  const QStringList held = held_key_texts();
  for (std::size_t i = 0; i < kHeldKeyNames.size(); ++i)
    if (const QKeySequence keys = keys_[kHeldKeyNames[i]]->keySequence(); !keys.isEmpty())
      users[keys.toString()] += held[static_cast<qsizetype>(i)];
  QStringList conflicts;
  for (const auto& [keys, names] : users)
    if (names.size() > 1)
      conflicts += tr("%1 is assigned to %2").arg(keys, names.join(tr(" and ")));
  conflicts_->setText(conflicts.join("\n"));
}

void PreferencesDialog::reject() {
  preferences_.set(before_);
  QDialog::reject();
}

}  // namespace meshwright::gui
