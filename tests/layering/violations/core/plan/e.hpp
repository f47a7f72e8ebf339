#pragma once

#include "core/base/d.hpp"
