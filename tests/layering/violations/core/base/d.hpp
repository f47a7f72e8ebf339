#pragma once

#include "core/plan/e.hpp"
