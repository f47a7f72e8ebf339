// The library is allowed here, but not to those who include this file from elsewhere.
#include <fmt/format.h>
#include <thread>
#include <vector>
#include "models/load.hpp"
