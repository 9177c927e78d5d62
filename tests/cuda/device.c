/* A CUDA device that has memory and does no arithmetic: the driver, the runtime, cuBLAS and cuDNN as far as onnxruntime's
   CUDA provider calls them. Memory is the host's, counted; copies are made; kernels are launched and do nothing.

   So what the provider does on the host is all real: which ops it takes and which go to the CPU, their order, copies
   between the two, what is asked of its arena and when it is given back, the external allocator, the trace. What is
   computed is not, and no time means anything. Large tensors cost nothing: nobody touches them.

   REMAT_DEVICE_BYTES: how much memory there is. REMAT_DEVICE_DRIVER: the version that the driver says it is. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define IDLE(name) API int name(void) { return 0; }
#define MAKES(name) API int name(void **made) { *made = &thing; return 0; }
#define OUT_OF_MEMORY 2
#define SCRATCH (1 << 20) /* what every convolution works in */

static int thing; /* a stream, an event, a handle: nobody looks into them */
static size_t used;

static size_t told(const char *name, size_t otherwise) {
    const char *said = getenv(name);
    return said ? strtoull(said, NULL, 10) : otherwise;
}
static size_t total(void) { return told("REMAT_DEVICE_BYTES", (size_t)80 << 30); }

/* memory: each block begins with its size, and is aligned as a device's is */

typedef struct { size_t size; char rest[248]; } Head;

API int cudaMalloc(void **found, size_t size) {
    void *head = NULL;
    *found = NULL;
    if (size > total() - __atomic_load_n(&used, __ATOMIC_SEQ_CST)) return OUT_OF_MEMORY;
    if (posix_memalign(&head, 256, sizeof(Head) + size)) return OUT_OF_MEMORY;
    ((Head *)head)->size = size;
    __atomic_add_fetch(&used, size, __ATOMIC_SEQ_CST);
    *found = (Head *)head + 1;
    return 0;
}
API int cudaFree(void *address) {
    Head *head = address ? (Head *)address - 1 : NULL;
    if (head) __atomic_sub_fetch(&used, head->size, __ATOMIC_SEQ_CST);
    free(head);
    return 0;
}
API int cudaFreeAsync(void *address, void *stream) { (void)stream; return cudaFree(address); }
API int cudaMallocFromPoolAsync(void **found, size_t size, void *pool, void *stream) {
    (void)pool, (void)stream;
    return cudaMalloc(found, size);
}
API int cudaMallocHost(void **found, size_t size) {
    return posix_memalign(found, 256, size ? size : 1) ? OUT_OF_MEMORY : 0;
}
API int cudaHostAlloc(void **found, size_t size, unsigned flags) { (void)flags; return cudaMallocHost(found, size); }
API int cudaFreeHost(void *address) { free(address); return 0; }
API int cudaMemGetInfo(size_t *there_is, size_t *in_all) {
    *in_all = total();
    *there_is = *in_all - __atomic_load_n(&used, __ATOMIC_SEQ_CST);
    return 0;
}
API int cudaMemPoolGetAttribute(void *pool, int which, uint64_t *value) { (void)pool, (void)which; *value = used; return 0; }
API int cudaMemcpy(void *to, const void *from, size_t size, int kind) {
    (void)kind;
    memmove(to, from, size);
    return 0;
}
API int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
    (void)stream;
    return cudaMemcpy(to, from, size, kind);
}
API int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t at, int kind) {
    (void)symbol, (void)at, (void)kind;
    memset(to, 0, size);
    return 0;
}

/* the device: an H100 */

API int cuInit(unsigned flags) { (void)flags; return 0; }
API int cuDeviceGetCount(int *count) { *count = 1; return 0; }
API int cuDeviceGetName(char *name, int size, int device) { (void)device; strncpy(name, "memory only (H100)", size); return 0; }
API int cuDriverGetVersion(int *version) { *version = (int)told("REMAT_DEVICE_DRIVER", 13000); return 0; }
API int cudaDriverGetVersion(int *version) { return cuDriverGetVersion(version); }
API int cudaRuntimeGetVersion(int *version) { *version = 13000; return 0; }
API int cudaGetDeviceCount(int *count) { *count = 1; return 0; }
API int cudaGetDevice(int *device) { *device = 0; return 0; }
API int cudaDeviceGetAttribute(int *value, int which, int device) {
    static const int known[][2] = {{1, 1024}, {8, 49152}, {10, 32}, {16, 132}, {39, 2048}, {75, 9}, {76, 0}, {97, 232448}};
    (void)device;
    *value = 0;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k][0] == which) *value = known[k][1];
    return 0;
}
API int cudaGetDeviceProperties(char *of, int device) { /* the fields that are asked for, where CUDA 13 has them */
    static const int limits[] = {1024, 1024, 64, 2147483647, 65535, 65535};
    (void)device;
    memset(of, 0, 1008);
    strcpy(of, "memory only (H100)");
    *(size_t *)(of + 288) = total();
    *(size_t *)(of + 296) = 49152; /* shared memory of a block */
    *(int *)(of + 304) = 65536;    /* registers of a block */
    *(int *)(of + 308) = 32;       /* threads of a warp */
    *(int *)(of + 320) = 1024;     /* threads of a block */
    memcpy(of + 324, limits, sizeof limits);
    *(int *)(of + 360) = 9;        /* 9.0 */
    *(int *)(of + 384) = 132;      /* multiprocessors */
    *(int *)(of + 604) = 2048;     /* threads of one */
    *(size_t *)(of + 672) = 232448;
    return 0;
}
API const char *cudaGetErrorName(int error) { return error == OUT_OF_MEMORY ? "cudaErrorMemoryAllocation" : "cudaError"; }
API const char *cudaGetErrorString(int error) { return error == OUT_OF_MEMORY ? "out of memory" : "error"; }

