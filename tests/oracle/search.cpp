// The oracle's search: Dijkstra over states packed into three words. Python calls it as `tests.oracle._search.search`.
//
// Invariant: of two ways to one state, one that is as long and has as many bytes stuck is of no use; no other is cut.
//
// Every first compute is paid for at the start, so that only repeats have a length: those that make most headway come
// first among equals. It shares no code with any solver; only the way from Python to C++ is theirs.
#include "solvers/native/bind.hpp"

#include <array>
#include <queue>
#include <unordered_map>

namespace oracle {

using remat::i64;
using remat::Ints;

constexpr i64 MOST = 15;         // values, and nodes
constexpr i64 NOT_HELD = 15;     // where a value's block is named after its first value
constexpr i64 OF_RESIDENT = -1;  // in `base`: a view of an input or a weight, which takes no memory
constexpr i64 NOT_A_VIEW = -2;
constexpr i64 FREE = 15;         // where a block is named after the value that made it: an input or a weight
constexpr i64 HIGH = i64(1) << 62;

// What tables.py says, field for field.
struct Tables {
    Ints kernel_at, kernel, reads_at, reads, writes_at, writes, base, over_at, over, size, writer, readers, cost, work;
    Ints once, before, optional, output;
    bool unread_stay;
    i64 resident;

    auto fields() {
        return std::tie(kernel_at, kernel, reads_at, reads, writes_at, writes, base, over_at, over, size, writer,
                        readers, cost, work, once, before, optional, output, unread_stay, resident);
    }

    void check() const {}  // tables.py alone makes them

    i64 nodes() const { return cost.size; }
    i64 values() const { return size.size; }
    Ints reads_of(i64 node) const { return reads.slice(reads_at[node], reads_at[node + 1]); }
    Ints writes_of(i64 node) const { return writes.slice(writes_at[node], writes_at[node + 1]); }
};

// What is in memory: for each value the block that it lies in, and the value that made the block.
struct Held {
    std::array<i64, MOST> block, maker;
};

// A state in three words: which nodes have run, which of them for the last time, and the place in an open kernel; then
// the blocks, each named after the first value in it; then their makers.
struct Key {
    i64 flags, blocks, makers;

    bool operator==(const Key& other) const {
        return flags == other.flags && blocks == other.blocks && makers == other.makers;
    }
};

struct Hash {
    std::size_t operator()(const Key& key) const {
        std::uint64_t mixed = 0;
        for (i64 word : {key.flags, key.blocks, key.makers})
            mixed = (mixed ^ static_cast<std::uint64_t>(word)) * 0x9E3779B97F4A7C15U, mixed ^= mixed >> 29;
        return static_cast<std::size_t>(mixed);
    }
};

inline Held unpacked(const Key& key) {
    Held held;
    for (i64 value = 0; value < MOST; value++) {
        held.block[value] = key.blocks >> (4 * value) & 15;
        held.maker[value] = key.makers >> (4 * value) & 15;
    }
    return held;
}

inline Key packed(i64 closed, const Held& held) {
    Key key{closed, 0, 0};
    for (i64 value = 0; value < MOST; value++) {
        i64 name = NOT_HELD;
        if (held.block[value] != NOT_HELD)
            for (name = 0; held.block[name] != held.block[value];) name++;
        key.blocks |= name << (4 * value);
        key.makers |= (name == NOT_HELD ? NOT_HELD : held.maker[value]) << (4 * value);
    }
    return key;
}

// One way to run a node: the state afterwards (of its flags only the nodes that ran for the last time), the memory
// meanwhile, the bytes lost to copies that nobody read, and how many values it leaves.
struct Way {
    Key key;
    i64 peak, lost, left;
};

// Every way to run a node now.
class Ways {
  public:
    Ways(const Tables& tables, const Held& held, i64 node, i64 stuck)
        : tables_(tables), held_(held), node_(node), reads_(tables.reads_of(node)), writes_(tables.writes_of(node)),
          many_(reads_.size + writes_.size), ends_(static_cast<std::size_t>(many_)) {
        before_ = tables.resident + stuck + tables.work[node];
        for (i64 value = 0; value < tables.values(); value++)
            if (held.block[value] == value && held.maker[value] != FREE) before_ += tables.size[held.maker[value]];
    }

