// The part of the CUDA driver and of NVRTC that this crate calls, on the host: tests load it in their place where there
// is no GPU. It runs the same kernels, and it is as inconvenient as the real one may be: a stream does nothing before
// somebody waits for it, so whoever reads too early or reuses a buffer too soon gets wrong bits; device memory ends at
// a page that must not be touched; and memory that is freed with anything left in it is counted. With EMULATOR_COUNTS
// in the environment it says at the end what was asked of it.

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "shim.h"

#include "../src/kernels.cu"

namespace {

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500, MISSING_CONTEXT = 201, ALREADY = 712 };

struct Queue {
    std::mutex lock;  // two threads may wait for one stream
    std::vector<std::function<void()>> work;
};

struct Kernel {
    const char *name;
    std::function<std::function<void()>(const void *)> bind;
};

template <typename Job> Kernel kernel(const char *name, void (*body)(Job)) {
    return Kernel{name, [body](const void *from) {
                      Job job;
                      std::memcpy(&job, from, sizeof job);
                      return std::function<void()>([body, job] { body(job); });
                  }};
}

Kernel kernels[] = {
    kernel("expand", expand),       kernel("combine", combine),         kernel("cross", cross),
    kernel("seal", seal),           kernel("seal_streams", seal_streams), kernel("seal_drawn", seal_drawn),
    kernel("fold", fold),           kernel("digest", digest),
    kernel("draw", draw),           kernel("local", local),             kernel("shift", shift),
    kernel("to_planes", to_planes), kernel("to_elements", to_elements),
};

thread_local bool current = false;
std::mutex memory_lock;
std::map<uintptr_t, std::pair<uintptr_t, size_t>> mappings;
std::map<uintptr_t, size_t> sizes, locked;
std::atomic<uint64_t> frees{0}, unwiped{0};
const size_t PAGE = 4096;

// What was asked of it, as JSON on standard error: what a card would be asked.
struct Asked {
    std::atomic<uint64_t> launches{0}, waits{0}, wipes{0}, allocations{0}, copies_in{0}, bytes_in{0}, copies_out{0},
        bytes_out{0};
    ~Asked() {
        if (!std::getenv("EMULATOR_COUNTS")) return;
        std::fprintf(stderr,
                     "{\"launches\": %lu, \"waits\": %lu, \"wipes\": %lu, \"allocations\": %lu, \"copies_in\": %lu, "
                     "\"bytes_in\": %lu, \"copies_out\": %lu, \"bytes_out\": %lu}\n",
                     launches.load(), waits.load(), wipes.load(), allocations.load(), copies_in.load(), bytes_in.load(),
                     copies_out.load(), bytes_out.load());
    }
    void copied(bool in, size_t bytes) {
        (in ? copies_in : copies_out)++;
        (in ? bytes_in : bytes_out) += bytes;
    }
} asked;

// Memory that ends where a page without access begins.
uintptr_t take(size_t bytes) {
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    void *base = mmap(nullptr, whole + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return 0;
    mprotect((char *)base + whole, PAGE, PROT_NONE);
    uintptr_t at = (uintptr_t)base + whole - bytes;
    std::lock_guard<std::mutex> guard(memory_lock);
    mappings[at] = {(uintptr_t)base, whole + PAGE};
    sizes[at] = bytes;
    return at;
}

int give_back(uintptr_t at) {
    std::pair<uintptr_t, size_t> mapping;
    size_t size;
    {
        std::lock_guard<std::mutex> guard(memory_lock);
        auto found = mappings.find(at);
        if (found == mappings.end()) return INVALID;
        mapping = found->second;
        size = sizes[at];
        mappings.erase(found);
        sizes.erase(at);
    }
    // Buffers of several devices are looked through at once.
    const unsigned char *bytes = (const unsigned char *)at;
    unsigned char left = 0;
    for (size_t i = 0; i < size; i++) left |= bytes[i];
    frees++;
    unwiped += left != 0;
    munmap((void *)mapping.first, mapping.second);
    return OK;
}

}  // namespace

extern "C" {

uint64_t emulator_frees() { return frees; }
uint64_t emulator_unwiped() { return unwiped; }

int cuInit(unsigned) { return OK; }
int cuGetErrorString(int, const char **text) { return *text = "an error of the emulator", OK; }
int cuDeviceGetCount(int *count) { return *count = 1, OK; }
int cuDeviceGet(int *device, int index) { return *device = index, index == 0 ? OK : INVALID; }
int cuDeviceGetName(char *name, int length, int) { return std::strncpy(name, "host", length), OK; }
int cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = 1 << 30, OK; }
int cuDeviceGetAttribute(int *value, int which, int) { return *value = which == 75 ? 9 : 0, OK; }  // compute 9.0
int cuDevicePrimaryCtxRetain(void **context, int) { return *context = &mappings, OK; }
int cuDevicePrimaryCtxRelease_v2(int) { return OK; }
int cuCtxSetCurrent(void *context) { return current = context == &mappings, OK; }
int cuModuleLoadData(void **module, const void *) { return *module = kernels, current ? OK : MISSING_CONTEXT; }
int cuModuleUnload(void *) { return OK; }