/* streams, events, kernels */

MAKES(cudaStreamCreate)
API int cudaStreamCreateWithFlags(void **made, unsigned flags) { (void)flags; return cudaStreamCreate(made); }
API int cudaStreamIsCapturing(void *stream, int *status) { (void)stream; *status = 0; return 0; }
MAKES(cudaEventCreate)
API int cudaEventCreateWithFlags(void **made, unsigned flags) { (void)flags; return cudaEventCreate(made); }
API int cudaEventElapsedTime(float *ms, void *from, void *to) { (void)from, (void)to; *ms = 1; return 0; }
API int cudaPointerGetAttributes(void *of, const void *address) { (void)address; memset(of, 0, 32); return 0; }
API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks) { *blocks = 2; return 0; }
API void **__cudaRegisterFatBinary(void *binary) { (void)binary; return (void **)&thing; }
MAKES(cudaMemPoolCreate)

/* cuBLAS */

MAKES(cublasCreate_v2)
MAKES(cublasLtCreate)
MAKES(cublasLtMatmulDescCreate)
MAKES(cublasLtMatrixLayoutCreate)
MAKES(cublasLtMatmulPreferenceCreate)
MAKES(cublasLtMatrixTransformDescCreate)
API int cublasGetMathMode(void *handle, int *mode) { (void)handle; *mode = 0; return 0; }
API const char *cublasGetStatusName(int status) { (void)status; return "cublas"; }
API const char *cublasGetStatusString(int status) { (void)status; return "cublas"; }
API int cublasLtMatmulAlgoGetHeuristic(
    void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference, int asked, void *found, int *count) {
    (void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d, (void)preference, (void)asked;
    memset(found, 0, 96);
    *count = 1;
    return 0;
}

/* cuDNN: of every convolution there is one engine, that works in SCRATCH bytes */

enum { FOUND = 202, ENGINE = 300, WORKSPACE = 303, SHARED_MEMORY = 304, CONFIG = 401, PLAN_WORKSPACE = 402, NUMBER = 1301 };

API size_t cudnnGetVersion(void) { return 91701; }
API const char *cudnnGetErrorString(int status) { (void)status; return "cudnn"; }
API void cudnnGetLastErrorString(char *words, size_t size) { if (size) *words = 0; }
API int cudnnBackendCreateDescriptor(int type, void **made) { (void)type; return (*made = calloc(1, 64)) ? 0 : 1; }
API int cudnnBackendDestroyDescriptor(void *made) { free(made); return 0; }
API int cudnnBackendGetAttribute(void *of, int which, int type, int64_t asked, int64_t *count, void *values) {
    (void)of, (void)type, (void)asked;
    if (values && (which == WORKSPACE || which == PLAN_WORKSPACE)) *(int64_t *)values = SCRATCH;
    if (values && which == NUMBER) *(int64_t *)values = 0;
    if (values && which == SHARED_MEMORY) *(int32_t *)values = 0;
    if (count) *count = which == FOUND || which == ENGINE || which == WORKSPACE || which == SHARED_MEMORY || which == CONFIG ||
             which == PLAN_WORKSPACE || which == NUMBER;
    return 0;
}
API int cudnnGetReductionWorkspaceSize(void *h, void *r, void *a, void *c, size_t *size) {
    (void)h, (void)r, (void)a, (void)c;
    *size = 4096;
    return 0;
}
API int cudnnGetReductionIndicesSize(void *h, void *r, void *a, void *c, size_t *size) {
    (void)h, (void)r, (void)a, (void)c;
    *size = 0;
    return 0;
}
API int cudnnGetStream(void *handle, void **stream) { (void)handle; *stream = &thing; return 0; }
MAKES(cudnnCreate)
MAKES(cudnnCreateActivationDescriptor)
MAKES(cudnnCreateConvolutionDescriptor)
MAKES(cudnnCreateDropoutDescriptor)
MAKES(cudnnCreateFilterDescriptor)
MAKES(cudnnCreateLRNDescriptor)
MAKES(cudnnCreatePoolingDescriptor)
MAKES(cudnnCreateReduceTensorDescriptor)
MAKES(cudnnCreateTensorDescriptor)
API int cudnnDropoutGetStatesSize(void *handle, size_t *size) { (void)handle; *size = 1024; return 0; }

#include "idle.h"
