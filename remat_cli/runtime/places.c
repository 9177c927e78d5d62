/* An allocator for ONNX Runtime that knows the places: the k-th request of a run gets its place in one block of memory.

   remat_places.h says what programs call. The library registers with the process's environment; sessions with
   session.use_env_allocators = 1 then use it. Each run of a planned session stands between a begin and an end on its
   thread; all else is plain memory.

   Plans whose runs do not overlap share a block.

   Invariant: memory that is in use is never handed out, whatever is asked for and whenever it is given back. A request
   that is not the planned one, or whose place is still taken, gets memory of its own and is counted. */

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "places_system.h"

#include "remat_places.h"

#define ALIGNMENT 64
#define AHEAD 16              /* planned requests that may fail to come */
#define LATE 16               /* of those, how many may still come */
#define COARSE 256            /* what kernels work in is measured in multiples of this */
#define PATIENCE 16           /* runs that need less than half of a block before it goes */

#include "places_blocks.h"
#include "places_weights.h"

typedef struct { size_t size; int64_t offset; } Slot; /* offset -1: memory of its own */

typedef struct RematPlaces {
    Slot *slots;
    size_t count, bytes;
    Block *blocks;
    int64_t missed, missed_bytes;
    Weights weights;
    int on_device, closed, known; /* known: a whole run was as planned, so none need be written down any more */
    struct RematPlaces *next;
} Plan;

typedef struct { int64_t size; void *address; } Event; /* size -1: given back */

typedef struct {
    Plan *plan;
    Block *block, *spill;
    size_t at;
    size_t late[LATE]; /* slots that were passed over, the last first */
    size_t waiting;
    int64_t missed;    /* as it was when the run began */
    Event *events;     /* only while a run is traced */
    size_t count, room;
    int traced;
} Run;

static Lock lock = LOCK_INIT;
static Plan *plans;
static PER_THREAD Run *running; /* the runtime asks on the thread that called Run */

/* memory of the plan's own kind: the host's or a CUDA device's */
static int (*cuda_malloc)(void **, size_t);
static int (*cuda_free)(void *);

static void *own(int on_device, size_t size) {
    void *found = NULL;
    if (on_device) return cuda_malloc && !cuda_malloc(&found, size) ? found : NULL;
    return aligned(ALIGNMENT, size ? size : 1);
}

static void disown(int on_device, void *address) {
    if (!on_device) unaligned(address);
    else if (cuda_free) cuda_free(address);
}

/* blocks */

static Block *map_block(Plan *plan, size_t bytes, int spill) {
    Block *block = plan->on_device ? calloc(1, sizeof *block) : mapped_block(bytes, spill);
    if (!block) return NULL;
    if (plan->on_device) {
        block->bytes = bytes;
        block->base = own(1, bytes);
        if (!block->base) { free(block); return NULL; }
    }
    block->next = plan->blocks;
    plan->blocks = block;
    return block;
}

static void unmap_block(Plan *plan, Block *block) {
    if (plan->on_device) disown(1, block->base);
    else unmap_pages(block->mapped, block->length);
    free(block->live);
    free(block);
}

/* Blocks in use go with the last thing in them: spills at once, others when the plan is closed, and then the plan. */
static void sweep(Plan *plan) {
    Block **link = &plan->blocks;
    while (*link) {
        Block *block = *link;
        if (block->busy || block->count || !(block->spill || plan->closed)) { link = &block->next; continue; }
        *link = block->next;
        unmap_block(plan, block);
    }
    if (!plan->closed || plan->blocks) return;
    for (Plan **at = &plans; *at; at = &(*at)->next)
        if (*at == plan) { *at = plan->next; break; }
    forget_weights(&plan->weights);
    free(plan->slots);
    free(plan);
}

static int is_idle(const Plan *plan, const Block *block) {
    return !plan->on_device && !block->spill && !block->busy && !block->count;
}

/* Sessions that run one after another hold the block of the largest: an idle block of another plan that is large enough,
   the smallest such. Where there is none, idle ones go first, until as much memory is free as is wanted now. */
