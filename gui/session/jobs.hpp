/// Background jobs. A job is a function of a JobContext that runs on a worker thread; its result or
/// its diagnostics are delivered on the GUI thread.
///
/// Jobs in the same `lane` replace each other: while one runs, only the latest request waits, and
/// the result of a superseded job is discarded (see settle() for jobs that follow a slider). A
/// slider may therefore start a job per pixel.
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

#include "core/base/error.hpp"

namespace meshwright::gui {

/// Thrown by a job (or by stop_if_canceled()) to end without a result.
struct JobCanceled {};

enum class JobState : std::uint8_t { kWaiting, kRunning, kDone, kFailed, kCanceled };

/// Incremented for every request; never reused.
using JobId = std::uint64_t;

/// Cancellation and progress reporting for a running job, used from its own thread.
class JobContext {
 public:
  using Report = std::function<void(std::int64_t done, std::int64_t of)>;
  JobContext(std::shared_ptr<std::atomic<bool>> canceled, Report report)
      : canceled_(std::move(canceled)), report_(std::move(report)) {}
  bool is_canceled() const { return canceled_->load(std::memory_order_relaxed); }
  void stop_if_canceled() const {
    if (is_canceled()) throw JobCanceled{};
  }
  void report(std::int64_t done, std::int64_t of) const { report_(done, of); }

 private:
  std::shared_ptr<std::atomic<bool>> canceled_;
  Report report_;
};

struct JobFailure {
  enum class Kind : std::uint8_t { kInput, kEnvironment, kInternal } kind = Kind::kInput;
  std::vector<Diagnostic> diagnostics;  ///< at least one
};

struct JobRequest {
  QString title;          ///< shown to the user: "Simulate"
  QString lane;           ///< see above; a job without a lane never waits
  bool is_listed = true;  ///< shown in the job list; false for jobs that follow a slider
};

/// A row of the job list.
struct JobStatus {
  JobId id = 0;
  QString title;
  JobState state = JobState::kWaiting;
  std::int64_t done = 0, of = 0;  ///< 0 of 0: progress unknown
};

class Jobs : public QObject {
  Q_OBJECT
 public:
  explicit Jobs(QObject* parent = nullptr);
  /// Cancels everything and waits until the threads are done.
  ~Jobs() override;

  /// Runs `work` on another thread; it must not share mutable state with this one. Then `done` or
  /// `failed` is called on the GUI thread, unless the job was canceled or superseded, or `receiver`
  /// has been destroyed.
  template <class Result>
  JobId start(const JobRequest& request, QObject* receiver,
              std::function<Result(const JobContext&)> work, std::function<void(Result)> done,
              std::function<void(const JobFailure&)> failed = {}) {
    auto result = std::make_shared<std::optional<Result>>();
    std::function<void(const JobContext&)> run_work =
        [result, work = std::move(work)](const JobContext& context) {
          result->emplace(work(context));
        };
    std::function<void()> give_result = [result, done = std::move(done)] {
      done(std::move(**result));
    };
    return start_untyped(request, receiver, std::move(run_work), std::move(give_result),
                         std::move(failed));
  }

  void cancel(JobId job);
  void cancel_lane(const QString& lane);
  void cancel_all();
  bool is_idle() const { return running_ == 0; }
  bool is_busy(const QString& lane) const { return lanes_.contains(lane); }
  /// Waiting and running jobs with is_listed, oldest first.
  std::vector<JobStatus> listed() const;

 Q_SIGNALS:
  /// listed() has changed; progress is reported at most 20 times per second.
  void changed();
  void finished(quint64 job, const QString& title, meshwright::gui::JobState state);
  /// A job without its own `failed` handler failed.
  void failed(const QString& title, const meshwright::gui::JobFailure& failure);

 private:
  struct Entry;
  JobId start_untyped(const JobRequest& request, QObject* receiver,
                      std::function<void(const JobContext&)> work, std::function<void()> done,
                      std::function<void(const JobFailure&)> failed);
  void run(const std::shared_ptr<Entry>& entry);
  void settle(const std::shared_ptr<Entry>& entry, const std::optional<JobFailure>& failure,
              bool was_canceled);
  void deliver(const Entry& entry, const std::optional<JobFailure>& failure);
  void drop(const std::shared_ptr<Entry>& entry);

  /// The running job and the latest waiting one.
  struct Lane {
    std::shared_ptr<Entry> running, waiting;
  };
  QThreadPool threads_;
  std::map<JobId, std::shared_ptr<Entry>> entries_;  ///< waiting or running
  std::map<QString, Lane> lanes_;                    ///< lanes with a running job
  JobId last_ = 0;
  int running_ = 0;
};

}  // namespace meshwright::gui

Q_DECLARE_METATYPE(meshwright::gui::JobFailure)
