/* A file of places, and what programs in C, C++ and C# call: a part of places.c, which remat_places.h describes.

   Invariant: a file that is not whole, or says what cannot be, opens as NULL. */

#define MOST_REQUESTS ((long long)1 << 32)

static int read_table(FILE *file, int64_t *sizes, int64_t *offsets, size_t count, int64_t block) {
    for (size_t k = 0; k < count; k++) {
        long long size, offset;
        if (fscanf(file, "%lld %lld", &size, &offset) != 2) return 0;
        if (size < 0 || offset < -1 || (offset >= 0 && (offset % ALIGNMENT || size > block || offset > block - size)))
            return 0;
        sizes[k] = size;
        offsets[k] = offset;
    }
    return 1;
}

API RematPlaces *remat_places_open(const char *path) {
    RematPlaces *found = NULL;
    long long block, count;
    int64_t *sizes = NULL, *offsets = NULL;
    char end[8] = "";
    Weights weights = {0};
    int whole = 1;
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    if (fscanf(file, "remat-places 1 block %lld requests %lld", &block, &count) == 2 && block >= 0 && count >= 0
            && count < MOST_REQUESTS && (uint64_t)count < SIZE_MAX / sizeof *sizes) {
        sizes = malloc(((size_t)count + 1) * sizeof *sizes);
        offsets = malloc(((size_t)count + 1) * sizeof *offsets);
        if (sizes && offsets && read_table(file, sizes, offsets, (size_t)count, block)
                && fscanf(file, "%7s", end) == 1) {
            if (!strcmp(end, "weights")) whole = read_weights(file, path, &weights) && fscanf(file, "%7s", end) == 1;
            if (whole && !strcmp(end, "end"))
                found = remat_plan(sizes, offsets, (size_t)count, (size_t)block, 0);
        }
    }
    if (found) {
        found->known = 1; /* nothing is written down of its runs: the file is what there is */
        found->weights = weights;
    } else forget_weights(&weights);
    free(sizes);
    free(offsets);
    fclose(file);
    return found;
}

API int remat_places_begin(RematPlaces *places) {
    Run *run = remat_begin(places);
    return run && (run->block || !places->bytes);
}

/* A run that asked for nothing has another allocator: all that was planned is counted as missed. */
API void remat_places_end(void) {
    Run *run = running;
    RematPlaces *places = run ? run->plan : NULL;
    int none = run && places->count && !run->at && places->missed == run->missed;
    remat_end();
    if (!none) return;
    lock_it(&lock);
    places->missed += (int64_t)places->count;
    for (size_t k = 0; k < places->count; k++) places->missed_bytes += (int64_t)places->slots[k].size;
    unlock_it(&lock);
}

API void remat_places_missed(RematPlaces *places, int64_t *requests, int64_t *bytes) {
    remat_missed(places, requests, bytes);
}

API int64_t remat_places_block(const RematPlaces *places) { return (int64_t)places->bytes; }

API void remat_places_close(RematPlaces *places) { remat_close(places); }
