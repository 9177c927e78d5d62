// A set of runs for the annealing: added to and taken from, the memory at every step kept as it changes.
//
// A schedule is a set of runs: (stage, node) for each compute of a node before the first compute of the stage, in index
// order within a stage. A run's key is stage * (nodes + 1) + node, so that keys rise along the schedule.
//
// Invariant: memory is counted as `measure` counts it or higher (a write takes a read's place only where the first read
// that allows it ends there, and never if it is an output or optional); the caller measures what it gets.
#pragma once

#include "solvers/methods/exact/tables.hpp"

namespace remat::exact {

constexpr i64 END = i64(1) << 60;  // a key behind all others

// The flat array of `blank` in tables.py with names. Steps are the runs in the order of their keys.
struct State {
    i64 &steps, &total, &excess;
    const i64 budget;
    i64 *runs, *count;
    i64 *keys, *memory;
    i64* across;  // step -> the bytes in use that were there before it
    const i64 room;  // steps at most
    const i64 factor;  // of the stage in a key

    State(const Tables& t, Ints flat)
        : steps(flat[0]), total(flat[1]), excess(flat[2]), budget(flat[3]), runs(flat.data + flat[4]),
          count(flat.data + flat[5]), keys(flat.data + flat[6]), memory(flat.data + flat[7]),
          across(flat.data + flat[8]), room(flat[7] - flat[6]), factor(t.nodes + 1) {}

    i64 key(i64 node, i64 stage) const { return stage * factor + node; }
    i64 node_of(i64 key) const { return key % factor; }
    i64 stage_of(i64 key) const { return key / factor; }

    // The stage of a node's k-th run.
    i64& stage(i64 node, i64 k) const { return runs[node * MOST + k]; }
    i64 run_key(i64 node, i64 k) const { return key(node, stage(node, k)); }

    // The key of the run that replaces what a node's k-th run writes, or END.
    i64 next_key(i64 node, i64 k) const { return k + 1 == count[node] ? END : run_key(node, k + 1); }

    // The step of a key, or where it would stand.
    i64 step_of(i64 key) const { return std::lower_bound(keys, keys + steps, key) - keys; }

    // The last run of a node before a key, or -1.
    i64 run_before(i64 node, i64 key) const {
        i64 k = count[node] - 1;
        while (k >= 0 && run_key(node, k) >= key) k--;
        return k;
    }

