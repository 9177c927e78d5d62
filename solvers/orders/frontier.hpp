// What a search over a graph has met, and what it has still to look at: the last first.
#pragma once

#include "solvers/native/array.hpp"

namespace remat::orders {

// The memory of one search after the other.
template <class At>
class Frontier {
  public:
    explicit Frontier(i64 count) : met_(count, 0), waiting_(count) {}

    struct Search {
        const Array<i64, At> met;
        const Array<At> waiting;
        const i64 number;
        i64 count = 0;

        bool has_met(At one) const { return met[one] == number; }
        // Note that this one is met. Returns whether it was not before.
        bool meet(At one) {
            if (has_met(one)) return false;
            met[one] = number;
            return true;
        }

        bool is_over() const { return count == 0; }
        void put(At one) { waiting[count++] = one; }
        At next() const { return waiting[count - 1]; }
        At take() { return waiting[--count]; }
    };

    Search start() { return {met_, waiting_, ++number_}; }

  private:
    Owned<i64, At> met_;  // the number of the last search that met it
    Owned<At> waiting_;
    i64 number_ = 0;
};

}  // namespace remat::orders
