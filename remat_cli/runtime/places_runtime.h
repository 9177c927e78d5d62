/* How ONNX Runtime hears of the allocator: a part of places.c. Its C API is a table of functions that only grows at its
   end.

   Invariant: once the environment lists the allocator, this library stays loaded to the end of the process. */

typedef struct OrtAllocator {
    uint32_t version; /* 17: no field beyond these is asked for */
    void *(*Alloc)(struct OrtAllocator *, size_t);
    void (*Free)(struct OrtAllocator *, void *);
    const void *(*Info)(const struct OrtAllocator *);
} OrtAllocator;
struct OrtApiBase { const void *const *(*GetApi)(uint32_t); const char *(*GetVersionString)(void); };
typedef void *(*CreateStatus)(int, const char *);
typedef void *(*CreateEnv)(int, const char *, void **);
typedef void *(*CreateCpuMemoryInfo)(int, int, void **);
typedef void *(*RegisterAllocator)(void *, OrtAllocator *);
typedef void *(*CreateTensor)(const void *, void *, size_t, const int64_t *, size_t, int, void **);
typedef void *(*AddInitializer)(void *, const char *, const void *);
typedef void (*ReleaseValue)(void *);
enum {
    CREATE_STATUS = 0, CREATE_ENV = 3, CREATE_TENSOR = 49, CREATE_CPU_MEMORY_INFO = 69, RELEASE_VALUE = 96,
    ADD_INITIALIZER = 150, REGISTER_ALLOCATOR = 176, API_VERSION = 17
};

static void *memory_info;
static const OrtApiBase *known_base; /* the one that the allocator was made known with */
static void *host_alloc(OrtAllocator *self, size_t size) { (void)self; return take(size, 0); }
static void host_free(OrtAllocator *self, void *address) { (void)self; give_back(address, 0); }
static const void *host_info(const OrtAllocator *self) { (void)self; return memory_info; }
static OrtAllocator host = {API_VERSION, host_alloc, host_free, host_info};

static void *registered(const void *const *api, int must_stay) {
    void *environment = NULL, *status = NULL;
    /* A session that fails takes its libraries with it, but the environment keeps the allocator: this code has to stay.
       What is linked into the program does anyway. */
    if (!keep_loaded(&host) && must_stay) return ((CreateStatus)api[CREATE_STATUS])(1, "the allocator's library cannot be kept loaded");
    status = ((CreateCpuMemoryInfo)api[CREATE_CPU_MEMORY_INFO])(0 /* device */, 0 /* default */, &memory_info);
    if (!status) status = ((CreateEnv)api[CREATE_ENV])(3, "remat", &environment);
    if (!status) status = ((RegisterAllocator)api[REGISTER_ALLOCATOR])(environment, &host);
    if (!status) mind_forks(&lock);
    return status;
}

static void *registered_once(const OrtApiBase *base, int must_stay) {
    static Lock once = LOCK_INIT;
    static int done;
    void *status = NULL;
    lock_it(&once);
    if (!done) status = registered(base->GetApi(API_VERSION), must_stay);
    done = !status;
    if (done && !known_base) known_base = base;
    unlock_it(&once);
    return status;
}

API OrtStatus *remat_places_register(const OrtApiBase *base) { return registered_once(base, 0); }

/* The memory is where the weights' file is mapped. Values are made once, whichever sessions read them. */
API OrtStatus *remat_places_weights(RematPlaces *places, const OrtApiBase *base, OrtSessionOptions *options) {
    Weights *weights = &places->weights;
    const void *const *api;
    void *status = NULL;
    if (!base) base = known_base;
    if (!weights->base || !memory_info || !base) return NULL;
    api = base->GetApi(API_VERSION);
    weights->release = (ReleaseValue)api[RELEASE_VALUE];
    for (size_t k = 0; k < weights->count && !status; k++) {
        Weight *one = weights->stored + k;
        if (!weights->values[k])
            status = ((CreateTensor)api[CREATE_TENSOR])(
                memory_info, weights->base + one->offset, one->bytes, one->shape, one->rank, one->kind, weights->values + k);
        if (!status) status = ((AddInitializer)api[ADD_INITIALIZER])(options, one->name, weights->values[k]);
    }
    return status;
}

/* The name by which a session's options find what a library registers. */
API void *RegisterCustomOps(void *options, const OrtApiBase *base) {
    (void)options;
    return registered_once(base, 1);
}