    // `closed`: nodes that have run for the last time, this one perhaps among them; `able`: nodes that may still run.
    void add(i64 closed, i64 able, std::vector<Way>& found) {
        for (i64 value : reads_)
            if (held_.block[value] == NOT_HELD) return;
        for (i64 value : writes_)
            if (held_.block[value] != NOT_HELD) return;  // it was held to be read first
        for (i64 guess = 0; guess < i64(1) << many_; guess++)
            if (is_possible(guess, closed, able)) found.push_back(after(closed));
    }

  private:
    i64 value_at(i64 k) const { return k < reads_.size ? reads_[k] : writes_[k - reads_.size]; }

    // Whether the copies may end here that the guess says, and the others may not.
    bool is_possible(i64 guess, i64 closed, i64 able) {
        for (i64 k = 0; k < many_; k++) {
            const i64 value = value_at(k);
            const bool end = guess >> k & 1;
            const bool stays = tables_.output[value] && (closed >> tables_.writer[value] & 1);
            if ((end && stays) || !(end || stays || (tables_.readers[value] & able))) return false;
            ends_[static_cast<std::size_t>(k)] = end;
        }
        return true;
    }

    bool ends(i64 k) const { return ends_[static_cast<std::size_t>(k)]; }

    Way after(i64 closed) const {
        Held held = held_;
        i64 taken = 0, lost = 0, left = 0;
        for (i64 k = 0; k < writes_.size; k++)
            if (!(ends(reads_.size + k) && tables_.optional[writes_[k]])) taken += place(held, k, closed);
        for (i64 k = 0; k < reads_.size; k++)
            if (ends(k)) held.block[reads_[k]] = NOT_HELD;
        for (i64 k = 0; k < writes_.size; k++) {
            const i64 value = writes_[k];
            left += !ends(reads_.size + k);
            if (!ends(reads_.size + k) || held.block[value] == NOT_HELD) continue;
            if (tables_.unread_stay && held.block[value] > MOST && held.maker[value] != FREE)
                lost += tables_.size[value];
            held.block[value] = NOT_HELD;
        }
        return {packed(closed, held), before_ + taken, lost, left};
    }

    // Give a write its block. Returns the bytes that it takes.
    i64 place(Held& held, i64 k, i64 closed) const {
        const i64 value = writes_[k], row = tables_.writes_at[node_] + k;
        i64 lends = -1;  // the read in whose memory the write comes to lie
        bool free = false;
        if (!(tables_.output[value] && (closed >> node_ & 1))) {
            if (tables_.base[row] != NOT_A_VIEW) {
                free = tables_.base[row] == OF_RESIDENT;
                lends = tables_.base[row];
            } else {
                for (i64 o = tables_.over_at[row]; o < tables_.over_at[row + 1] && lends < 0; o++)
                    if (may_take(held, tables_.over[o], value)) lends = tables_.over[o];
            }
        }
        if (lends >= 0) {
            held.block[value] = held.block[lends];
            held.maker[value] = held.maker[lends];
            return 0;
        }
        held.block[value] = MOST + 1 + k;
        held.maker[value] = free ? FREE : value;
        return free ? 0 : tables_.size[value];
    }

    // Whether this is the read's last use, nothing else lives in its memory, and that has just the size.
    bool may_take(const Held& held, i64 read, i64 write) const {
        if (held.maker[read] == FREE || tables_.size[read] != tables_.size[write]) return false;
        i64 sharers = 0;
        for (i64 value = 0; value < tables_.values(); value++) sharers += held.block[value] == held.block[read];
        for (i64 k = 0; k < reads_.size; k++)
            if (reads_[k] == read && ends(k))
                return sharers == 1 && tables_.size[held.maker[read]] == tables_.size[write];
        return false;
    }

