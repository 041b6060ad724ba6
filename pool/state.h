// PoolState: all that a scheduling decision needs. Plain data, except for Jobs, which note what is changed.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <vector>

#include "pool/job.h"

namespace remuda::pool {

/// The jobs of a pool, by ascending ids. Every way to change one notes its id, so that a pool compares and writes what
/// a transition has touched, not all that wait. Equal are those with equal jobs.
class Jobs {
 public:
  using value_type = Job;
  using const_iterator = std::vector<Job>::const_iterator;
  using iterator = const_iterator;

  Jobs() = default;
  Jobs(std::initializer_list<Job> jobs) : jobs_(jobs) {}
  explicit Jobs(std::vector<Job> jobs) : jobs_(std::move(jobs)) {}

  const_iterator begin() const { return jobs_.begin(); }
  const_iterator end() const { return jobs_.end(); }
  size_t size() const { return jobs_.size(); }
  bool empty() const { return jobs_.empty(); }
  const Job& operator[](size_t place) const { return jobs_[place]; }
  const Job& front() const { return jobs_.front(); }
  const Job& back() const { return jobs_.back(); }
  const Job* find(int64_t id) const;

  /// To change it: one of these jobs. Valid until one is added.
  Job& edit(const Job& job);
  Job* find(int64_t id);  ///< nothing where it is not there
  Job& operator[](size_t place) { return edit(jobs_[place]); }
  Job& front() { return edit(jobs_.front()); }
  Job& back() { return edit(jobs_.back()); }

  void push_back(Job job);
  void insert(Job job);  ///< at its place by id
  void erase_if(const std::function<bool(const Job&)>& is_meant) { std::erase_if(jobs_, is_meant); }

  /// Those that were handed out to be changed, or added, since forget_touched(); ascending. They may be as they were.
  std::vector<int64_t> touched() const;
  void forget_touched() { touched_.clear(); }

  bool operator==(const Jobs& other) const { return jobs_ == other.jobs_; }

 private:
  std::vector<Job> jobs_;
  std::vector<int64_t> touched_;
};

/// Contains only those ended jobs that waiting jobs wait for (awaited_by()), or that the caller of Pool::change asked
/// for.
struct PoolState {
  int64_t next_job = 1;  ///< id of the job that is submitted next
  Jobs jobs;
  std::vector<Lease> leases;
  std::vector<Usage> usage;
  std::vector<Spent> spent;             ///< by user and day, ascending; of the last seven days
  std::vector<Drain> drains;            ///< by device, ascending
  std::vector<Allocation> allocations;  ///< as an agent reports them; empty for transitions

  Job* find(int64_t id) { return jobs.find(id); }
  const Job* find(int64_t id) const { return jobs.find(id); }
  bool operator==(const PoolState&) const = default;
};

}  // namespace remuda::pool
