// `osprey-ckks WORKLOAD --size N [--no-check]`: one workload, one line of JSON. Run it under `osprey run`, or alone for
// unbounded memory.
#include "scheme.hpp"
#include "workloads.hpp"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace osprey::ckks;

// Wrong use of the command, told apart from what fails while it runs.
struct Usage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What the runtime cannot give: too little memory, no engine.
struct Unavailable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The code for it, which the runtime itself uses where nobody asked it to begin.
constexpr int UNAVAILABLE = 69;

void help() {
    std::puts(
        "Computes on CKKS ciphertexts with Microsoft SEAL, their data in Osprey's region.\n"
        "\n"
        "usage: osprey-ckks WORKLOAD [--size N] [--no-check]\n"
        "       osprey-ckks --list [--json] | --help\n"
        "\n"
        "  --size N     how many, as --list says, or quick; about 1 GiB of region unless told otherwise\n"
        "  --no-check   do not compare the result with the computation in the clear\n"
        "  --list       workloads: name, standard size, size for quick tests, what the size counts;\n"
        "               with --json a line of JSON for each\n"
        "\n"
        "Prints {\"workload\",\"size\",\"seconds\",\"correct\",\"region_bytes\",\"difference\"}; seconds are\n"
        "those of the computation, without making and checking; \"correct\" is null with --no-check.\n"
        "Exits with 1 when the result is wrong or the run fails, with 2 when the command is,\n"
        "with 69 when Osprey's runtime cannot begin, as with too little memory.\n"
        "With limited memory:\n"
        "  osprey run --memory 256M -- osprey-ckks rstats");
}

void list(bool json) {
    for (auto &w : workloads()) {
        if (json) {
            std::printf("{\"workload\":\"%s\",\"default\":%zu,\"quick\":%zu,\"most\":%zu,\"counts\":\"%s\"}\n",
                        w.name, w.standard, w.quick, w.most, w.counts);
        } else {
            std::printf("%-10s %6zu %4zu  %s\n", w.name, w.standard, w.quick, w.counts);
        }
    }
}

const Workload &find(std::string_view name) {
    for (auto &w : workloads()) {
        if (name == w.name) return w;
    }
    throw Usage("there is no workload " + std::string(name) + "; osprey-ckks --list shows them");
}

std::size_t size_of(std::string_view text, const Workload &w) {
    if (text == "default") return w.standard;
    if (text == "quick") return w.quick;
    std::size_t size = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end != text.data() + text.size() || size == 0 || size > w.most) {
        throw Usage("--size " + std::string(text) + ": " + w.name + " takes 1 to " +
                    std::to_string(w.most) + " " + w.counts);
    }
    return size;
}

int run(const Workload &workload, std::size_t size, bool check) {
    if (osp_init() != 0) throw Unavailable(osp_error());
    Outcome outcome = workload.run(size, check);
    if (osp_speculating() != 0) return 0;
    osp_counters counters{};
    if (osp_stats(&counters, sizeof counters) != 0) throw std::runtime_error(osp_error());
    bool correct = outcome.difference <= TOLERANCE;
    std::printf(
        "{\"workload\":\"%s\",\"size\":%zu,\"seconds\":%.6f,\"correct\":%s,\"region_bytes\":%llu,"
        "\"difference\":%.3g}\n",
        workload.name, size, outcome.seconds,
        check ? (correct ? "true" : "false") : "null",
        static_cast<unsigned long long>(counters.peak_chunks * counters.chunk), outcome.difference);
    return correct ? 0 : 1;
}

int command(int argc, char **argv) {
    const Workload *workload = nullptr;
    std::string_view size;
    bool check = true, listing = false, json = false;
    for (int i = 1; i < argc; ++i) {
        std::string_view argument = argv[i];
        if (argument == "--help" || argument == "-h") return help(), 0;
        if (argument == "--list") listing = true;
        else if (argument == "--json") json = true;
        else if (argument == "--no-check") check = false;
        else if (argument == "--size" && i + 1 < argc) size = argv[++i];
        else if (argument.starts_with("--size=")) size = argument.substr(std::strlen("--size="));
        else if (argument.starts_with("-")) throw Usage("unknown or incomplete option " + std::string(argument));
        else if (workload != nullptr) throw Usage("one workload at a time, not also " + std::string(argument));
        else workload = &find(argument);
    }
    if (listing) return list(json), 0;
    if (json) throw Usage("--json goes with --list; a run prints JSON anyway");
    if (workload == nullptr) throw Usage("name a workload; osprey-ckks --list shows them");
    return run(*workload, size.empty() ? workload->standard : size_of(size, *workload), check);
}

}  // namespace

int main(int argc, char **argv) {
    try {
        return command(argc, argv);
    } catch (const Usage &error) {
        std::fprintf(stderr, "error: %s\nosprey-ckks --help explains the command\n", error.what());
        return 2;
    } catch (const Unavailable &error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return UNAVAILABLE;
    } catch (const std::bad_alloc &) {
        std::fprintf(stderr, "error: no memory for a ciphertext: %s\n", osp_error());
    } catch (const std::exception &error) {
        std::fprintf(stderr, "error: %s\n", error.what());
    }
    return 1;
}
