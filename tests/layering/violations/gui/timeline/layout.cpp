#include <QRect>