    const Tables& tables_;
    const Held& held_;
    const i64 node_;
    const Ints reads_, writes_;
    const i64 many_;
    std::vector<bool> ends_;  // which of the reads, then writes, end here
    i64 before_;              // bytes in use before anything is written
};

class Search {
  public:
    Search(const Tables& tables, i64 budget, bool in_order, bool by_peak)
        : tables_(tables), budget_(budget), in_order_(in_order), by_peak_(by_peak),
          every_((i64(1) << tables.nodes()) - 1) {
        for (i64 value = 0; value < tables.values(); value++)
            if (tables.output[value]) last_ |= i64(1) << tables.writer[value];
        for (i64 node = 0; node < tables.nodes(); node++) single_ |= tables.once[node] << node;
    }

    // Length and order of the best way; the length is -1 if there is none.
    std::tuple<i64, remat::Owned<i64>> run() {
        const i64 nothing = (i64(1) << (4 * MOST)) - 1;
        i64 start = by_peak_ ? tables_.resident : 0;
        if (!by_peak_)
            for (i64 cost : tables_.cost) start += cost;
        labels_.push_back({state_of({0, nothing, nothing}), -1, -1});
        heap_.push({start, 0, 0, 0});
        while (!heap_.empty()) {
            const Entry best = heap_.top();
            heap_.pop();
            const i64 here = labels_[static_cast<std::size_t>(best.label)].state;
            State& state = states_[static_cast<std::size_t>(here)];
            if (best.stuck >= state.low) continue;
            state.low = best.stuck;
            const Key key = state.key;
            if (is_done(key)) return {best.length, order_of(best.label)};
            expand(key, best);
        }
        return {-1, remat::Owned<i64>(0)};
    }

  private:
    struct State {
        Key key;
        i64 low = HIGH;                       // the least bytes stuck with which it was left
        i64 length = HIGH, stuck = HIGH;      // of the last way to it that waits
    };

    struct Label {
        i64 state, parent, node;
    };

    struct Entry {
        i64 length, ahead, stuck, label;

        bool operator>(const Entry& other) const {
            return std::tie(length, ahead, stuck, label) >
                   std::tie(other.length, other.ahead, other.stuck, other.label);
        }
    };

    static i64 ran_of(const Key& key) { return key.flags & 0x7FFF; }
    static i64 closed_of(const Key& key) { return key.flags >> 15 & 0x7FFF; }
    static i64 place_of(const Key& key) { return key.flags >> 30; }  // 0 between kernels

    bool is_done(const Key& key) const {
        if (ran_of(key) != every_ || closed_of(key) != last_ || place_of(key) != 0) return false;
        for (i64 value = 0; value < tables_.values(); value++)
            if (((key.blocks >> (4 * value) & 15) != NOT_HELD) != (tables_.output[value] == 1)) return false;
        return true;
    }

    // The number of a state, new or known.
    i64 state_of(const Key& key) {
        const auto [found, is_new] = numbers_.try_emplace(key, static_cast<i64>(states_.size()));
        if (is_new) states_.push_back({key});
        return found->second;
    }

    bool all_ran(i64 ran, i64 kernel) const {
        for (i64 place = 0; place < tables_.kernel_at[kernel]; place++)
            if (!(ran >> tables_.kernel[place] & 1)) return false;
        return true;
    }

    bool may_run(const Key& key, i64 node, i64 kernel) const {
        const i64 ran = ran_of(key);
        if (tables_.before[node] & ran & ~(i64(1) << node)) return false;
        if (ran >> node & 1) return !tables_.once[node] && !(closed_of(key) >> node & 1);
        return place_of(key) != 0 || !in_order_ || all_ran(ran, kernel);
    }

