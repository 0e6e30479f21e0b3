// The five CKKS workloads of the evaluation (paper 004): one row each in `workloads()`.
#pragma once

#include <cstddef>
#include <span>

namespace osprey::ckks {

// What a run gives: seconds between the marks `start` and `stop`, and the largest difference from the clear.
struct Outcome {
    double seconds;
    double difference;
};

struct Workload {
    const char *name;
    // What `--size` counts.
    const char *counts;
    // About 1 GiB of region, what tests run, and the most that is accepted.
    std::size_t standard, quick, most;
    Outcome (*run)(std::size_t size, bool check);
};

std::span<const Workload> workloads();

}  // namespace osprey::ckks
