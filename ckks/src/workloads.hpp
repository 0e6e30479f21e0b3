// The five CKKS workloads of the evaluation (paper 003's, in paper 004's list): one row each in `workloads()`.
#pragma once

#include <span>
#include <string_view>

namespace osprey::ckks {

// What a run gives: seconds between the marks `start` and `stop`, and the largest difference from the clear.
struct Outcome {
    double seconds;
    double difference;
};

struct Workload {
    std::string_view name;
    // What `--size` counts.
    std::string_view size_means;
    // About 1 GiB of region, what tests run, and the most that is accepted.
    std::size_t standard, quick, most;
    Outcome (*run)(std::size_t size, bool check);
};

std::span<const Workload> workloads();

}  // namespace osprey::ckks
