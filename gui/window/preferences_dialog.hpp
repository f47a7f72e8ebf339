/// S10: appearance, units, language and shortcuts. Changes apply immediately; Cancel reverts them.
#pragma once

#include <QDialog>
#include <map>

#include "gui/session/preferences.hpp"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QKeySequenceEdit;
class QLabel;

namespace meshwright::gui {

class ActionSet;

class PreferencesDialog : public QDialog {
  Q_OBJECT
 public:
  PreferencesDialog(Preferences& preferences, ActionSet& actions, QWidget* parent = nullptr);
  void reject() override;
  /// The shortcut field of an action, or of one of kHeldKeyNames.
  QKeySequenceEdit* key_field(const QString& name) const { return keys_.at(name); }

 private:
  QWidget* looks_page();
  QWidget* keys_page(const ActionSet& actions);
  void show_values();
  void take_values();
  void show_conflicts();
  static QStringList held_key_texts();

  Preferences& preferences_;
  ActionSet& actions_;
  PreferenceValues before_;
  QComboBox *theme_, *palette_, *time_unit_, *language_;
  QDoubleSpinBox* font_scale_;
  QCheckBox* reduced_motion_;
  std::map<QString, QKeySequenceEdit*> keys_;
  QLabel* conflicts_;
  bool is_showing_ = false;
};

}  // namespace meshwright::gui