    void expand(const Key& key, const Entry& from) {
        const Held held = unpacked(key);
        if (place_of(key) != 0) {
            const i64 place = place_of(key) - 1;
            if (may_run(key, tables_.kernel[place], 0)) step(key, held, from, place, false);
            return;
        }
        for (i64 kernel = 0; kernel + 1 < tables_.kernel_at.size; kernel++) {
            const i64 begin = tables_.kernel_at[kernel];
            if (!may_run(key, tables_.kernel[begin], kernel)) continue;
            step(key, held, from, begin, tables_.kernel_at[kernel + 1] - begin == 1);
        }
    }

    // Run the node at a place in every way. `alone`: it is a kernel by itself.
    void step(const Key& key, const Held& held, const Entry& from, i64 place, bool alone) {
        const i64 node = tables_.kernel[place], ran = ran_of(key) | i64(1) << node;
        const bool again = ran_of(key) >> node & 1;
        const bool dull = again && alone && !tables_.unread_stay;  // of no use if it leaves nothing
        const bool kernel_ends =
            std::find(tables_.kernel_at.begin() + 1, tables_.kernel_at.end(), place + 1) != tables_.kernel_at.end();
        ways_.clear();
        Ways ways(tables_, held, node, from.stuck);
        for (i64 final = 0; final <= (last_ >> node & 1); final++) {
            const i64 closed = closed_of(key) | final << node;
            ways.add(closed, every_ & ~(ran & single_) & ~closed, ways_);
        }
        i64 ahead = 0;
        for (i64 left = ran; left; left >>= 1) ahead -= left & 1;
        for (const Way& way : ways_) {
            if (way.peak > budget_ || (dull && way.left == 0)) continue;
            const i64 length = by_peak_ ? std::max(from.length, way.peak) : from.length + again * tables_.cost[node];
            const i64 flags = ran | way.key.flags << 15 | (kernel_ends ? 0 : place + 2) << 30;
            offer({flags, way.key.blocks, way.key.makers}, {length, ahead, from.stuck + way.lost, from.label}, node);
        }
    }

    void offer(const Key& key, Entry entry, i64 node) {
        const i64 to = state_of(key);
        State& state = states_[static_cast<std::size_t>(to)];
        if (entry.stuck >= state.low || (state.length <= entry.length && state.stuck <= entry.stuck)) return;
        state.length = entry.length;
        state.stuck = entry.stuck;
        labels_.push_back({to, entry.label, node});
        entry.label = static_cast<i64>(labels_.size()) - 1;
        heap_.push(entry);
    }

    remat::Owned<i64> order_of(i64 label) const {
        std::vector<i64> nodes;
        for (const Label* at = &labels_[static_cast<std::size_t>(label)]; at->parent >= 0;
             at = &labels_[static_cast<std::size_t>(at->parent)])
            nodes.push_back(at->node);
        remat::Owned<i64> order(static_cast<i64>(nodes.size()));
        std::copy(nodes.rbegin(), nodes.rend(), order.begin());
        return order;
    }

    const Tables& tables_;
    const i64 budget_;
    const bool in_order_, by_peak_;
    const i64 every_;           // all nodes
    i64 last_ = 0, single_ = 0;  // nodes that write outputs, and nodes that run once
    std::vector<State> states_;
    std::vector<Label> labels_;
    std::unordered_map<Key, i64, Hash> numbers_;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
    std::vector<Way> ways_;
};

std::tuple<i64, remat::Owned<i64>> search(const Tables& tables, i64 budget, bool in_order, bool by_peak) {
    return Search(tables, budget, in_order, by_peak).run();
}

}  // namespace oracle

namespace {

PyMethodDef LOOPS[] = {remat::python::loop<oracle::search>("search"), {nullptr, nullptr, 0, nullptr}};
PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, reinterpret_cast<void*>(remat::python::prepare)}, {0, nullptr}};
PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_search", "The oracle's search.", 0, LOOPS, SLOTS,
                      nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__search() { return PyModuleDef_Init(&MODULE); }
