#include <QImage>
#include <QWidget>

#include "executor/launch.hpp"
