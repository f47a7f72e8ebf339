/// Work beside the GUI thread. A job is a function of a JobContext; its result, or its error in
/// words, comes back on the GUI thread.
///
/// Jobs with the same `lane` replace each other: while one runs, only the latest request waits
/// behind it, and a result that a later request has overtaken is thrown away. So a slider may start
/// a job per pixel and only what is still wanted is worked out.
#pragma once

#include <QObject>
#include <QString>
#include <QThreadPool>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/error.hpp"

namespace meshwright::gui {

/// Throw it (or call stop_if_cancelled()) to end a job without a result.
struct JobCancelled {};

enum class JobState : std::uint8_t { kWaiting, kRunning, kDone, kFailed, kCancelled };

/// Counted up for every request; never used twice.
using JobId = std::uint64_t;

/// What a job can ask and tell while it runs, from its own thread.
class JobContext {
 public:
  using Report = std::function<void(std::int64_t done, std::int64_t of)>;
  JobContext(std::shared_ptr<std::atomic<bool>> cancelled, Report report)
      : cancelled_(std::move(cancelled)), report_(std::move(report)) {}
  bool is_cancelled() const { return cancelled_->load(std::memory_order_relaxed); }
  void stop_if_cancelled() const {
    if (is_cancelled()) throw JobCancelled{};
  }
  void report(std::int64_t done, std::int64_t of) const { report_(done, of); }

 private:
  std::shared_ptr<std::atomic<bool>> cancelled_;
  Report report_;
};

struct JobFailure {
  enum class Kind : std::uint8_t { kInput, kEnvironment, kInternal } kind = Kind::kInput;
  std::vector<Diagnostic> diagnostics;  ///< at least one
};

struct JobRequest {
  QString title;          ///< for people: "Simulate"
  QString lane;           ///< see above; empty: runs beside everything else
  bool is_listed = true;  ///< shown in the list of jobs; false for what follows a slider
};

/// For the list of jobs.
struct JobStatus {
  JobId id = 0;
  QString title;
  JobState state = JobState::kWaiting;
  std::int64_t done = 0, of = 0;  ///< 0 of 0: no progress known
};

class Jobs : public QObject {
  Q_OBJECT
 public:
  explicit Jobs(QObject* parent = nullptr);
  /// Cancels everything and waits until the threads are done.
  ~Jobs() override;

  /// `work` runs on another thread and must share nothing with this one. Then one of `done` and
  /// `failed` is called on the GUI thread, unless the job was cancelled or overtaken, or `receiver`
  /// is gone.
  template <class Result>
  JobId start(const JobRequest& request, QObject* receiver,
              std::function<Result(const JobContext&)> work, std::function<void(Result)> done,
              std::function<void(const JobFailure&)> failed = {}) {
    auto result = std::make_shared<std::optional<Result>>();
    return start_untyped(
        request, receiver,
        [result, work = std::move(work)](const JobContext& context) {
          result->emplace(work(context));
        },
        [result, done = std::move(done)] { done(std::move(**result)); }, std::move(failed));
  }

  void cancel(JobId job);
  void cancel_lane(const QString& lane);
  void cancel_all();
  bool is_idle() const { return running_ == 0; }
  bool is_busy(const QString& lane) const { return lanes_.contains(lane); }
  /// Of those with is_listed that wait or run, oldest first.
  std::vector<JobStatus> listed() const;

 Q_SIGNALS:
  /// Something in listed() changed; at most 20 times a second for progress.
  void changed();
  void finished(quint64 job, const QString& title, meshwright::gui::JobState state);
  /// A job without an own `failed` handler failed.
  void failed(const QString& title, const meshwright::gui::JobFailure& failure);

 private:
  struct Entry;
  JobId start_untyped(const JobRequest& request, QObject* receiver,
                      std::function<void(const JobContext&)> work, std::function<void()> done,
                      std::function<void(const JobFailure&)> failed);
  void run(const std::shared_ptr<Entry>& entry);
  void settle(const std::shared_ptr<Entry>& entry, const std::optional<JobFailure>& failure,
              bool was_cancelled);
  void deliver(const Entry& entry, const std::optional<JobFailure>& failure);
  void drop(const std::shared_ptr<Entry>& entry);

  /// The one that runs and the latest that waits behind it.
  struct Lane {
    std::shared_ptr<Entry> running, waiting;
  };
  QThreadPool threads_;
  std::map<JobId, std::shared_ptr<Entry>> entries_;  ///< waiting or running
  std::map<QString, Lane> lanes_;                    ///< with something running
  JobId last_ = 0;
  int running_ = 0;
};

}  // namespace meshwright::gui

Q_DECLARE_METATYPE(meshwright::gui::JobFailure)
