// The inner loops of the dynamic programs over chains: see program.py and floating.py for the recurrences.
#pragma once

#include <functional>

#include "solvers/native/array.hpp"

namespace remat::chains {

enum class Stage : i64 {};  // from 1 on; 0 is the input of the chain
enum class Way : i64 {};    // to run a stage

template <class T>
using ByStage = Array<const T, Stage>;
template <class T>
using ByWay = Array<const T, Way>;
using Stages = Range<Stage>;

constexpr i64 PIECE = 64;

// best = min(best, price + one + other), over the length of best.
//
// All fall along their length, so a piece in which even the least sum is no less than the largest best is passed over.
inline void lower_to(Array<double> best, double price, const double* one, const double* other) {
    for (i64 start = 0; start < best.size; start += PIECE) {
        const i64 end = std::min(start + PIECE, best.size);
        if (price + one[end - 1] + other[end - 1] >= best[start]) continue;
        for (i64 place = start; place < end; place++) {
            const double value = price + one[place] + other[place];
            best[place] = value < best[place] ? value : best[place];
        }
    }
}

inline i64 first_at_most(Floats falling, double value) {
    return std::lower_bound(falling.begin(), falling.end(), value, std::greater<>()) - falling.begin();
}

template <class Sizes>
bool are_sizes(Sizes sizes) {
    return std::all_of(sizes.begin(), sizes.end(), [](i64 one) { return one >= 0; });
}

// What `Segments` and `Ways` in program.py say, in this order.
struct Segments {
    ByStage<double> walked;  // time of all walks up to a stage
    ByStage<i64> walk_memory, a, delta;
    ByStage<double> spared;
    ByStage<Way> start;  // the first way; one entry more than stages
    ByWay<double> time;
    ByWay<i64> keep;
    ByWay<bool> holds, lets_go;
    ByWay<i64> forward, backward;
    ByStage<i64> at_once;

    auto fields() {
        return std::tie(walked, walk_memory, a, delta, spared, start, time, keep, holds, lets_go, forward, backward,
                        at_once);
    }

    void check() const {
        require(a.size > 0 && all_as_long(a.size, walked, walk_memory, delta, spared, at_once) &&
                    all_as_long(time.size, keep, holds, lets_go, forward, backward) && start.size == a.size + 1,
                "stages or ways with something missing");
        require(std::is_sorted(start.begin(), start.end()) && exists(start[Stage(0)]) && i64(start.last()) <= time.size,
                "a stage with ways that there are not");
        require(are_sizes(a) && are_sizes(keep), "a size below 0");
    }

    i64 stages() const { return a.size - 1; }
    Range<Way> ways_of(Stage s) const { return {start[s], start[s + 1]}; }
};

// Some columns of the tables of program.py. They are filled side by side, so that each row of what comes before a cut is
// read once for all.
class SegmentTables {
  public:
    SegmentTables(const Segments& segments, Grid<double> excess, Grid<double> loose, Array<i64, Stage> inner)
        : segments_(segments), excess_(excess), loose_(loose), inner_(inner), nothing_(excess.columns, 0.0) {}

    void fill(Stage left, Stage right) {
        for (Stage s : Stages(Stage(1), right).backwards()) {
            for (Stage t : Stages(std::max(s, left), right)) run_first(s, t);
            for (Stage cut : Stages(s + 1, right)) cut_at(s, cut, left, right);
            if (loose_.rows)
                for (Stage t : Stages(std::max(s, left), right)) let_go(s, t);
        }
    }

  private:
    static i64 row(Stage first, Stage last) { return i64(last) * (i64(last) - 1) / 2 + i64(first) - 1; }

    // Each way to run stage s first.
    void run_first(Stage s, Stage t) {
        const Segments& of = segments_;
        const Array<double> best = excess_[row(s, t)];
        if (s == t) {
            std::fill(std::min(best.begin() + std::max(of.at_once[t], i64(0)), best.end()), best.end(), 0.0);
            return;
        }
        if (s + 1 < t) inner_[t] = std::max(inner_[t], of.a[s] + of.walk_memory[s + 1]);
        for (Way way : of.ways_of(s))
            run(best, s, t, way, std::max({of.delta[t] + of.forward[way], of.backward[way], of.keep[way]}));
    }

    void run(Array<double> best, Stage s, Stage t, Way way, i64 need) {
        if (need >= best.size) return;
        const Floats after = (segments_.holds[way] ? excess_ : loose_)[row(s + 1, t)];
        lower_to(best.slice(need, best.size), segments_.time[way], &after[need - segments_.keep[way]],
                 nothing_.begin());
    }

    // The stages before a cut run once to keep what lies at the cut, and again later.
    void cut_at(Stage s, Stage cut, Stage left, Stage right) {
        const Segments& of = segments_;
        const double price = of.walked[cut - 1] - of.walked[s - 1] - of.spared[cut - 1];
        const i64 held = of.a[cut - 1];
        const Floats before_cut = excess_[row(s, cut - 1)];
        for (Stage t : Stages(std::max(cut, left), right)) {
            const Array<double> best = excess_[row(s, t)];
            const i64 first = std::max(of.delta[t] + std::max(of.walk_memory[s], inner_[t]), held);
            const i64 end = first_at_most(best, price);
            if (first >= end) continue;
            const Floats after_cut = excess_[row(cut, t)];
            lower_to(best.slice(first, end), price, &after_cut[first - held], &before_cut[first]);
        }
    }

