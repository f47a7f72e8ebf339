// Exists, so that the others can wrongly include it.
namespace std {
class thread;
}

namespace meshwright {
struct Request {};  // a second type of this name
struct Launch;
class Item final {};  // not that of gui
}  // namespace meshwright
