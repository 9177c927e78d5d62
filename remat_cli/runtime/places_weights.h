/* Weights that lie in a file which is mapped, and are let go of while a model runs: a part of places.c. The kernel keeps
   them where it has room, and reads them again where it had none.

   Invariant: they are only read, so what is let go of comes back with the same bytes. What ops in parallel still read
   of it comes back too. */

#define MOST_AXES 64
#define LONGEST 4096 /* of a line that tells of a weight, or of a path */

typedef struct {
    char *name;
    int kind; /* of its elements, as ONNX counts them */
    size_t offset, bytes, rank;
    int64_t shape[MOST_AXES];
} Weight;

typedef struct {
    char *base;
    size_t bytes, most; /* that stay in memory, beside those of the op that runs */
    size_t then;        /* what there was of files when they were let go of last */
    Weight *stored;     /* of a file of places; else its user knows them */
    size_t count;
    void **values;      /* of ONNX Runtime, one for each, and who takes them back */
    void (*release)(void *);
} Weights;

/* Lets go of them if there are more in memory than may be. Under the lock, before each request: an op has ended. */
static void relieve(Weights *weights) {
    size_t now;
    if (!weights->base) return;
    now = mapped_bytes();
    if (now > weights->then && now - weights->then <= weights->most) return;
    if (now > weights->then) let_go(weights->base, weights->bytes);
    weights->then = mapped_bytes();
}

/* What a file of places says of them: "weights COUNT MOST FILE", and of each a line "KIND OFFSET BYTES RANK SIZES NAME". */

static int read_weight(FILE *file, Weight *found, size_t limit) {
    char line[LONGEST], *at = line, *end;
    long long numbers[4], size;
    size_t length;
    if (!fgets(line, sizeof line, file) || !(length = strlen(line)) || line[length - 1] != '\n') return 0;
    line[length - 1] = 0;
    for (int k = 0; k < 4; k++, at = end)
        if ((numbers[k] = strtoll(at, &end, 10)) < 0 || end == at) return 0;
    if (numbers[0] > 255 || numbers[3] > MOST_AXES || (uint64_t)numbers[1] > limit || (uint64_t)numbers[2] > limit - (size_t)numbers[1])
        return 0;
    *found = (Weight){NULL, (int)numbers[0], (size_t)numbers[1], (size_t)numbers[2], (size_t)numbers[3], {0}};
    for (size_t k = 0; k < found->rank; k++, at = end) {
        if ((size = strtoll(at, &end, 10)) < 0 || end == at) return 0;
        found->shape[k] = size;
    }
    if (*at != ' ' || !at[1] || !(found->name = malloc(strlen(at)))) return 0;
    memcpy(found->name, at + 1, strlen(at));
    return 1;
}

/* The file that lies beside another, whole. */
static char *map_beside(const char *path, const char *name, size_t *bytes) {
    char place[2 * LONGEST];
    const char *slash = strrchr(path, '/');
#if defined(_WIN32)
    const char *other = strrchr(path, '\\');
    if (other && (!slash || other > slash)) slash = other;
#endif
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    if (folder + strlen(name) >= sizeof place) return NULL;
    memcpy(place, path, folder);
    memcpy(place + folder, name, strlen(name) + 1);
    return map_file(place, bytes);
}

static void forget_weights(Weights *weights) {
    for (size_t k = 0; k < weights->count; k++) {
        if (weights->values && weights->values[k]) weights->release(weights->values[k]);
        free(weights->stored[k].name);
    }
    if (weights->stored && weights->base) unmap_file(weights->base, weights->bytes);
    free(weights->stored);
    free(weights->values);
    *weights = (Weights){0};
}

/* After the word "weights". Where their file is not there, nothing is let go of: ONNX Runtime says what it misses. */
static int read_weights(FILE *file, const char *path, Weights *found) {
    long long count, most;
    char line[LONGEST];
    size_t length;
    if (fscanf(file, "%lld %lld ", &count, &most) != 2 || count < 0 || most < 0 || count >= (1 << 24)) return 0;
    if (!fgets(line, sizeof line, file) || !(length = strlen(line)) || line[length - 1] != '\n') return 0;
    line[length - 1] = 0;
    *found = (Weights){0};
    found->most = (size_t)most;
    found->base = map_beside(path, line, &found->bytes);
    found->stored = calloc((size_t)count + 1, sizeof *found->stored);
    found->values = calloc((size_t)count + 1, sizeof *found->values);
    if (!found->stored || !found->values) return 0;
    for (; found->count < (size_t)count; found->count++)
        if (!read_weight(file, found->stored + found->count, found->base ? found->bytes : SIZE_MAX)) return 0;
    found->then = mapped_bytes();
    return 1;
}
