/* What the operating system gives: locks, memory by the page, libraries that stay loaded. A part of places.c.

   Invariant: where a system cannot do a thing, its function says so, and the caller has a second way. */

#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#include <malloc.h>
#include <windows.h>

#define API __declspec(dllexport)
#if defined(_MSC_VER)
#define PER_THREAD __declspec(thread)
#else
#define PER_THREAD _Thread_local
#endif

typedef SRWLOCK Lock;
#define LOCK_INIT SRWLOCK_INIT
static void lock_it(Lock *lock) { AcquireSRWLockExclusive(lock); }
static void unlock_it(Lock *lock) { ReleaseSRWLockExclusive(lock); }

static void *aligned(size_t alignment, size_t size) { return _aligned_malloc(size, alignment); }
static void unaligned(void *address) { _aligned_free(address); }

/* Memory of whole pages, all zero. `sparse`: addresses that take memory only where they are used; not to be had here. */
static void *map_pages(size_t bytes, int sparse) {
    return sparse ? NULL : VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}
static void unmap_pages(void *address, size_t bytes) { (void)bytes; VirtualFree(address, 0, MEM_RELEASE); }
static void want_huge(void *address, size_t bytes) { (void)address; (void)bytes; }
static void let_go(void *address, size_t bytes) { (void)address; (void)bytes; }

/* A file's bytes, only to be read; NULL if there is no such file. What is let go of stays in memory here. */
static void *map_file(const char *path, size_t *bytes) {
    LARGE_INTEGER size;
    void *found = NULL;
    HANDLE made, file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE) return NULL;
    made = GetFileSizeEx(file, &size) ? CreateFileMappingA(file, NULL, PAGE_READONLY, 0, 0, NULL) : NULL;
    if (made) found = MapViewOfFile(made, FILE_MAP_READ, 0, 0, 0);
    if (made) CloseHandle(made);
    CloseHandle(file);
    *bytes = found ? (size_t)size.QuadPart : 0;
    return found;
}
static void unmap_file(void *address, size_t bytes) { (void)bytes; UnmapViewOfFile(address); }
static size_t mapped_bytes(void) { return 0; }

static int keep_loaded(const void *inside) {
    HMODULE module;
    return GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, inside, &module);
}
static void *load(const char *name) { return (void *)LoadLibraryA(name); }
static void *symbol(void *library, const char *name) { return (void *)GetProcAddress((HMODULE)library, name); }
static void mind_forks(Lock *lock) { (void)lock; }

#else

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define PER_THREAD _Thread_local

typedef pthread_mutex_t Lock;
#define LOCK_INIT PTHREAD_MUTEX_INITIALIZER
static void lock_it(Lock *lock) { pthread_mutex_lock(lock); }
static void unlock_it(Lock *lock) { pthread_mutex_unlock(lock); }

static void *aligned(size_t alignment, size_t size) {
    void *found = NULL;
    return posix_memalign(&found, alignment, size) ? NULL : found;
}
static void unaligned(void *address) { free(address); }

static void *map_pages(size_t bytes, int sparse) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *found;
#ifdef MAP_NORESERVE
    if (sparse) flags |= MAP_NORESERVE;
#else
    if (sparse) return NULL;
#endif
    found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return found == MAP_FAILED ? NULL : found;
}
static void unmap_pages(void *address, size_t bytes) { munmap(address, bytes); }
static void want_huge(void *address, size_t bytes) {
#ifdef MADV_HUGEPAGE
    madvise(address, bytes, MADV_HUGEPAGE);
#else
    (void)address; (void)bytes;
#endif
}
static void let_go(void *address, size_t bytes) { madvise(address, bytes, MADV_DONTNEED); }

static void *map_file(const char *path, size_t *bytes) {
    struct stat about;
    void *found = MAP_FAILED;
    int file = open(path, O_RDONLY);
    if (file < 0) return NULL;
    if (!fstat(file, &about) && about.st_size > 0) found = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    *bytes = found == MAP_FAILED ? 0 : (size_t)about.st_size;
    return found == MAP_FAILED ? NULL : found;
}
static void unmap_file(void *address, size_t bytes) { munmap(address, bytes); }

/* What the process has in memory of files that are mapped; 0 where the system does not tell. */
static size_t mapped_bytes(void) {
    char said[64] = "";
    unsigned long long pages, resident, shared;
    int file = open("/proc/self/statm", O_RDONLY);
    if (file < 0) return 0;
    if (read(file, said, sizeof said - 1) < 0) said[0] = 0;
    close(file);
    return sscanf(said, "%llu %llu %llu", &pages, &resident, &shared) == 3 ? (size_t)shared * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static int keep_loaded(const void *inside) {
    Dl_info here;
    return dladdr(inside, &here) && dlopen(here.dli_fname, RTLD_NOW | RTLD_NODELETE);
}
static void *load(const char *name) { return dlopen(name, RTLD_NOW); }
static void *symbol(void *library, const char *name) { return dlsym(library, name); }

/* A child of fork has the lock as the parent's other threads left it. */
static Lock *at_fork;
static void before_fork(void) { lock_it(at_fork); }
static void after_fork(void) { unlock_it(at_fork); }
static void mind_forks(Lock *lock) {
    at_fork = lock;
    pthread_atfork(before_fork, after_fork, after_fork);
}

#endif
