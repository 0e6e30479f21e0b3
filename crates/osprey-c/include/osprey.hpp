// Osprey for C++20: classes and containers in the content-oblivious region, and stubs for the speculative pass.
//
// What must hold: data of the region never decides an address or a branch, and one thread computes on it. A class that
// derives from osp::oblivious lives there when it is created by new or held by a std::vector with the default allocator.
// Failures to allocate throw osp::bad_alloc, which says why. Everything here is inline over osprey.h.
//
//     class Bit : public osp::oblivious { ... };     // one line in a library
//     std::vector<Bit> bits(1 << 20);                // in the region
//     osp::vector<Block> labels(n);                  // in the region, for classes that stay as they are
//     if (osp::stub(a, b, out)) return;              // first line of an operation that speculation leaves out
#ifndef OSPREY_HPP
#define OSPREY_HPP

#include "osprey.h"

#include <cstddef>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <ranges>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace osp {

// No room in the region; says why.
struct bad_alloc : std::bad_alloc {
    [[nodiscard]] const char* what() const noexcept override { return osp_error(); }
};

// Memory of the region. Throws osp::bad_alloc.
[[nodiscard]] inline void* allocate(std::size_t bytes, std::size_t align = alignof(std::max_align_t)) {
    void* memory = osp_alloc_aligned(bytes, align);
    if (!memory) throw bad_alloc();
    return memory;
}

// Base of classes whose objects live in the region. It is empty: objects keep their size and layout, unless their first
// member derives from it too, so annotate the innermost class. The paper calls it ContentObliviousStructureBase.
class oblivious {
public:
    static void* operator new(std::size_t bytes) { return allocate(bytes); }
    static void* operator new[](std::size_t bytes) { return allocate(bytes); }
    static void* operator new(std::size_t bytes, std::align_val_t align) { return allocate(bytes, std::size_t(align)); }
    static void* operator new[](std::size_t bytes, std::align_val_t align) { return allocate(bytes, std::size_t(align)); }
    static void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return osp_alloc(bytes); }
    static void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return osp_alloc(bytes); }
    static void* operator new(std::size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept {
        return osp_alloc_aligned(bytes, std::size_t(align));
    }
    static void* operator new[](std::size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept {
        return osp_alloc_aligned(bytes, std::size_t(align));
    }
    // Declared here because the others hide it: construction at a place.
    static void* operator new(std::size_t, void* place) noexcept { return place; }
    static void* operator new[](std::size_t, void* place) noexcept { return place; }

    // Only with sizes: the region keeps none.
    static void operator delete(void* memory, std::size_t bytes) noexcept { osp_free(memory, bytes); }
    static void operator delete[](void* memory, std::size_t bytes) noexcept { osp_free(memory, bytes); }
    static void operator delete(void* memory, std::size_t bytes, std::align_val_t) noexcept { osp_free(memory, bytes); }
    static void operator delete[](void* memory, std::size_t bytes, std::align_val_t) noexcept {
        osp_free(memory, bytes);
    }
};

// Whether objects of T belong into the region: classes derived from oblivious, and those it is specialised for.
template <class T>
struct is_oblivious : std::is_base_of<oblivious, T> {};

// Complete classes that belong into the region. A class that is still incomplete where a container of it is named is
// held as any other.
template <class T>
concept annotated = requires { sizeof(T); } && std::is_class_v<T> && is_oblivious<T>::value;

// Allocator of the region for any container. Stateless: all are equal.
template <class T>
class allocator {
public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using propagate_on_container_move_assignment = std::true_type;
    using is_always_equal = std::true_type;

    constexpr allocator() noexcept = default;
    template <class U>
    constexpr allocator(const allocator<U>&) noexcept {}

    [[nodiscard]] T* allocate(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
        constexpr std::size_t align = alignof(T) < alignof(std::max_align_t) ? alignof(std::max_align_t) : alignof(T);
        return static_cast<T*>(osp::allocate(count * sizeof(T), align));
    }
    void deallocate(T* memory, std::size_t count) noexcept { osp_free(memory, count * sizeof(T)); }

    template <class U>
    friend constexpr bool operator==(const allocator&, const allocator<U>&) noexcept {
        return true;
    }
};

// A vector in the region, of a class that stays as it is.
template <class T>
using vector = std::vector<T, allocator<T>>;

// The region for std::pmr containers: &osp::region().
class memory_resource : public std::pmr::memory_resource {
    void* do_allocate(std::size_t bytes, std::size_t align) override { return osp::allocate(bytes, align); }
    void do_deallocate(void* memory, std::size_t bytes, std::size_t) override { osp_free(memory, bytes); }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return dynamic_cast<const memory_resource*>(&other) != nullptr;
    }
};

