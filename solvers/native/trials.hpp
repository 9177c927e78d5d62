// What only tests call: parts of the loops by themselves.
#pragma once

#include "solvers/native/random.hpp"
#include "solvers/orders/heap.hpp"

namespace remat::trials {

// What the generator draws: integers below a bound, or with the bound 0 numbers from 0 to 1.
inline Owned<double> drawn(i64 seed, i64 count, i64 bound) {
    Random random(seed);
    Owned<double> found(count);
    for (double& one : found) one = bound ? static_cast<double>(random.below(bound)) : random.uniform();
    return found;
}

// Values put into a heap with a key each, or taken out where the key is below 0. Returns which was first after each, or
// -1 for an empty heap.
inline Owned<i64> least_first(i64 count, Ints values, Floats keys) {
    orders::Heap heap(count);
    Owned<i64> found(values.size);
    for (i64 step = 0; step < values.size; step++) {
        if (keys[step] >= 0)
            heap.put(values[step], keys[step]);
        else
            heap.take_out(values[step]);
        found[step] = heap.count() ? heap.item(0) : -1;
    }
    return found;
}

}  // namespace remat::trials
