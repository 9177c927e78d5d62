// What is in memory during an eviction walk, and what goes first when there is no room.
//
// What goes is the value of least score. Scores are not kept: each live value has a key that is never above its score,
// and only what comes first by key is scored. A score falls when a value is read, when it is wanted later than it was or
// not at all, and when something that it would be rebuilt from is there again; it has a new key then. It rises by
// itself.
#pragma once

#include <cmath>

#include "solvers/orders/arrays.hpp"
#include "solvers/orders/heap.hpp"

namespace remat::orders {

constexpr i64 NEVER = i64(1) << 60;
constexpr i64 CLOSURE = 400;      // ancestors counted in a recompute cost, at most
constexpr double PINNED = 1e200;  // the scores of what is being rebuilt for lie around this
constexpr double AT_ONCE = -1.0;  // the score of what nobody will read

// What an eviction goes by: recompute cost and distance to these powers, weights, and what is kept for later.
struct Scoring {
    Floats weight;
    double cost_power, distance_power;
    Grid<bool> keep;  // group, value
    double hint;

    template <class Visit>
    void fields(Visit visit) {
        visit(weight), visit(cost_power), visit(distance_power), visit(keep), visit(hint);
    }
};

// The powers that rules have; a general one takes ten times as long.
inline double power(double base, double exponent) {
    if (exponent == 1.0) return base;
    if (exponent == 0.5) return std::sqrt(base);
    return exponent == 0.0 ? 1.0 : std::pow(base, exponent);
}

class Live {
  public:
    Live(const Arrays& arrays, const Scoring& scoring)
        : live(arrays.values(), false), was_read(arrays.values(), false), pinned(arrays.values(), false),
          wanted_at(arrays.values(), -1), next_user(arrays.users_at.slice(0, arrays.values())),
          mark(std::max(arrays.values(), arrays.nodes()) + 1, 0), stack(mark.size), used(arrays.resident),
          arrays_(arrays), scoring_(scoring), next_use_(arrays.values(), NEVER), own_(arrays.values()),
          rebuild_(arrays.values()), stale_(arrays.values(), true), held_(arrays.values()), aside_(arrays.values()) {
        for (i64 value = 0; value < arrays.values(); value++) {
            const i64 writer = arrays.writer[value];
            own_[value] = rebuild_[value] =
                arrays.once[writer] ? INFINITY_ : static_cast<double>(arrays.cost[writer]);
            const Ints users = arrays.users_of(value);
            if (users.size) next_use_[value] = users[0];
        }
    }

    Owned<bool> live;
    Owned<bool> was_read;  // or may go unread
    Owned<bool> pinned;
    Owned<i64> wanted_at;  // value -> place in the list being rebuilt at which it is next read, or -1
    Owned<i64> next_user;  // value -> place in users of the next reader not yet first computed
    Owned<i64> mark;       // of nodes or values: the last search that met them
    Owned<i64> stack;
    i64 used;        // bytes in memory
    i64 looked = 0;  // nodes and values looked at so far

    // A number for a new search to mark what it meets with.
    i64 new_mark() { return ++last_mark_; }

    // Go to the next first compute. In another group other values are kept for later.
    void go_to(i64 stage, i64 group) {
        stage_ = stage;
        if (group_ == group) return;
        group_ = group;
        const i64 count = held_.count();
        for (i64 place = 0; place < count; place++) aside_[place] = held_.item(place);
        for (i64 place = 0; place < count; place++) look_again(aside_[place]);
    }

    void hold(i64 value) {
        live[value] = true;
        was_read[value] = !arrays_.unread_stay || arrays_.optional[value];
        used += arrays_.size[value];
        if (arrays_.size[value]) held_.put(value, least_score(value));
        make_stale(value, true);
    }

    // Forget a live value. A copy that nobody has read stays in memory where the runtime keeps such copies.
    void drop(i64 value) {
        live[value] = false;
        if (was_read[value]) used -= arrays_.size[value];
        if (arrays_.size[value]) held_.take_out(value);
        make_stale(value, false);
    }

    // Drop a value, which passes its next use on to what it would be rebuilt from.
    void evict(i64 value) {
        drop(value);
        stack[0] = value;
        for (i64 top = 1; top;) {
            const i64 gone = stack[--top];
            for (i64 read : arrays_.reads_of(arrays_.writer[gone])) {
                if (next_use_[gone] >= next_use_[read]) continue;
                next_use_[read] = next_use_[gone];
                if (!live[read]) stack[top++] = read;
            }
        }
    }

