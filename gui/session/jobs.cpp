#include "gui/session/jobs.hpp"

#include <QElapsedTimer>
#include <QPointer>
#include <exception>

namespace meshwright::gui {

struct Jobs::Entry {
  JobRequest request;
  JobId id = 0;
  JobState state = JobState::kWaiting;
  std::shared_ptr<std::atomic<bool>> canceled = std::make_shared<std::atomic<bool>>(false);
  bool has_receiver = false;
  QPointer<QObject> receiver;
  std::function<void(const JobContext&)> work;
  std::function<void()> done;
  std::function<void(const JobFailure&)> failed;
  std::int64_t progress_done = 0, progress_of = 0;
};

namespace {

constexpr qint64 kProgressEveryMs = 50;

/// Runs `work` and turns exceptions into diagnostics for the GUI.
std::optional<JobFailure> run_work(const std::function<void(const JobContext&)>& work,
                                   const JobContext& context, bool& was_canceled) {
  using Kind = JobFailure::Kind;
  try {
    work(context);
  } catch (const JobCanceled&) {
    was_canceled = true;
  } catch (const InputError& error) {
    return JobFailure{Kind::kInput, error.diagnostics()};
  } catch (const RuntimeFailure& failure) {
    return JobFailure{Kind::kEnvironment, {failure.diagnostic()}};
  } catch (const std::bad_alloc&) {
    return JobFailure{Kind::kEnvironment,
                      {{"memory", "not enough memory on this machine", "try a smaller job"}}};
  } catch (const std::exception& error) {
    return JobFailure{Kind::kInternal,
                      {{"Meshwright", error.what(), "report this bug with the text above"}}};
  }
  return std::nullopt;
}

}  // namespace

Jobs::Jobs(QObject* parent) : QObject(parent) {
  qRegisterMetaType<JobState>();
  qRegisterMetaType<JobFailure>();
  // A plan search uses all cores; jobs that follow a slider must not wait for it.
  threads_.setMaxThreadCount(std::max(4, QThread::idealThreadCount() + 2));
}

Jobs::~Jobs() {
  for (const auto& [id, entry] : entries_) entry->canceled->store(true);
  threads_.waitForDone();
}

JobId Jobs::start_untyped(const JobRequest& request, QObject* receiver,
                          std::function<void(const JobContext&)> work, std::function<void()> done,
                          std::function<void(const JobFailure&)> failed) {
  auto entry = std::make_shared<Entry>();
  entry->request = request;
  entry->id = ++last_;
  entry->has_receiver = receiver != nullptr;
  entry->receiver = receiver;
  entry->work = std::move(work);
  entry->done = std::move(done);
  entry->failed = std::move(failed);
  entries_[entry->id] = entry;
  if (request.lane.isEmpty()) {
    run(entry);
  } else {
    Lane& lane = lanes_[request.lane];
    if (lane.running) {
      if (lane.waiting) drop(lane.waiting);
      lane.waiting = entry;
    } else {
      lane.running = entry;
      run(entry);
    }
  }
  if (request.is_listed) Q_EMIT changed();
  return entry->id;
}

void Jobs::run(const std::shared_ptr<Entry>& entry) {
  entry->state = JobState::kRunning;
  ++running_;
  threads_.start([this, entry] {
    QElapsedTimer since_report;
    const JobContext context(entry->canceled, [&](std::int64_t done, std::int64_t of) {
      if (since_report.isValid() && since_report.elapsed() < kProgressEveryMs && done != of) return;
      since_report.start();
      QMetaObject::invokeMethod(this, [this, entry, done, of] {
        entry->progress_done = done;
        entry->progress_of = of;
        if (entry->request.is_listed) Q_EMIT changed();
      });
    });
    bool was_canceled = false;
    const std::optional<JobFailure> failure = run_work(entry->work, context, was_canceled);
    // `this` outlives the threads because the destructor waits for them. Posted calls that are not
    // delivered by then are dropped with the object.
    QMetaObject::invokeMethod(
        this, [=, this] { settle(entry, failure, was_canceled); }, Qt::QueuedConnection);
  });
}

void Jobs::settle(const std::shared_ptr<Entry>& entry, const std::optional<JobFailure>& failure,
                  bool was_canceled) {
  --running_;
  entries_.erase(entry->id);
  bool is_overtaken = false;
  if (!entry->request.lane.isEmpty()) {
    const auto lane = lanes_.find(entry->request.lane);
    is_overtaken = lane->second.waiting != nullptr;
    lane->second.running = std::move(lane->second.waiting);
    lane->second.waiting = nullptr;
    if (lane->second.running)
      run(lane->second.running);
    else
      lanes_.erase(lane);
  }
  was_canceled = was_canceled || entry->canceled->load();
  entry->state = was_canceled ? JobState::kCanceled : failure ? JobState::kFailed : JobState::kDone;
  // Jobs that follow a slider deliver a superseded result too, so that the view keeps moving.
  // Superseded errors are dropped.
  const bool is_wanted =
      !was_canceled && (!is_overtaken || (!failure && !entry->request.is_listed));
  if (is_wanted) deliver(*entry, failure);
  if (entry->request.is_listed) Q_EMIT changed();
  Q_EMIT finished(entry->id, entry->request.title, entry->state);
}

void Jobs::deliver(const Entry& entry, const std::optional<JobFailure>& failure) {
  if (entry.has_receiver && !entry.receiver) return;
  if (!failure)
    entry.done();
  else if (entry.failed)
    entry.failed(*failure);
  else
    Q_EMIT failed(entry.request.title, *failure);
}

/// Removes a job that never ran.
void Jobs::drop(const std::shared_ptr<Entry>& entry) {
  entry->state = JobState::kCanceled;
  entry->canceled->store(true);
  entries_.erase(entry->id);
}

void Jobs::cancel(JobId job) {
  const auto found = entries_.find(job);
  if (found == entries_.end()) return;
  const std::shared_ptr<Entry> entry = found->second;
  entry->canceled->store(true);
  if (entry->state != JobState::kWaiting) return;
  lanes_[entry->request.lane].waiting = nullptr;
  drop(entry);
  Q_EMIT changed();
}

void Jobs::cancel_lane(const QString& lane) {
  const auto found = lanes_.find(lane);
  if (found == lanes_.end()) return;
  if (found->second.waiting) cancel(found->second.waiting->id);
  cancel(found->second.running->id);
}

void Jobs::cancel_all() {
  std::vector<JobId> all;
  for (const auto& [id, entry] : entries_) all.push_back(id);
  for (const JobId id : all) cancel(id);
}

std::vector<JobStatus> Jobs::listed() const {
  std::vector<JobStatus> list;
  for (const auto& [id, entry] : entries_)
    if (entry->request.is_listed)
      list.push_back(
          {id, entry->request.title, entry->state, entry->progress_done, entry->progress_of});
  return list;
}

}  // namespace meshwright::gui
