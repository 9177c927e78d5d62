// Simulated annealing over what is recomputed when, the order of first computes kept.
//
// A move runs a node again before one of its readers, perhaps with what it reads, and then drops runs that have become
// unnecessary or for which there is now room. No move may raise the bytes over budget.
#pragma once

#include "solvers/methods/exact/runs.hpp"
#include "solvers/native/cooling.hpp"
#include "solvers/native/random.hpp"

namespace remat::exact {

class Annealing {
  public:
    Annealing(Ints tables, Ints state, Ints best_keys, Ints best, const Cooling& cooling)
        : t(tables), s(t, state), best_keys_(best_keys), best_(best), cooling_(cooling), random_(cooling.seed) {}

    // Move about. Returns the moves made.
    i64 run() {
        i64 made = 0;
        cooling_.run(Halt(), [&](i64, double temperature) {
            cost_ = s.total;
            over_ = s.excess;
            logged_ = 0;
            if (!move()) return;
            if (is_taken(temperature)) {
                made += 1;
                keep_best();
            } else {
                undo(0);
            }
        });
        return made;
    }

  private:
    static constexpr i64 LOG = 64;  // changes in one move, at most

    // Make one move. Returns false where there is nothing to try.
    bool move() {
        const i64 step = random_.below(s.steps), key = s.keys[step];
        const i64 node = s.node_of(key), stage = s.stage_of(key);
        const bool adding = node == stage || random_.uniform() < 0.5;
        if (!adding) {
            if (over_ == 0 && !has_room(node, stage)) return false;
            drop(node, stage);
            drop_others(step, random_.below(3));
            return true;
        }
        const Tables::Row reads = t.reads_of(node);
        if (reads.size == 0) return false;
        const i64 low = compute_again(reads[random_.below(reads.size)], key);
        if (low < 0) return false;
        drop_others(low, 1 + random_.below(6));
        return true;
    }

    // Drop other runs from a step on, for which there is room.
    void drop_others(i64 low, i64 tries) {
        for (; tries && logged_ < LOG - 8; tries--) {
            low = std::min(low, s.steps - 1);
            const i64 key = s.keys[low + random_.below(s.steps - low)];
            const i64 node = s.node_of(key), stage = s.stage_of(key);
            if (node == stage || is_logged(key)) continue;
            const i64 excess = s.excess, kept = logged_;
            if (excess == 0 && !has_room(node, stage)) continue;
            drop(node, stage);
            if (s.excess > std::max(excess, over_)) undo(kept);
        }
    }

    bool is_logged(i64 key) const { return std::find(log_, log_ + logged_, key) != log_ + logged_; }

    bool is_taken(double temperature) {
        if (s.excess != over_) return s.excess < over_;
        const i64 rise = s.total - cost_;
        return rise <= 0 || random_.uniform() < std::exp(static_cast<double>(-rise) / temperature);
    }

    void keep_best() {
        if (s.excess != 0 || s.total >= best_[0]) return;
        best_[0] = s.total;
        best_[1] = s.steps;
        std::copy(s.keys, s.keys + s.steps, best_keys_.begin());
    }

    // Whether what a run writes could be held instead, from the last use before it.
    bool has_room(i64 node, i64 stage) const {
        const i64 key = s.key(node, stage), made = s.run_key(node, s.run_before(node, key)), end = s.step_of(key);
        for (i64 value : t.writes_of(node)) {
            if (t.size[value] == 0) continue;
            const i64 most = s.budget - t.size[value];
            const i64 first = s.step_of(std::max(made, last_read(t, s, value, made, key))) + 1;
            for (i64 step = end - 1; step >= first; step--)
                if (s.memory[step] > most) return false;
        }
        return true;
    }

    // A dropped run is logged as a number below 0, an added one as its key.
    void log(i64 key, bool dropped) { log_[logged_++] = dropped ? -key - 1 : key; }

    // Remove a run, and the runs that only it read from.
    void drop(i64 node, i64 stage) {
        i64 top = logged_;
        remove(t, s, node, stage);
        log(s.key(node, stage), true);
        for (; top < logged_; top++) {
            const i64 key = -log_[top] - 1;
            if (key < 0) continue;
            for (i64 value : t.reads_of(s.node_of(key))) {
                const i64 parent = t.writer[value], k = s.run_before(parent, key);
                if (k <= 0 || logged_ >= LOG || !is_unread(t, s, parent, k)) continue;
                const i64 before = s.stage(parent, k);
                remove(t, s, parent, before);
                log(s.key(parent, before), true);
            }
        }
    }

    // Take changes back, all but the first so many.
    void undo(i64 kept) {
        while (logged_ > kept) {
            const i64 change = log_[--logged_], key = change >= 0 ? change : -change - 1;
            if (change >= 0)
                remove(t, s, s.node_of(key), s.stage_of(key));
            else
                insert(t, s, s.node_of(key), s.stage_of(key));
        }
    }

    // Compute a value again right before the step at `key` reads it, and perhaps what that reads in turn.
    //
    // Returns the step of the use before, from which on there may now be room, or -1.
    i64 compute_again(i64 value, i64 key) {
        const i64 stage = s.stage_of(key);
        i64 stack[LOG], low = -1;
        stack[0] = value;
        for (i64 top = 1; top;) {
            const i64 wanted = stack[--top], writer = t.writer[wanted], k = s.run_before(writer, key);
            if (t.once[writer] || writer >= stage || s.stage(writer, k) == stage || logged_ >= LOG / 2) continue;
            const i64 fresh = s.key(writer, stage), made = s.run_key(writer, k);
            const i64 before = std::max(made, last_read(t, s, wanted, made, fresh));
            if (!insert(t, s, writer, stage)) continue;
            const i64 place = s.step_of(before);
            low = low < 0 ? place : std::min(low, place);
            log(fresh, false);
            for (i64 read : t.reads_of(writer))
                if (top < LOG && random_.uniform() < 0.5) stack[top++] = read;
        }
        return low;
    }

    const Tables t;
    State s;
    Ints best_keys_;
    Ints best_;  // cost and length of the best keys
    const Cooling cooling_;
    Random random_;
    i64 cost_ = 0, over_ = 0;  // before the move
    i64 log_[LOG];
    i64 logged_ = 0;
};

inline i64 anneal_runs(Ints tables, Ints state, Ints best_keys, Ints best, const Cooling& cooling) {
    return Annealing(tables, state, best_keys, best, cooling).run();
}

}  // namespace remat::exact
