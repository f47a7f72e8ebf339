// Every include here breaks a rule, but for the last one.
#include <fmt/format.h>
#include <thread>
#include <vector>
#include "models/load.hpp"