static Block *taken_over(Plan *plan) {
    Block **best = NULL, *found;
    size_t freed = 0;
    for (Plan *other = plans; other; other = other->next)
        for (Block **link = &other->blocks; *link; link = &(*link)->next)
            if (is_idle(other, *link) && (*link)->bytes >= plan->bytes && (!best || (*link)->bytes < (*best)->bytes))
                best = link;
    if (best) {
        found = *best;
        *best = found->next;
        found->next = plan->blocks;
        return plan->blocks = found;
    }
    for (Plan *other = plans; other && freed < plan->bytes; other = other->next)
        for (Block **link = &other->blocks; *link && freed < plan->bytes;) {
            found = *link;
            if (!is_idle(other, found)) { link = &found->next; continue; }
            freed += found->bytes;
            *link = found->next;
            unmap_block(other, found);
        }
    return NULL;
}

/* A block that was larger than needed for a while, after one large input say, makes room for one of the plan's size. */
static Block *fitted(Plan *plan, Block *block) {
    if (!block || plan->on_device || block->bytes / 2 <= plan->bytes) {
        if (block) block->lower = 0;
        return block;
    }
    if (block->lower++ < PATIENCE) return block;
    for (Block **link = &plan->blocks; *link; link = &(*link)->next)
        if (*link == block) { *link = block->next; break; }
    unmap_block(plan, block);
    return NULL;
}

/* requests */

static void note(Run *run, int64_t size, void *address) {
    if (run->count == run->room) {
        size_t room = run->room ? 2 * run->room : 4096;
        Event *more = realloc(run->events, room * sizeof *more);
        if (!more) return;
        run->events = more;
        run->room = room;
    }
    run->events[run->count++] = (Event){size, address};
}

static int fits(const Slot *slot, size_t size) {
    return slot->size == size || (slot->size % COARSE == 0 && slot->size - size < COARSE && size < slot->size);
}

static void pass_over(Run *run, size_t slot) {
    if (run->waiting < LATE) run->waiting++;
    memmove(run->late + 1, run->late, (run->waiting - 1) * sizeof *run->late);
    run->late[0] = slot;
}

/* The slot of a request: the next, one that was passed over, or one further on. A kernel may ask for what it works in
   in another order than was planned. */
static const Slot *slot_of(Run *run, size_t size) {
    const Plan *plan = run->plan;
    if (run->at < plan->count && fits(plan->slots + run->at, size)) return plan->slots + run->at++;
    for (size_t k = 0; k < run->waiting; k++) {
        const Slot *found = plan->slots + run->late[k];
        if (!fits(found, size)) continue;
        run->waiting--;
        memmove(run->late + k, run->late + k + 1, (run->waiting - k) * sizeof *run->late);
        return found;
    }
    for (size_t k = run->at; k < plan->count && k < run->at + AHEAD; k++) {
        if (!fits(plan->slots + k, size)) continue;
        while (run->at < k) pass_over(run, run->at++);
        return plan->slots + run->at++;
    }
    return NULL;
}

/* What has no place: it should take memory for as long as it is in use only. */
static void *apart(Run *run, size_t size) {
    void *found = NULL;
    if (run->plan->on_device || size < SMALL) return own(run->plan->on_device, size);
    if (!run->spill && (run->spill = map_block(run->plan, SPILL, 1))) run->spill->busy = 1;
    if (run->spill) found = spilled(run->spill, size);
    return found ? found : own(0, size);
}

static void *planned(Run *run, size_t size) {
    Plan *plan = run->plan;
    const Slot *slot = slot_of(run, size);
    if (slot && slot->offset < 0) return own(plan->on_device, size);
    if (slot) {
        size_t from = (size_t)slot->offset;
        if (claim(run->block, from, from + (size ? size : 1))) return run->block->base + from;
    }
    plan->missed++;
    plan->missed_bytes += (int64_t)size;
    return apart(run, size);
}

static void *take(size_t size, int on_device) {
    Run *run = running;
    void *found;
    if (!run) return own(on_device, size);
    if (run->plan->on_device != on_device) return own(on_device, size);
    lock_it(&lock);
    relieve(&run->plan->weights);
    found = run->block ? planned(run, size) : apart(run, size);
    if (run->traced) note(run, (int64_t)size, found);
    unlock_it(&lock);
    return found;
}

static void give_back(void *address, int on_device) {
    if (!address) return;
    lock_it(&lock);
    if (running && running->traced) note(running, -1, address);
    for (Plan *plan = plans; plan; plan = plan->next)
        for (Block *block = plan->blocks; block; block = block->next) {
            char *at = address;
            if (at < block->base || at >= block->base + block->bytes) continue;
            unclaim(block, at);
            sweep(plan);
            unlock_it(&lock);
            return;
        }
    unlock_it(&lock);
    disown(on_device, address);
}

