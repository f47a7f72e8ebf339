#include "gui/text/translations.hpp"

#include <gtest/gtest.h>

#include <QFile>
#include <QTranslator>

namespace meshwright::gui {
namespace {

// Qt's contexts are qualified class names.
TEST(Translations, SpeakSimplifiedChinese) {
  if (!QFile::exists(":/i18n/meshwright_zh_CN.qm"))
    GTEST_SKIP() << "built without Qt's LinguistTools";
  QTranslator translator;
  ASSERT_TRUE(translator.load(":/i18n/meshwright_zh_CN.qm"));
  EXPECT_EQ(translator.translate("meshwright::gui::MainWindow", "&File"),
            QString::fromUtf8("文件(&F)"));
  EXPECT_EQ(translator.translate("meshwright::gui::ScenarioPanel", "Micro-batches"),
            QString::fromUtf8("微批次数"));
}

}  // namespace
}  // namespace meshwright::gui
