#include "ymir/schedule/themis_share.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace ymir {
namespace {

// What rho says of a job, with the constants of the round taken out of the bisection.
struct Claim {
  double gpus = 0, seconds_left = 0, age_s = 0, life_s = 0;

  double share_at(double rho) const {
    const double left = rho * life_s - age_s;  // may it take so long from now on
    return left > 0 ? seconds_left / left : std::numeric_limits<double>::infinity();
  }
  double least_rho() const { return (age_s + seconds_left) / life_s; }  // share 1
};

double gpus_at(const std::vector<Claim>& claims, double rho) {
  double gpus = 0;
  for (const Claim& claim : claims) gpus += claim.gpus * claim.share_at(rho);
  return gpus;
}

Result<> check(const ShareJob& job, std::size_t index) {
  const auto fault = [&](const char* what) {
    return Error{ErrorCode::kInvalidArgument, "job " + std::to_string(index) + ": " + what};
  };
  for (const double value :
       {job.gpus, job.steps_left, job.steps_per_s, job.age_s, job.isolated_past_s})
    if (!std::isfinite(value)) return fault("a value is not finite");
  if (job.gpus <= 0) return fault("asks for no GPU");
  if (job.steps_left <= 0) return fault("has no steps left");
  if (job.steps_per_s <= 0) return fault("has no speed");
  if (job.age_s < 0 || job.isolated_past_s < 0) return fault("has a negative time");
  return Ok{};
}

}  // namespace

double isolated_share(double gpus, double num_gpus, std::size_t num_jobs) {
  return std::min(1.0, num_gpus / (static_cast<double>(num_jobs) * gpus));
}

double isolated_life_s(const ShareJob& job, double num_gpus, std::size_t num_jobs) {
  const double speed = job.steps_per_s * isolated_share(job.gpus, num_gpus, num_jobs);
  return job.isolated_past_s + job.steps_left / speed;
}

Result<FairShares> max_min_shares(std::span<const ShareJob> jobs, double num_gpus) {
  if (!std::isfinite(num_gpus) || num_gpus <= 0)
    return Error{ErrorCode::kInvalidArgument, "the cluster has no GPU"};
  FairShares out;
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    YMIR_TRY(check(jobs[i], i));
    claims.push_back({jobs[i].gpus, jobs[i].steps_left / jobs[i].steps_per_s, jobs[i].age_s,
                      isolated_life_s(jobs[i], num_gpus, jobs.size())});
    out.rho = std::max(out.rho, claims.back().least_rho());
  }
  // Below this rho some job would need more than all of the time; the capacity may ask for more.
  if (gpus_at(claims, out.rho) > num_gpus) {
    out.capacity_binds = true;
    double low = out.rho, high = 2 * out.rho;
    for (; gpus_at(claims, high) > num_gpus; high *= 2) low = high;
    for (int halving = 0; halving < 200 && high - low > 1e-14 * high; ++halving) {
      const double middle = low + (high - low) / 2;
      (gpus_at(claims, middle) > num_gpus ? low : high) = middle;
    }
    out.rho = high;  // the side on which the capacity suffices
  }
  for (const Claim& claim : claims) out.x.push_back(std::min(1.0, claim.share_at(out.rho)));
  return out;
}

}  // namespace ymir