// The one resource that is needed.
[[nodiscard]] inline memory_resource& region() {
    static memory_resource resource;
    return resource;
}

// Whether this process is a speculative pass.
[[nodiscard]] inline bool speculating() {
    static const bool is = osp_speculating() != 0;
    return is;
}

// One event of progress: in long stretches that neither allocate nor transfer, in every pass alike.
inline void tick() { osp_tick(); }

// Notes time, faults and bytes for the report.
inline void mark(const char* name) { osp_mark(name); }
inline void mark(const std::string& name) { osp_mark(name.c_str()); }

namespace detail {

// Objects up to this size lie on two pages at most, which their first and last bytes reach without a call.
inline constexpr std::size_t page = 4096;

inline void read(const void* data, std::size_t bytes) {
    if (bytes > page) return osp_touch_read(data, bytes);
    if (bytes == 0) return;
    const volatile char* at = static_cast<const char*>(data);
    (void)at[0];
    (void)at[bytes - 1];
}

inline void write(void* data, std::size_t bytes) {
    if (bytes > page || !speculating()) return osp_touch_write(data, bytes);
    if (bytes == 0) return;
    volatile char* at = static_cast<char*>(data);
    at[0] = 0;
    at[bytes - 1] = 0;
}

template <class T>
concept data = std::ranges::contiguous_range<T> && std::ranges::sized_range<T>;

}  // namespace detail

// Touches as a read of an object or of the elements of a contiguous range would.
template <class T>
void touch_read(const T& value) {
    if constexpr (detail::data<const T>) {
        detail::read(std::ranges::data(value), std::ranges::size(value) * sizeof(*std::ranges::data(value)));
    } else {
        detail::read(std::addressof(value), sizeof value);
    }
}

// Touches as a write of an object or of the elements of a contiguous range would. In a speculative pass their bytes are
// unspecified afterwards; elsewhere they stay.
template <class T>
void touch_write(T&& value) {
    using U = std::remove_reference_t<T>;
    if constexpr (detail::data<U>) {
        detail::write(std::ranges::data(value), std::ranges::size(value) * sizeof(*std::ranges::data(value)));
    } else {
        static_assert(std::is_trivially_copyable_v<U>, "only plain data can be overwritten by a stub");
        detail::write(std::addressof(value), sizeof value);
    }
}

// In a speculative pass: reads the operands in order, writes the result (the last argument), and returns true. Elsewhere
// only false. Operands and result are objects or contiguous ranges.
template <class... Args>
    requires(sizeof...(Args) >= 1)
[[nodiscard]] bool stub(Args&&... args) {
    if (!speculating()) return false;
    auto all = std::forward_as_tuple(args...);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        (touch_read(std::get<I>(all)), ...);
        touch_write(std::get<sizeof...(I)>(all));
    }(std::make_index_sequence<sizeof...(Args) - 1>{});
    return true;
}

}  // namespace osp

// What the paper does by template specialisation: containers of annotated classes allocate in the region, without a
// change where they are declared. It depends on a class of the program, as [namespace.std] asks.
template <class T>
    requires osp::annotated<T>
class std::allocator<T> : public osp::allocator<T> {
public:
    constexpr allocator() noexcept = default;
    template <class U>
    constexpr allocator(const std::allocator<U>&) noexcept {}
};

#endif