int cuModuleGetFunction(void **function, void *, const char *name) {
    for (Kernel &each : kernels)
        if (!std::strcmp(each.name, name)) return *function = &each, OK;
    return NOT_FOUND;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    if (!current) return MISSING_CONTEXT;
    asked.allocations++;
    *address = take(bytes);
    // New device memory holds whatever was in it before.
    if (*address) std::memset((void *)*address, 0xa5, bytes);
    return *address ? OK : NO_MEMORY;
}
int cuMemGetInfo_v2(size_t *free, size_t *all) {
    return *free = 3 << 28, *all = 1 << 30, current ? OK : MISSING_CONTEXT;
}
int cuMemFree_v2(uint64_t address) { return current ? give_back(address) : MISSING_CONTEXT; }
int cuMemsetD8_v2(uint64_t at, unsigned char value, size_t bytes) {
    return std::memset((void *)at, value, bytes), current ? OK : MISSING_CONTEXT;
}
int cuMemAllocHost_v2(void **memory, size_t bytes) {
    if (!current) return MISSING_CONTEXT;
    *memory = (void *)take(bytes);
    return *memory ? OK : NO_MEMORY;
}
int cuMemFreeHost(void *memory) { return current ? give_back((uintptr_t)memory) : MISSING_CONTEXT; }

int cuStreamCreate(void **stream, unsigned) { return *stream = new Queue, current ? OK : MISSING_CONTEXT; }
int cuStreamDestroy_v2(void *stream) { return delete (Queue *)stream, OK; }
int cuStreamSynchronize(void *stream) {
    if (!current) return MISSING_CONTEXT;
    Queue *queue = (Queue *)stream;
    std::lock_guard<std::mutex> guard(queue->lock);
    asked.waits += !queue->work.empty();
    for (auto &step : queue->work) step();
    queue->work.clear();
    return OK;
}

static int later(void *stream, std::function<void()> step) {
    if (!current) return MISSING_CONTEXT;
    std::lock_guard<std::mutex> guard(((Queue *)stream)->lock);
    ((Queue *)stream)->work.push_back(std::move(step));
    return OK;
}

// Rows between the GPU and memory that was page-locked: other memory would cost a copy by the host.
struct Rows {
    size_t from_x, from_y;
    unsigned from_type;
    const void *from_host;
    uint64_t from_device;
    void *from_array;
    size_t from_pitch, to_x, to_y;
    unsigned to_type;
    void *to_host;
    uint64_t to_device;
    void *to_array;
    size_t to_pitch, width, height;
};
static bool is_locked(uintptr_t at, size_t bytes) {
    std::lock_guard<std::mutex> guard(memory_lock);
    auto after = locked.upper_bound(at);
    if (after == locked.begin()) return false;
    auto found = std::prev(after);
    return at + bytes <= found->first + found->second;
}
int cuMemcpy2DAsync_v2(const Rows *rows, void *stream) {
    Rows r = *rows;
    bool out = r.from_type == 2 && r.to_type == 1, in = r.from_type == 1 && r.to_type == 2;
    if (out == in || r.from_x || r.from_y || r.to_x || r.to_y || r.from_array || r.to_array) return INVALID;
    if (!r.width || !r.height || r.from_pitch < r.width || r.to_pitch < r.width) return INVALID;
    asked.copied(in, r.width * r.height);
    return later(stream, [=] {
        const char *from = out ? (const char *)r.from_device : (const char *)r.from_host;
        char *to = out ? (char *)r.to_host : (char *)r.to_device;
        for (size_t i = 0; i < r.height; i++, from += r.from_pitch, to += r.to_pitch) {
            if (!is_locked(out ? (uintptr_t)to : (uintptr_t)from, r.width)) std::abort();
            std::memcpy(to, from, r.width);
        }
    });
}
int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags) {
    if (!current) return MISSING_CONTEXT;
    if ((uintptr_t)memory % PAGE || flags != 1) return INVALID;
    std::lock_guard<std::mutex> guard(memory_lock);
    return locked.emplace((uintptr_t)memory, bytes).second ? OK : ALREADY;
}
int cuMemHostUnregister(void *memory) {
    if (!current) return MISSING_CONTEXT;
    std::lock_guard<std::mutex> guard(memory_lock);
    return locked.erase((uintptr_t)memory) ? OK : INVALID;
}
uint64_t emulator_locked() {
    std::lock_guard<std::mutex> guard(memory_lock);
    return locked.size();
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    asked.copied(true, bytes);
    return later(stream, [=] { std::memcpy((void *)to, from, bytes); });
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    asked.copied(false, bytes);
    return later(stream, [=] { std::memcpy(to, (const void *)from, bytes); });
}
int cuMemsetD8Async(uint64_t at, unsigned char value, size_t bytes, void *stream) {
    asked.wipes++;
    return later(stream, [=] { std::memset((void *)at, value, bytes); });
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra) {
    if (!grid_x || !block_x || block_x > 1024 || shared || extra) return INVALID;
    if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1) return INVALID;
    asked.launches++;
    auto call = ((Kernel *)function)->bind(arguments[0]);
    return later(stream, [=] {
        blockDim.x = block_x;
        for (blockIdx.x = 0; blockIdx.x < grid_x; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < block_x; threadIdx.x++) call();
    });
}

// NVRTC: the kernels are in this library already.
int nvrtcCreateProgram(void **program, const char *source, const char *, int, const char **, const char **) {
    return *program = new std::string(source), OK;
}
int nvrtcCompileProgram(void *, int, const char **) { return OK; }
int nvrtcGetProgramLogSize(void *, size_t *bytes) { return *bytes = 1, OK; }
int nvrtcGetProgramLog(void *, char *log) { return *log = 0, OK; }
int nvrtcGetCUBINSize(void *program, size_t *bytes) { return *bytes = ((std::string *)program)->size(), OK; }
int nvrtcGetCUBIN(void *program, char *image) {
    auto *source = (std::string *)program;
    return std::memcpy(image, source->data(), source->size()), OK;
}
int nvrtcDestroyProgram(void **program) { return delete (std::string *)*program, OK; }
const char *nvrtcGetErrorString(int) { return "an error of the emulator"; }

}  // extern "C"
