/* Osprey: memory programming. Generated from crates/osprey-c/src/lib.rs; do not edit.
 *
 * Data that never decides an address or a branch (labels, shares, ciphertexts) lives in the content-oblivious region,
 * which `osprey run` pages by a trace of a speculative pass. Without the launcher the region is ordinary memory. One
 * thread computes on it; docs/osprey/c-api.md has the rules. Functions that fail return null or -1, with errno set. */
#ifndef OSPREY_H
#define OSPREY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counters of this process, as `osp_stats` gives them. Later versions add fields at the end. */
struct osp_counters {
    /* Bytes per chunk: what is paged at once. */
    uint64_t chunk;
    /* Chunks that may be resident at once; 0 when unbounded. */
    uint64_t frames;
    /* Most chunks of the region that held data at once. */
    uint64_t peak_chunks;
    /* Bytes read from the spill file. */
    uint64_t bytes_read;
    /* Bytes written to it. */
    uint64_t bytes_written;
    /* Chunks dropped without a write because nothing in them was allocated any more. */
    uint64_t dropped_dead;
    /* Chunks dropped without a write because they were as on disk. */
    uint64_t dropped_clean;
    /* Chunks made resident without a read because they held nothing yet. */
    uint64_t first_touches;
    /* Faults on chunks held back on purpose, to learn how far the program is. */
    uint64_t key_faults;
    /* Faults that the program waited for because a chunk was not there in time. */
    uint64_t stalls;
    /* Entries of the trace: written when speculating, used when programmed. */
    uint64_t trace_entries;
    /* Allocations, releases, ticks, and transfers of the region, so far. */
    uint64_t events;
    /* Hash over all allocations and releases: equal in every pass of an oblivious program. */
    uint64_t allocation_hash;
    /* Seconds spent planning. */
    double plan_s;
    /* CPU seconds of the pager's thread. */
    double pager_cpu_s;
};

/* Version of the library, as "0.1.0". Never null, valid for ever. */
const char *osp_version(void);

/* What failed last in this thread, in words; empty before the first failure. Valid until the next call
 * that fails. */
const char *osp_error(void);

/* Reads the settings that `osprey run` left in the environment and prepares the region. Idempotent. 0, or
 * -1 (EINVAL) when they are out of range or this machine cannot follow them. Whatever else is called first
 * does the same, but ends the process with code 69 and the reason on standard error where this function
 * would give -1. */
int osp_init(void);

/* Memory of the region, as of malloc: aligned to 16 bytes, content unspecified. What is stored there must
 * never decide an address or a branch. `bytes` may be 0. Null when the region is full (ENOMEM). */
void *osp_alloc(size_t bytes);

/* As `osp_alloc`, aligned to `align` bytes: a power of two up to 4096, otherwise null (EINVAL). */
void *osp_alloc_aligned(size_t bytes, size_t align);

/* Takes memory of the region back: `ptr` from `osp_alloc` or `osp_alloc_aligned` and the bytes asked for
 * there. Null is ignored. */
void osp_free(void *ptr, size_t bytes);

/* 1 when `ptr` lies in the region, 0 elsewhere. */
int osp_owns(const void *ptr);

/* 1 in a speculative pass, 0 elsewhere. There a program leaves out cryptography and connections, and
 * touches what they would have touched. */
int osp_speculating(void);

/* One event of progress, for stretches of a program that neither allocate nor transfer. In every pass
 * alike. */
void osp_tick(void);

/* Notes time, faults and bytes under a name for the report ("start" and "stop" frame what `osprey bench`
 * measures). */
void osp_mark(const char *name);

/* Counts as a read of `bytes` bytes at `ptr`: what a stub does for the operands of an operation left out.
 * A speculative pass notes their chunks and looks at no byte; the others read one byte of every page.
 * Nothing where `ptr` is outside the region. */
void osp_touch_read(const void *ptr, size_t bytes);

/* Counts as a write of `bytes` bytes at `ptr`: what a stub does for the result of an operation left out. A
 * speculative pass notes their chunks and changes no byte; the others write one byte of every page, with
 * the value that it has. Nothing where `ptr` is outside the region. */
void osp_touch_write(void *ptr, size_t bytes);

/* As send(2), but of all `bytes`: short counts and interrupts are gone over, SIGPIPE is not raised.
 * `bytes`, or -1 and errno. In a speculative pass it only counts as a read of them and returns `bytes`.
 * Counts as an event where `buf` lies in the region, as all transfers here. */
ssize_t osp_send(int fd, const void *buf, size_t bytes, int flags);

/* As recv(2), but until `bytes` have come or the stream has ended: `bytes`, fewer at its end, or -1 and
 * errno. In a speculative pass it only counts as a write of them and returns `bytes`. MSG_PEEK, which
 * would give the same bytes again for every part, is an error in every pass (EINVAL). */
ssize_t osp_recv(int fd, void *buf, size_t bytes, int flags);

/* As read(2), but until `bytes` have come or the file has ended. Otherwise as `osp_recv`. */
ssize_t osp_read(int fd, void *buf, size_t bytes);

/* As write(2), but of all `bytes`. Otherwise as `osp_send`. */
ssize_t osp_write(int fd, const void *buf, size_t bytes);

/* As fread: whole elements that came. In a speculative pass it only counts as a write of them and returns
 * `count`; `file` may be null there. The paper's speculative_fread. */
size_t osp_fread(void *buf, size_t size, size_t count, FILE *file);

/* As fwrite: whole elements that went. In a speculative pass it only counts as a read of them and returns
 * `count`; `file` may be null there. The paper's speculative_fwrite. */
size_t osp_fwrite(const void *buf, size_t size, size_t count, FILE *file);

/* The counters so far, into the first `bytes` bytes of `*out`: pass `sizeof *out`. 0, or -1 (EINVAL) when
 * that is more than this version has. */
int osp_stats(struct osp_counters *out, size_t bytes);

/* Ends the pass: the trace is completed, the report written. Idempotent, and called at exit; nothing of
 * the region may be used after it. */
void osp_finish(void);

#ifdef __cplusplus
}
#endif

#endif
