/* Run a model of ONNX Runtime with every value at the place that was found for it, in one block of memory.

   `remat places MODEL.onnx` writes MODEL.places: the requests of a run, in order, each with its place.

       Ort::ThrowOnError(remat_places_register(OrtGetApiBase()));  once, after the environment was made
       options.AddConfigEntry("session.use_env_allocators", "1");  for each session that is to use the places
       RematPlaces *places = remat_places_open("model.places");
       Ort::ThrowOnError(remat_places_weights(places, OrtGetApiBase(), options));  before the session is made
       remat_places_begin(places);                                 around each run, on the thread that runs
       session.Run(...);
       remat_places_end();

   Results are the same with places and without, whatever a run asks for: a request that is not the one that was
   planned gets memory of its own, and remat_places_missed counts it. */

#ifndef REMAT_PLACES_H
#define REMAT_PLACES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct OrtApiBase OrtApiBase; /* as in onnxruntime_c_api.h */
typedef struct OrtStatus OrtStatus;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct RematPlaces RematPlaces;

/* Make the allocator known to the process's environment. NULL where that was done; else ONNX Runtime's own status. */
OrtStatus *remat_places_register(const OrtApiBase *base);

/* The places in a file; NULL if it cannot be read, is not whole, or there is no memory for the table. */
RematPlaces *remat_places_open(const char *path);

/* Have a session with these options read its weights in memory of the places, if they name a file of weights: runs then
   let go of them, and few of them are in memory at once. After remat_places_register, and before the session is made.
   The places must outlive the session. `base`: NULL for the one that the allocator was made known with, as in C#. NULL
   where that was done, or there is nothing to do; else ONNX Runtime's status. */
OrtStatus *remat_places_weights(RematPlaces *places, const OrtApiBase *base, OrtSessionOptions *options);

/* Before a run, on its thread. 0 if there is no memory for the block: the run goes on in memory of its own. */
int remat_places_begin(RematPlaces *places);

/* After it, on the same thread, whether it succeeded or failed. */
void remat_places_end(void);

/* Requests that were not the planned ones since the file was opened, and their bytes; both 0 if all is as planned. Of a
   run that asked for nothing at all, because its session has another allocator, all that was planned is counted. */
void remat_places_missed(RematPlaces *places, int64_t *requests, int64_t *bytes);

/* The bytes of the block. */
int64_t remat_places_block(const RematPlaces *places);

/* No run may be under way. Values of earlier runs that are still held stay as they are until they are given back. */
void remat_places_close(RematPlaces *places);

#ifdef __cplusplus
}

namespace remat {

/* The places of one model, closed at the end of their scope. */
class Places {
  public:
    explicit Places(const char *path) : places_(remat_places_open(path)) {}
    ~Places() { if (places_) remat_places_close(places_); }
    Places(const Places &) = delete;
    Places &operator=(const Places &) = delete;
    explicit operator bool() const { return places_ != nullptr; }
    RematPlaces *get() const { return places_; }

  private:
    RematPlaces *places_;
};

/* A run: from where it is made to the end of its scope, on one thread. */
class PlacedRun {
  public:
    explicit PlacedRun(const Places &places) { if (places) remat_places_begin(places.get()); }
    ~PlacedRun() { remat_places_end(); }
    PlacedRun(const PlacedRun &) = delete;
    PlacedRun &operator=(const PlacedRun &) = delete;
};

}  // namespace remat
#endif

#endif
