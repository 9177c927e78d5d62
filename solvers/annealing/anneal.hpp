// Simulated annealing over orders with repeats, first computes free.
//
// What counts is the cost, and so much for each byte over budget; how much is learnt on the way, so that the search goes
// to and fro between orders that fit and orders that nearly do.
#pragma once

#include "solvers/annealing/cooling.hpp"

namespace remat::annealing {

constexpr double CLEARING = 0.05;  // the part of draws of each kind that clears slots: it takes as long as 20 others

constexpr i64 NOTHING = i64(1) << 62;  // more bytes over budget than any order has

// The best order met, written down as seldom as may be: until then the changes since are kept in a journal.
//
// Invariant: while it is `unwritten`, the best order is the one that the state has come to, less the changes in the
// journal, and no compute has been spread anew since; else it stands in `steps`.
struct Record {
    Owned<Node, Step> steps;
    std::vector<Change> journal;
    Owned<Node, Slot> nodes;  // while an order is written down
    i64 excess = NOTHING, cost = 0, length = 0;
    bool unwritten = false;

    explicit Record(i64 slots) : steps(slots), nodes(slots) {}

    bool is_beaten_by(i64 over, i64 total) const { return over < excess || (over == excess && total < cost); }

    // The order that the state has come to is the best.
    void note_best(const State& s, i64 over) {
        excess = over;
        cost = s.total;
        length = s.steps;
        unwritten = true;
        journal.clear();
    }

    // The last move has led away from the best order.
    void note_change(const State& s) {
        if (!unwritten) return;
        const auto last = s.changes.first(s.logged);
        journal.insert(journal.end(), last.begin(), last.end());
        if (4 * static_cast<i64>(journal.size()) > nodes.size) write_down(s);
    }

    void write_down(const State& s) {
        if (!unwritten) return;
        std::copy(s.node_at.begin(), s.node_at.end(), nodes.begin());
        for (auto one = journal.rbegin(); one != journal.rend(); ++one) {
            if (exists(one->slot)) nodes[one->slot] = NONE;
            if (exists(one->was)) nodes[one->was] = one->node;
        }
        Step step{-1};
        for (Node node : nodes)
            if (exists(node)) steps[++step] = node;
        unwritten = false;
    }
};

// Move about as long as `cooling` says; the best order met.
inline Record descend(const Tables& t, State& s, Cooling cooling, Halt halt) {
    Record record(s.slots);
    i64 over = excess(s);
    const auto spread_anew = [&] {
        record.write_down(s);
        spread(t, s);
    };
    cooling.run(s, halt, spread_anew, [&](double temperature) {
        const i64 cost = s.total;
        attempt(t, s, cooling.price, CLEARING);
        if (s.logged) {
            const i64 now = excess(s);
            const double rise = static_cast<double>(s.total - cost) + cooling.price * static_cast<double>(now - over);
            if (rise <= 0 || s.random.uniform() < std::exp(-rise / temperature)) {
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
    return record;
}

// Move about as long as `cooling` says, and give the best order met and its bytes over budget back. The order ends with
// the node that reads the outputs; that is left out of the one given back. `peak`: as `loaded` says. `halt` is set
// when time is up.
inline std::tuple<Owned<Node, Step>, i64> anneal(const Arrays& arrays, Order order, i64 budget, i64 roof, i64 peak,
                                                 Cooling cooling, Kept kept, Halt halt) {
    const Tables t(arrays);
    i64 slots = slots_for(t, 2 * t.nodes());
    if (order.size > slots / GAP) slots = slots_for(t, 2 * (order.size - 1));
    State s = loaded(t, order, slots, {budget, roof}, peak, kept, cooling.seed);
    const Record record = descend(t, s, cooling, halt);
    const Order best = record.length ? Order(record.steps.first(record.length)) : order;
    return {Owned<Node, Step>(best.first(best.size - 1)), record.excess};
}

}  // namespace remat::annealing