    i64 over(i64 bytes) const { return std::max(i64(0), bytes - budget); }
};

// The last key between `low` and `high` at which a value is read, or -1.
inline i64 last_read(const Tables& t, const State& s, i64 value, i64 low, i64 high) {
    i64 best = -1;
    for (i64 user : t.users_of(value)) {
        const i64 k = s.run_before(user, high);
        if (k < 0) continue;
        const i64 key = s.run_key(user, k);
        if (key > low && key > best) best = key;
    }
    return best;
}

// Add the k-th copy of a value to the memory in use (`sign` 1), or take it away (-1).
inline void hold(const Tables& t, State& s, i64 value, i64 k, i64 sign) {
    const i64 size = t.size[value] * sign;
    if (size == 0) return;
    const i64 node = t.writer[value], made = s.run_key(node, k);
    i64 end = last_read(t, s, value, made, s.next_key(node, k));
    if (end < 0) {
        if (t.optional[value]) return;
        end = t.stay ? END : made;
    }
    const i64 first = s.step_of(made), last = end == END ? s.steps - 1 : s.step_of(end);
    i64 excess = 0;
    for (i64 step = first; step <= last; step++) {
        const i64 before = s.memory[step];
        s.memory[step] = before + size;
        excess += s.over(before + size) - s.over(before);
    }
    for (i64 step = first; step < last + (end == END); step++) s.across[step] += size;
    if (end != END && end != made) {
        const i64 user = s.node_of(end);
        for (i64 place = t.reads_at[user]; place < t.reads_at[user + 1]; place++) {
            if (t.reads[place] != value || !t.saved[place]) continue;
            const i64 before = s.memory[last], after = before - sign * t.saved[place];
            s.memory[last] = after;
            excess += s.over(after) - s.over(before);
        }
    }
    s.excess += excess;
}

// Add or take away the copies that a run of `node` at `key` reads.
inline void hold_reads(const Tables& t, State& s, i64 node, i64 key, i64 sign) {
    for (i64 value : t.reads_of(node)) hold(t, s, value, s.run_before(t.writer[value], key), sign);
}

inline void hold_writes(const Tables& t, State& s, i64 node, i64 k, i64 sign) {
    for (i64 value : t.writes_of(node)) hold(t, s, value, k, sign);
}

// Run a node again before the first compute of a stage. Returns whether that may be.
inline bool insert(const Tables& t, State& s, i64 node, i64 stage) {
    const i64 key = s.key(node, stage), steps = s.steps, count = s.count[node], k = s.run_before(node, key);
    if (count == MOST || steps == s.room || (k + 1 < count && s.stage(node, k + 1) == stage)) return false;
    hold_writes(t, s, node, k, -1);
    hold_reads(t, s, node, key, -1);
    for (i64 place = count; place > k + 1; place--) s.stage(node, place) = s.stage(node, place - 1);
    s.stage(node, k + 1) = stage;
    s.count[node] = count + 1;
    const i64 step = s.step_of(key);
    for (i64* table : {s.keys, s.memory, s.across}) std::copy_backward(table + step, table + steps, table + steps + 1);
    s.keys[step] = key;
    s.steps = steps + 1;
    s.across[step] = s.across[step - 1];
    s.memory[step] = t.resident + t.workspace[node] + s.across[step];
    s.excess += s.over(s.memory[step]);
    s.total += t.cost[node];
    hold_reads(t, s, node, key, 1);
    for (i64 value : t.writes_of(node)) {
        hold(t, s, value, k, 1);
        hold(t, s, value, k + 1, 1);
    }
    return true;
}

// Undo `insert`.
inline void remove(const Tables& t, State& s, i64 node, i64 stage) {
    const i64 key = s.key(node, stage), k = s.run_before(node, key + 1);
    for (i64 value : t.writes_of(node)) {
        hold(t, s, value, k - 1, -1);
        hold(t, s, value, k, -1);
    }
    hold_reads(t, s, node, key, -1);
    const i64 step = s.step_of(key), steps = s.steps;
    s.excess -= s.over(s.memory[step]);
    s.steps -= 1;
    for (i64* table : {s.keys, s.memory, s.across}) std::copy(table + step + 1, table + steps, table + step);
    s.count[node] -= 1;
    for (i64 place = k; place < s.count[node]; place++) s.stage(node, place) = s.stage(node, place + 1);
    s.total -= t.cost[node];
    hold_reads(t, s, node, key, 1);
    hold_writes(t, s, node, k - 1, 1);
}

// Whether nobody reads what a node's k-th run writes.
inline bool is_unread(const Tables& t, const State& s, i64 node, i64 k) {
    const i64 made = s.run_key(node, k), again = s.next_key(node, k);
    for (i64 value : t.writes_of(node))
        if (last_read(t, s, value, made, again) >= 0) return false;
    return true;
}

// Fill a blank state. A node's runs beyond the most there may be are left out.
inline void fill_runs(Ints tables, Ints state, Ints keys) {
    const Tables t(tables);
    State s(t, state);
    i64 steps = 0;
    for (i64 key : keys) {
        const i64 node = s.node_of(key);
        if (s.count[node] == MOST) continue;
        s.stage(node, s.count[node]) = s.stage_of(key);
        s.count[node] += 1;
        s.keys[steps] = key;
        s.memory[steps] = t.resident + t.workspace[node];
        s.total += t.cost[node];
        steps += 1;
    }
    s.steps = steps;
    for (i64 value = 0; value < t.values; value++)
        for (i64 k = 0; k < s.count[t.writer[value]]; k++) hold(t, s, value, k, 1);
    s.excess = 0;
    for (i64 step = 0; step < steps; step++) s.excess += s.over(s.memory[step]);
}

}  // namespace remat::exact