/* what programs call */

/* A plan: sizes and offsets of a run's requests, and the bytes of its block. Count 0: nothing is planned yet. */
API void *remat_plan(const int64_t *sizes, const int64_t *offsets, size_t count, size_t bytes, int on_device) {
    Plan *plan = calloc(1, sizeof *plan);
    if (!plan || !(plan->slots = calloc(count ? count : 1, sizeof *plan->slots))) { free(plan); return NULL; }
    for (size_t k = 0; k < count; k++) plan->slots[k] = (Slot){(size_t)sizes[k], offsets[k]};
    plan->count = count;
    plan->bytes = bytes;
    plan->on_device = on_device;
    lock_it(&lock);
    plan->next = plans;
    plans = plan;
    unlock_it(&lock);
    return plan;
}

/* Weights that its runs read and may let go of, which stay mapped until it is closed: at most so many stay in memory. */
API void remat_weights(void *handle, void *base, size_t bytes, size_t most) {
    Plan *plan = handle;
    plan->weights.base = base;
    plan->weights.bytes = bytes;
    plan->weights.most = most;
    plan->weights.then = mapped_bytes();
}

/* No run may be under way; what callers still hold of it stays until they give it back. */
API void remat_close(void *handle) {
    Plan *plan = handle;
    lock_it(&lock);
    plan->closed = 1;
    sweep(plan);
    unlock_it(&lock);
}

/* Before a run, on its thread. NULL if there is no memory for the block: the run then goes on without. */
API void *remat_begin(void *handle) {
    Plan *plan = handle;
    Run *run = calloc(1, sizeof *run);
    if (!run) return NULL;
    run->plan = plan;
    run->traced = !plan->known;
    run->missed = plan->missed;
    if (plan->count && plan->bytes) {
        Block *empty = NULL, *held = NULL;
        lock_it(&lock);
        for (Block *block = plan->blocks; block; block = block->next) {
            if (block->busy || block->spill) continue;
            if (block->count) held = block;
            else empty = block;
        }
        if (!empty && !plan->on_device) empty = taken_over(plan);
        empty = fitted(plan, empty);
        if (!empty) empty = map_block(plan, plan->bytes, 0);
        if (empty && held && !plan->on_device) move_pages(held, empty);
        if (empty) empty->busy = 1;
        run->block = empty;
        unlock_it(&lock);
    }
    running = run;
    return run;
}

/* After it, on the same thread. Of a run that was not as planned the events are left for remat_events. */
API size_t remat_end(void) {
    Run *run = running;
    size_t count = run ? run->count : 0;
    running = NULL;
    if (!run) return 0;
    lock_it(&lock);
    if (run->block) {
        run->block->busy = 0;
        if (run->plan->missed == run->missed) { run->plan->known = 1; count = 0; }
    }
    if (run->spill) run->spill->busy = 0;
    sweep(run->plan);
    unlock_it(&lock);
    if (!count) { free(run->events); free(run); }
    return count;
}

/* What such a run asked for and gave back (size -1), in order; frees the run. */
API void remat_events(void *handle, int64_t *sizes, uint64_t *addresses) {
    Run *run = handle;
    for (size_t k = 0; k < run->count; k++) {
        sizes[k] = run->events[k].size;
        addresses[k] = (uint64_t)(uintptr_t)run->events[k].address;
    }
    free(run->events);
    free(run);
}

/* Requests that were not the planned ones since the plan was made, and their bytes. */
API void remat_missed(void *handle, int64_t *count, int64_t *bytes) {
    Plan *plan = handle;
    lock_it(&lock);
    *count = plan->missed;
    *bytes = plan->missed_bytes;
    unlock_it(&lock);
}

/* CUDA, not run so far: the runtime's library by path, and what the provider's gpu_external_alloc and _free take. */
API int remat_cuda(const char *path) {
    void *library = load(path);
    if (library) *(void **)&cuda_malloc = symbol(library, "cudaMalloc");
    if (library) *(void **)&cuda_free = symbol(library, "cudaFree");
    return cuda_malloc && cuda_free;
}
API void *remat_device_alloc(size_t size) { return take(size, 1); }
API void remat_device_free(void *address) { give_back(address, 1); }
API void remat_device_empty_cache(void) {}

#include "places_runtime.h"
#include "places_file.h"

#ifdef REMAT_PYTHON
/* Nothing to import: builders of Python extensions export this name. */
API void *PyInit__placed(void) { return NULL; }
#endif
