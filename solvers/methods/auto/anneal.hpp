// Simulated annealing over orders with repeats, first computes free.
//
// What counts is the cost, and so much for each byte over budget; how much is learnt on the way, so that the search goes
// to and fro between orders that fit and orders that nearly do.
#pragma once

#include "solvers/methods/auto/cooling.hpp"

namespace remat::annealing {

constexpr double CLEARING = 0.05;  // the part of draws of each kind that clears slots: it takes as long as 20 others

// The best order met, written down as seldom as may be: until then the changes since are kept in a journal.
//
// Invariant: while it is `unwritten`, the best order is the one that the state has come to, less the changes in the
// journal, and no compute has been spread anew since; else it stands in `steps`.
struct Record {
    Ints steps;
    Ints facts;  // bytes over budget, cost and length of the best order, whether it is to be written, changes since
    Ints journal;
    Ints nodes;  // of slots, while an order is written down

    template <class Visit>
    void fields(Visit visit) {
        visit(steps), visit(facts), visit(journal), visit(nodes);
    }

    i64& excess() const { return facts[0]; }
    i64& cost() const { return facts[1]; }
    i64& length() const { return facts[2]; }
    i64& unwritten() const { return facts[3]; }
    i64& changes() const { return facts[4]; }
    Change* change(i64 number) const { return reinterpret_cast<Change*>(journal.data) + number; }

    bool is_beaten_by(i64 over, i64 total) const { return over < excess() || (over == excess() && total < cost()); }

    // The order that the state has come to is the best.
    void note_best(const State& s, i64 over) const {
        excess() = over;
        cost() = s.total;
        length() = s.steps;
        unwritten() = 1;
        changes() = 0;
    }

    // The last move has led away from the best order.
    void note_change(const State& s) const {
        if (!unwritten()) return;
        std::copy(s.changes, s.changes + s.logged, change(changes()));
        changes() += s.logged;
        if (4 * changes() > nodes.size) write_down(s);
    }

    void write_down(const State& s) const {
        if (!unwritten()) return;
        std::copy(s.node_at, s.node_at + s.slots, nodes.begin());
        for (i64 number = changes() - 1; number >= 0; number--) {
            const Change& one = *change(number);
            if (one.slot >= 0) nodes[one.slot] = -1;
            if (one.was >= 0) nodes[one.was] = one.node;
        }
        i64 step = 0;
        for (i64 slot = 0; slot < s.slots; slot++)
            if (nodes[slot] >= 0) steps[step++] = nodes[slot];
        unwritten() = 0;
    }
};

// Move about as long as `priced` says. `reorder_only`: only the order changes. `halt` is set when time is up.
inline void anneal(Ints tables, Ints state, Record record, PricedCooling priced, bool reorder_only, Halt halt) {
    const Tables t(tables);
    State s(state, priced.cooling.seed);
    i64 over = excess(s);
    const auto spread_anew = [&] {
        record.write_down(s);
        spread(t, s);
    };
    priced.run(s, halt, spread_anew, [&](double heat) {
        const i64 cost = s.total;
        attempt(t, s, priced.price, reorder_only, CLEARING);
        if (s.logged) {
            const i64 now = excess(s);
            const double rise = static_cast<double>(s.total - cost) + priced.price * static_cast<double>(now - over);
            if (rise <= 0 || s.random.uniform() < std::exp(-rise / heat)) {
                over = now;
                if (record.is_beaten_by(over, s.total))
                    record.note_best(s, over);
                else
                    record.note_change(s);
            } else {
                undo(t, s, 0);
            }
        }
        return over == 0;
    });
    record.write_down(s);
}

inline void fill_state(Ints tables, Ints state, Ints order) {
    State s(state);
    fill(Tables(tables), s, order);
}

inline i64 excess_of_state(Ints state) {
    State s(state);
    return excess(s);
}

inline Owned<i64> order_of_state(Ints state) { return order_of(State(state)); }

}  // namespace remat::annealing
