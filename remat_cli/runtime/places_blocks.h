/* Blocks of the host's memory, and what is in use in them: a part of places.c.

   A block has a place for every request that was planned. A spill is for those that were not: a range of addresses, one
   after another, that takes no memory but for what is in use. */

#define PAGE ((size_t)4096)
#define HUGE ((size_t)1 << 21)   /* pages that are cheap to touch first and to move */
#define SPILL ((size_t)1 << 38)  /* addresses, not memory */
#define SMALL ((size_t)1 << 14)  /* not worth pages of its own */

typedef struct { size_t from, to; } Range;          /* offsets in a block */

typedef struct Block {
    char *base;       /* at a multiple of HUGE within what was mapped */
    void *mapped;
    size_t length, bytes; /* mapped; of the block itself */
    size_t top;           /* of a spill: where the next request goes */
    int spill;
    Range *live;      /* sorted, apart from each other */
    size_t count, room;
    int busy;         /* a run is using it */
    int lower;        /* runs, one after another, that needed less than half of it */
    struct Block *next;
} Block;

/* With huge pages where it is to be full: NULL if there is no memory. */
static Block *mapped_block(size_t bytes, int spill) {
    Block *block = calloc(1, sizeof *block);
    if (!block) return NULL;
    block->bytes = bytes;
    block->spill = spill;
    block->length = bytes + HUGE;
    block->mapped = map_pages(block->length, spill);
    if (!block->mapped) { free(block); return NULL; }
    block->base = (char *)(((uintptr_t)block->mapped + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
    if (!spill) want_huge(block->base, bytes);
    return block;
}

static size_t find(const Block *block, size_t offset) { /* the first live range at or after the offset */
    size_t low = 0, high = block->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (block->live[middle].from < offset) low = middle + 1;
        else high = middle;
    }
    return low;
}

static int claim(Block *block, size_t from, size_t to) {
    size_t at = find(block, from);
    if (at < block->count && block->live[at].from < to) return 0;
    if (at && block->live[at - 1].to > from) return 0;
    if (block->count == block->room) {
        size_t room = block->room ? 2 * block->room : 256;
        Range *more = realloc(block->live, room * sizeof *more);
        if (!more) return 0;
        block->live = more;
        block->room = room;
    }
    memmove(block->live + at + 1, block->live + at, (block->count - at) * sizeof *block->live);
    block->live[at] = (Range){from, to};
    block->count++;
    return 1;
}

static void *spilled(Block *spill, size_t size) {
    size_t from = spill->top, length = (size + PAGE - 1) & ~(PAGE - 1);
    if (length > spill->bytes - from || !claim(spill, from, from + length)) return NULL;
    spill->top += length;
    return spill->base + from;
}

static void unclaim(Block *block, char *at) {
    size_t k = find(block, (size_t)(at - block->base));
    if (k == block->count || block->base + block->live[k].from != at) return;
    if (block->spill) let_go(at, block->live[k].to - block->live[k].from);
    memmove(block->live + k, block->live + k + 1, (block->count - k - 1) * sizeof *block->live);
    block->count--;
}

/* The pages of one block that hold nothing the caller still has become those of another at the same offsets: it costs
   no copy, and no memory is held twice. Only Linux can; elsewhere the other block is more memory. */
static void move_pages(Block *from, Block *to) {
#ifdef MREMAP_FIXED
    size_t bytes = from->bytes < to->bytes ? from->bytes : to->bytes, at = 0, end = (bytes + PAGE - 1) & ~(PAGE - 1);
    for (size_t k = 0; k <= from->count; k++) {
        size_t stop = k < from->count ? from->live[k].from & ~(PAGE - 1) : end;
        if (stop > end) stop = end; /* the other may be smaller */
        if (stop > at && mremap(from->base + at, stop - at, stop - at, MREMAP_MAYMOVE | MREMAP_FIXED, to->base + at)
                != MAP_FAILED)
            mmap(from->base + at, stop - at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (k < from->count) {
            size_t after = (from->live[k].to + PAGE - 1) & ~(PAGE - 1);
            if (after > at) at = after;
        }
    }
#else
    (void)from; (void)to;
#endif
}
