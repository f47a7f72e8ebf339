#pragma once
namespace meshwright {
struct Request {
  int ranks = 1;
};
struct Launch;
namespace gui {
class Item : public Request {};
}  // namespace gui
}  // namespace meshwright