    // Renew the next use of what a node reads: by a first compute, or where something missing is rebuilt from it.
    //
    // What is missing keeps its next use until it is there again, so that only what was just read has a new one.
    void renew(i64 node, i64 stage) {
        for (i64 value : arrays_.reads_of(node)) {
            const i64 place = next_user[value];
            i64 soonest = place < arrays_.users_at[value + 1] ? arrays_.users[place] : NEVER;
            for (i64 user : arrays_.users_of(value)) {
                if (user >= stage) break;
                for (i64 write : arrays_.writes_of(user))
                    if (!live[write]) soonest = std::min(soonest, next_use_[write]);
            }
            next_use_[value] = soonest;
            look_again(value);
        }
    }

    // A value's score may be less than it was.
    void look_again(i64 value) {
        if (held_.holds(value)) held_.put(value, least_score(value));
    }

    // The value to evict, or -1.
    i64 cheapest() {
        i64 count = 0, best = -1;
        double least = INFINITY_;
        while (held_.count() && held_.item(0) != best) {
            const i64 value = held_.item(0);
            if (pinned[value]) {
                aside_[count++] = value;
                held_.take_out(value);
                continue;
            }
            if (held_.key(value) == INFINITY_) break;
            const double score = score_of(value, least);
            held_.put(value, score);
            if (score <= least) {
                best = value;
                least = score;
            }
        }
        for (i64 place = 0; place < count; place++) held_.put(aside_[place], held_.key(aside_[place]));
        return best;
    }

  private:
    // What a value's recompute cost is multiplied by.
    double factor(i64 value) const {
        const double distance = std::max(1.0, static_cast<double>(next_use_[value] - stage_));
        const double found = scoring_.weight[value] / power(distance, scoring_.distance_power);
        return scoring_.keep[group_][value] ? found * scoring_.hint : found;
    }

    // The score, or less if it is not known what rebuilding the value takes; infinite if it must stay.
    double least_score(i64 value) const {
        if (!was_read[value]) return INFINITY_;
        const i64 wanted = wanted_at[value];
        if (wanted < 0 && next_use_[value] == NEVER) return AT_ONCE;
        if (rebuild_[value] == INFINITY_) return INFINITY_;
        if (wanted >= 0) return PINNED / (1.0 + static_cast<double>(wanted));
        return power(rebuild_[value] + 1.0, scoring_.cost_power) * factor(value);
    }

    // The score, or something above `most` if it is above that.
    double score_of(i64 value, double most) {
        const double score = least_score(value);
        if (score == AT_ONCE || score > most || !stale_[value]) return score;
        double enough = INFINITY_;
        if (wanted_at[value] < 0 && most < INFINITY_)
            enough = 1.001 * std::pow(most / factor(value), 1.0 / scoring_.cost_power);
        find_recompute_cost(value, enough);
        return least_score(value);
    }

    // Whatever would be rebuilt through `value` has another recompute cost now.
    void make_stale(i64 value, bool cheaper) {
        const i64 fresh = new_mark();
        stack[0] = value;
        for (i64 top = 1; top;) {
            const i64 changed = stack[--top];
            looked += 1;
            for (i64 user : arrays_.users_of(changed)) {
                if (user >= stage_) break;  // it has not run yet
                for (i64 write : arrays_.writes_of(user)) {
                    if (mark[write] == fresh) continue;
                    mark[write] = fresh;
                    stale_[write] = true;
                    if (cheaper) {
                        rebuild_[write] = own_[write];
                        look_again(write);
                    }
                    if (!live[write] && next_use_[write] < NEVER) stack[top++] = write;
                }
            }
        }
    }

    // Find what rebuilding a value takes; no more is counted than shows that it is over `most`.
    void find_recompute_cost(i64 value, double most) {
        const i64 fresh = new_mark();
        double total = 0.0;
        stack[0] = arrays_.writer[value];
        mark[stack[0]] = fresh;
        i64 count = 0;
        for (i64 top = 1; top && count < CLOSURE && total <= most; count++) {
            const i64 node = stack[--top];
            looked += 1;
            total += arrays_.once[node] ? INFINITY_ : static_cast<double>(arrays_.cost[node]);
            for (i64 read : arrays_.reads_of(node)) {
                const i64 parent = arrays_.writer[read];
                if (live[read] || mark[parent] == fresh) continue;
                mark[parent] = fresh;
                stack[top++] = parent;
            }
        }
        stale_[value] = total > most;
        rebuild_[value] = total;
    }

    const Arrays& arrays_;
    const Scoring& scoring_;
    i64 stage_ = 0, group_ = 0, last_mark_ = 0;
    Owned<i64> next_use_;
    Owned<double> own_;      // cost of the node that writes a value; infinite if it runs once
    Owned<double> rebuild_;  // recompute costs, or less of those that are stale
    Owned<bool> stale_;
    Heap held_;  // the live values that have a size
    Owned<i64> aside_;
};

}  // namespace remat::orders
