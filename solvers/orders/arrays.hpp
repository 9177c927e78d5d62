// A problem as flat arrays: the struct of `arrays.py`, field for field.
#pragma once

#include "solvers/native/array.hpp"

namespace remat {

constexpr i64 NO_VIEW = -2;

// `x_at[i]` to `x_at[i + 1]` is where row i of x lies.
struct Arrays {
    Ints cost, workspace;
    Flags once, backward;
    Ints reads_at, reads, writes_at, writes;
    Ints view_of;        // for each place in `writes`: the base, RESIDENT or NO_VIEW
    Ints over_at, over;  // for each place in `writes`: the reads that it may overwrite
    Ints size, writer;
    Ints users_at, users;  // for each value: its readers, in order
    Flags output, optional;
    bool unread_stay;
    i64 resident;

    template <class Visit>
    void fields(Visit visit) {
        visit(cost), visit(workspace), visit(once), visit(backward), visit(reads_at), visit(reads), visit(writes_at);
        visit(writes), visit(view_of), visit(over_at), visit(over), visit(size), visit(writer), visit(users_at);
        visit(users), visit(output), visit(optional), visit(unread_stay), visit(resident);
    }

    i64 nodes() const { return cost.size; }
    i64 values() const { return size.size; }
    Ints reads_of(i64 node) const { return reads.slice(reads_at[node], reads_at[node + 1]); }
    Ints writes_of(i64 node) const { return writes.slice(writes_at[node], writes_at[node + 1]); }
    Ints users_of(i64 value) const { return users.slice(users_at[value], users_at[value + 1]); }
};

}  // namespace remat
