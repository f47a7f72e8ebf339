#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include "a.hpp"
#include "core/a.hpp"
#include "core/nothing.hpp"
