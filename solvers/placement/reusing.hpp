// onnxruntime's static free list: see reusing.py.
#pragma once

#include <vector>

#include "solvers/native/array.hpp"

namespace remat::placement {

// The buffer of each tenant. `events`: tenants in the order in which they begin and end, `~tenant` for an end. `shape`:
// what a buffer and a tenant must have in common; below 0 for a tenant that neither takes a dead buffer nor leaves one.
inline Owned<i64> take_buffers(Ints events, Ints shape) {
    Owned<i64> buffer(shape.size, -1);
    std::vector<std::vector<i64>> waiting(static_cast<std::size_t>(shape.size));
    i64 count = 0;
    for (const i64 event : events) {
        const i64 tenant = event < 0 ? ~event : event;
        require(tenant < shape.size && shape[tenant] < shape.size, "a tenant or a shape that there is not");
        const i64 kind = shape[tenant];
        if (event < 0) {
            if (kind >= 0) waiting[kind].push_back(buffer[tenant]);
        } else if (kind >= 0 && !waiting[kind].empty()) {
            buffer[tenant] = waiting[kind].back();
            waiting[kind].pop_back();
        } else {
            buffer[tenant] = count++;
        }
    }
    return buffer;
}

}  // namespace remat::placement