    // The second table: the input of stage s is counted, and may go once the stage has run.
    void let_go(Stage s, Stage t) {
        const Segments& of = segments_;
        const Array<double> best = loose_[row(s, t)], kept = excess_[row(s, t)];
        for (i64 place = of.a[s - 1]; place < best.size; place++) best[place] = kept[place - of.a[s - 1]];
        if (s == t) return;
        for (Way way : of.ways_of(s))
            if (of.lets_go[way]) {
                const i64 forward = of.a[s - 1] + of.delta[t] + of.forward[way];
                run(best, s, t, way, std::max({forward, of.backward[way], of.keep[way]}));
            }
    }

    const Segments& segments_;
    const Grid<double> excess_, loose_;
    const Array<i64, Stage> inner_;  // memory of the F_0 after s, beyond a^{s-1}
    const Owned<double> nothing_;
};

inline void fill_segments(Stage left, Stage right, Grid<double> excess, Grid<double> loose, Array<i64, Stage> inner,
                          const Segments& segments) {
    const i64 stages = segments.stages();
    require(Stage(0) < left && left <= right && right <= Stage(stages + 1), "columns that there are not");
    require(excess.rows == stages * (stages + 1) / 2 && (loose.rows == excess.rows || loose.rows == 0) &&
                loose.columns == excess.columns && inner.size == stages + 1,
            "tables that are not as large as the chain's");
    require(loose.rows || std::all_of(segments.holds.begin(), segments.holds.end(), [](bool one) { return one; }),
            "a way that needs the second table");
    SegmentTables(segments, excess, loose, inner).fill(left, right);
}

// What the program of floating.py knows of a chain.
struct Floating {
    ByStage<double> forward, walked;
    ByStage<i64> a, abar, delta, o_f, backward_memory;

    auto fields() { return std::tie(forward, walked, a, abar, delta, o_f, backward_memory); }

    void check() const {
        require(a.size > 0 && all_as_long(a.size, forward, walked, abar, delta, o_f, backward_memory),
                "stages with something missing");
        require(are_sizes(a) && are_sizes(delta), "a size below 0");
        for (Stage s : Stages(Stage(1), Stage(a.size)))
            require(a[s - 1] + abar[s] >= a[s] && a[s] + o_f[s] >= 0, "a stage that holds less than nothing");
    }
};

class FloatingTable {
  public:
    FloatingTable(const Floating& chain, Grid<double> excess) : chain_(chain), excess_(excess) {}

    void fill(Stage last) const {
        for (Stage t : Stages(Stage(1), last + 1).backwards())
            for (Stage s : Stages(Stage(1), t + 1).backwards()) {
                if (s == t)
                    run_all(s, last);
                else
                    give_up(s, t, last);
                for (Stage then : Stages(t + 1, last + 1)) keep_input(s, t, then, last);
            }
    }

    static i64 row_of(Stage s, Stage t, Stage last) {
        const i64 up_to = i64(last), to = i64(t);
        return (up_to - 1) * up_to * (up_to + 1) / 6 + (to - 1) * to / 2 + i64(s) - 1;
    }

  private:
    Array<double> row(Stage s, Stage t, Stage last) const { return excess_[row_of(s, t, last)]; }

    // F_all^s, then the later stages, then B^s.
    void run_all(Stage s, Stage last) const {
        const Floating& of = chain_;
        const Array<double> best = row(s, s, last);
        const i64 base = of.a[s - 1];
        const i64 need = base + std::max({of.delta[last] + of.abar[s] + of.o_f[s], of.backward_memory[s], i64(0)});
        if (s == last) {
            for (i64 m = need; m < best.size; m++) best[m] = 0.0;
            return;
        }
        const Floats after = row(s + 1, s + 1, last);
        const i64 inside = base + of.abar[s] - of.a[s];
        for (i64 m = std::max(need, inside); m < best.size; m++) best[m] = after[m - inside];
    }

    // The memory from which on F_ck^s or F_0^s has room.
    i64 walk_needs(Stage s, Stage last) const {
        return chain_.a[s - 1] + chain_.a[s] + chain_.o_f[s] + chain_.delta[last];
    }

    // F_0^s: the input is given up.
    void give_up(Stage s, Stage t, Stage last) const {
        const Array<double> best = row(s, t, last), after = row(s + 1, t, last);
        for (i64 m = walk_needs(s, last); m < best.size; m++) best[m] = chain_.forward[s] + after[m];
    }

    // F_ck^s: the stages s..then-1 run to reach a^{then-1}, and s..t-1 run again for what is left.
    void keep_input(Stage s, Stage t, Stage then, Stage last) const {
        const auto walked = chain_.walked;
        const Array<double> best = row(s, t, last);
        const i64 need = walk_needs(s, last);
        const i64 end = first_at_most(best, walked[then - 1] + walked[t - 1] - 2 * walked[s - 1]);
        if (need >= end) return;
        const Floats later = row(s + 1, then, last), earlier = row(s, t, then - 1);
        lower_to(best.slice(need, end), chain_.forward[s], &later[need - chain_.a[s - 1]], &earlier[need]);
    }

    const Floating& chain_;
    const Grid<double> excess_;
};

inline void fill_floating(Stage last, Grid<double> excess, const Floating& chain) {
    require(Stage(0) < last && i64(last) < chain.a.size, "a last stage that there is not");
    require(excess.rows > FloatingTable::row_of(last, last, last), "a table that is not as large as the chain's");
    FloatingTable(chain, excess).fill(last);
}

}  // namespace remat::chains
