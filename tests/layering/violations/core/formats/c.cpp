#include <unistd.h>
#include <fstream>
#include <random>
