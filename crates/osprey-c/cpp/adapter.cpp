// Tests of osprey.hpp and of the C interface under it: what lands in the region, transfers whole and cut short, errors.
// Prints each check that fails; the exit code is how many did.
#include <osprey.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

namespace {

int failures = 0;

void check(bool holds, const char* what, int line) {
    if (holds) return;
    std::fprintf(stderr, "adapter.cpp:%d: %s\n", line, what);
    failures++;
}
#define CHECK(condition) check((condition), #condition, __LINE__)

struct Label : osp::oblivious {
    std::uint64_t words[2] = {1, 2};
};
struct alignas(64) Wide : osp::oblivious {
    char bytes[64] = {};
    ~Wide() {}
};
struct Foreign {
    std::uint64_t word = 3;
};
// Incomplete where the vector is named: held as any other class.
struct Tree {
    std::vector<Tree> children;
};

}  // namespace

template <>
struct osp::is_oblivious<Foreign> : std::true_type {};

static_assert(sizeof(Label) == 16, "the base is empty");
static_assert(osp::annotated<Label> && osp::annotated<Foreign> && !osp::annotated<Tree> && !osp::annotated<int>);

namespace {

bool inside(const void* at) { return osp_owns(at) == 1; }
bool aligned(const void* at, std::uintptr_t to) { return reinterpret_cast<std::uintptr_t>(at) % to == 0; }

void objects() {
    auto one = std::make_unique<Label>();
    auto many = std::make_unique<Label[]>(1000);
    auto wide = std::make_unique<Wide>();
    auto wides = std::make_unique<Wide[]>(10);
    std::unique_ptr<Wide> perhaps(new (std::nothrow) Wide);
    CHECK(inside(one.get()) && inside(many.get()) && inside(&many[999]));
    CHECK(inside(wide.get()) && inside(wides.get()) && inside(perhaps.get()));
    CHECK(aligned(wide.get(), 64) && aligned(wides.get(), 64) && aligned(perhaps.get(), 64));
    alignas(Label) unsigned char place[sizeof(Label)];
    CHECK(!inside(new (place) Label));
    CHECK(!inside(&failures) && !inside(nullptr));
}

void containers() {
    std::vector<Label> labels(1000);
    CHECK(inside(labels.data()));
    for (int i = 0; i < 1000; i++) labels.push_back(labels[std::size_t(i)]);
    labels.insert(labels.begin(), Label{});
    CHECK(labels.size() == 2001 && inside(labels.data()) && labels.back().words[1] == 2);
    const std::vector<Label> copy = labels;
    CHECK(inside(copy.data()) && copy.data() != labels.data());
    const auto* before = labels.data();
    const std::vector<Label> moved = std::move(labels);
    CHECK(moved.data() == before);

    std::vector<std::vector<Label>> nested(3, copy);
    CHECK(!inside(nested.data()) && inside(nested[2].data()));
    CHECK(inside(std::vector<Foreign>(10).data()));
    CHECK(aligned(std::vector<Wide>(3).data(), 64));
    // Containers of nodes allocate nodes, which are not the annotated class; they need the allocator in words.
    std::map<int, Label> ordered;
    CHECK(!inside(&ordered[5]));
    std::map<int, Label, std::less<int>, osp::allocator<std::pair<const int, Label>>> chosen_nodes;
    CHECK(inside(&chosen_nodes[5]));
    CHECK(!inside(std::vector<int>(1000).data()));

    osp::vector<double> chosen(100, 1.5);
    chosen.resize(100000);
    CHECK(inside(chosen.data()) && chosen[99] == 1.5 && chosen[99999] == 0);
    std::pmr::vector<int> resource(100, 7, &osp::region());
    CHECK(inside(resource.data()) && resource[99] == 7);
    CHECK(osp::region() == osp::region() && !osp::region().is_equal(*std::pmr::new_delete_resource()));
    Tree tree;
    tree.children.resize(3);
    CHECK(!inside(tree.children.data()));
}

void limits() {
    errno = 0;
    CHECK(osp_alloc_aligned(16, 48) == nullptr && errno == EINVAL);
    CHECK(std::strstr(osp_error(), "alignment 48: expected a power of two up to 4096") != nullptr);
    CHECK(osp_alloc_aligned(16, 8192) == nullptr);
    errno = 0;
    CHECK(osp_alloc(std::size_t(1) << 62) == nullptr && errno == ENOMEM && *osp_error() != 0);
    bool thrown = false;
    try {
        (void)osp::allocator<Wide>().allocate(std::size_t(1) << 60);
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    CHECK(thrown);
    try {
        (void)osp::allocator<char>().allocate(std::size_t(1) << 60);
    } catch (const std::bad_alloc& reason) {
        CHECK(std::strstr(reason.what(), "has no room") != nullptr);
        thrown = false;
    }
    CHECK(!thrown);
    void* nothing = osp_alloc(0);
    CHECK(nothing && inside(nothing));
    osp_free(nothing, 0);
    osp_free(nullptr, 5);

    errno = 0;
    CHECK(osp_read(-1, &failures, sizeof failures) == -1 && errno == EBADF);
    CHECK(std::strstr(osp_error(), "osp_read") != nullptr);
    CHECK(osp_write(1, nullptr, 5) == -1 && errno == EINVAL);
    CHECK(osp_write(1, nullptr, 0) == 0);
    errno = 0;
    CHECK(osp_fread(&failures, SIZE_MAX, 2, stdin) == 0 && errno == EOVERFLOW);
}

// More than a socket's buffer and no multiple of anything, from the region and from elsewhere.
void transfers() {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const std::size_t bytes = 1000003;
    osp::vector<unsigned char> inside_region(bytes);
    std::vector<unsigned char> outside(bytes);
    for (std::size_t i = 0; i < bytes; i++) outside[i] = static_cast<unsigned char>(i * 7 + i / 251);
    std::thread peer([&] {
        CHECK(osp_send(ends[1], outside.data(), bytes, 0) == ssize_t(bytes));
        CHECK(osp_write(ends[1], outside.data(), 10) == 10);
        shutdown(ends[1], SHUT_WR);
    });
    CHECK(osp_recv(ends[0], inside_region.data(), bytes, 0) == ssize_t(bytes));
    CHECK(std::equal(outside.begin(), outside.end(), inside_region.begin()));
    CHECK(osp_read(ends[0], inside_region.data(), 100) == 10);
    CHECK(osp_recv(ends[0], inside_region.data(), 100, 0) == 0);
    peer.join();
    close(ends[1]);
    errno = 0;
    CHECK(osp_send(ends[0], inside_region.data(), 100, 0) == -1 && errno == EPIPE);
    close(ends[0]);

    std::FILE* file = std::tmpfile();
    CHECK(osp_fwrite(inside_region.data(), 3, bytes / 3, file) == bytes / 3);
    std::rewind(file);
    osp::vector<unsigned char> back(bytes + 99);
    CHECK(osp_fread(back.data(), 2, back.size() / 2, file) == bytes / 3 * 3 / 2);
    CHECK(std::equal(inside_region.begin(), inside_region.begin() + bytes / 3 * 3 / 2 * 2, back.begin()));
    std::fclose(file);
}

void counters() {
    osp_counters before{}, after{};
    CHECK(osp_stats(&before, sizeof before) == 0);
    osp::tick();
    delete new Label;
    CHECK(osp_stats(&after, sizeof after) == 0);
    CHECK(after.events == before.events + 3 && after.allocation_hash != before.allocation_hash);
    CHECK(after.peak_chunks > 0 && after.chunk >= 4096);
    osp_counters part{};
    CHECK(osp_stats(&part, sizeof part.chunk) == 0 && part.chunk == after.chunk && part.events == 0);
    CHECK(osp_stats(&part, sizeof part + 1) == -1 && osp_stats(nullptr, 0) == -1);
    CHECK(std::strcmp(osp_version(), "0.1.0") == 0);
}

void stubs() {
    Label a, b, out;
    out.words[0] = 77;
    std::vector<Label> row(1000);
    CHECK(!osp::speculating() && !osp::stub(a, b, out) && !osp::stub(row, std::span(row).first(3), row));
    osp::touch_write(out);
    osp::touch_write(row);
    osp::touch_read(row);
    CHECK(out.words[0] == 77 && row[999].words[1] == 2);
}

}  // namespace

int main() {
    objects();
    containers();
    limits();
    transfers();
    counters();
    stubs();
    osp_finish();
    return failures;
}
