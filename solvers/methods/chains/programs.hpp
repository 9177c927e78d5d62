// The inner loops of the dynamic programs over chains: see program.py and floating.py for the recurrences.
#pragma once

#include <functional>

#include "solvers/native/array.hpp"

namespace remat::chains {

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

template <class... Arrays>
void require_sizes(const Arrays&... arrays) {
    const auto are_sizes = [](Ints all) { return std::all_of(all.begin(), all.end(), [](i64 one) { return one >= 0; }); };
    require((are_sizes(arrays) && ...), "a size below 0");
}

// What `Segments` and `Ways` in program.py say, in this order.
struct Segments {
    Floats walked;  // time of all walks up to a stage
    Ints walk_memory, a, delta;
    Floats spared;
    Ints start;  // stage -> its first way
    Floats time;
    Ints keep;
    Array<const bool> holds, lets_go;
    Ints forward, backward, at_once;

    auto fields() {
        return std::tie(walked, walk_memory, a, delta, spared, start, time, keep, holds, lets_go, forward, backward,
                        at_once);
    }

    void check() const {
        require(a.size > 0 && all_as_long(a.size, walked, walk_memory, delta, spared, at_once) &&
                    all_as_long(time.size, keep, holds, lets_go, forward, backward) && start.size == a.size + 1,
                "stages or ways with something missing");
        require(std::is_sorted(start.begin(), start.end()) && start[0] >= 0 && start.last() <= time.size,
                "a stage with ways that there are not");
        require_sizes(a, keep);
    }

    i64 stages() const { return a.size - 1; }
};

// Some columns of the tables of program.py. They are filled side by side, so that each row of what comes before a cut is
// read once for all.
class SegmentTables {
  public:
    SegmentTables(const Segments& segments, Grid<double> excess, Grid<double> loose, Array<i64> inner)
        : segments_(segments), excess_(excess), loose_(loose), inner_(inner), nothing_(excess.columns, 0.0) {}

    void fill(i64 left, i64 right) {
        for (i64 s = right - 1; s > 0; s--) {
            for (i64 t = std::max(s, left); t < right; t++) run_first(s, t);
            for (i64 cut = s + 1; cut < right; cut++) cut_at(s, cut, left, right);
            if (loose_.rows)
                for (i64 t = std::max(s, left); t < right; t++) let_go(s, t);
        }
    }

  private:
    static i64 row(i64 first, i64 last) { return last * (last - 1) / 2 + first - 1; }

    // Each way to run stage s first.
    void run_first(i64 s, i64 t) {
        const Segments& of = segments_;
        const Array<double> best = excess_[row(s, t)];
        if (s == t) {
            std::fill(std::min(best.begin() + std::max(of.at_once[t], i64(0)), best.end()), best.end(), 0.0);
            return;
        }
        if (s + 1 < t) inner_[t] = std::max(inner_[t], of.a[s] + of.walk_memory[s + 1]);
        for (i64 way = of.start[s]; way < of.start[s + 1]; way++)
            run(best, s, t, way, std::max({of.delta[t] + of.forward[way], of.backward[way], of.keep[way]}));
    }

    void run(Array<double> best, i64 s, i64 t, i64 way, i64 need) {
        if (need >= best.size) return;
        const Floats after = (segments_.holds[way] ? excess_ : loose_)[row(s + 1, t)];
        lower_to(best.slice(need, best.size), segments_.time[way], &after[need - segments_.keep[way]],
                 nothing_.begin());
    }

    // The stages before a cut run once to keep what lies at the cut, and again later.
    void cut_at(i64 s, i64 cut, i64 left, i64 right) {
        const Segments& of = segments_;
        const double price = of.walked[cut - 1] - of.walked[s - 1] - of.spared[cut - 1];
        const i64 held = of.a[cut - 1];
        const Floats before_cut = excess_[row(s, cut - 1)];
        for (i64 t = std::max(cut, left); t < right; t++) {
            const Array<double> best = excess_[row(s, t)];
            const i64 first = std::max(of.delta[t] + std::max(of.walk_memory[s], inner_[t]), held);
            const i64 end = first_at_most(best, price);
            if (first >= end) continue;
            const Floats after_cut = excess_[row(cut, t)];
            lower_to(best.slice(first, end), price, &after_cut[first - held], &before_cut[first]);
        }
    }

    // The second table: the input of stage s is counted, and may go once the stage has run.
    void let_go(i64 s, i64 t) {
        const Segments& of = segments_;
        const Array<double> best = loose_[row(s, t)], kept = excess_[row(s, t)];
        for (i64 place = of.a[s - 1]; place < best.size; place++) best[place] = kept[place - of.a[s - 1]];
        if (s == t) return;
        for (i64 way = of.start[s]; way < of.start[s + 1]; way++)
            if (of.lets_go[way]) {
                const i64 forward = of.a[s - 1] + of.delta[t] + of.forward[way];
                run(best, s, t, way, std::max({forward, of.backward[way], of.keep[way]}));
            }
    }

    const Segments& segments_;
    const Grid<double> excess_, loose_;
    const Array<i64> inner_;  // memory of the F_0 after s, beyond a^{s-1}
    const Owned<double> nothing_;
};

inline void fill_segments(i64 left, i64 right, Grid<double> excess, Grid<double> loose, Array<i64> inner,
                          const Segments& segments) {
    const i64 stages = segments.stages();
    require(0 < left && left <= right && right <= stages + 1, "columns that there are not");
    require(excess.rows == stages * (stages + 1) / 2 && (loose.rows == excess.rows || loose.rows == 0) &&
                loose.columns == excess.columns && inner.size == stages + 1,
            "tables that are not as large as the chain's");
    require(loose.rows || std::all_of(segments.holds.begin(), segments.holds.end(), [](bool one) { return one; }),
            "a way that needs the second table");
    SegmentTables(segments, excess, loose, inner).fill(left, right);
}

// What the program of floating.py knows of a chain.
struct Floating {
    Floats forward, walked;
    Ints a, abar, delta, o_f, backward_memory;

    auto fields() { return std::tie(forward, walked, a, abar, delta, o_f, backward_memory); }

    void check() const {
        require(a.size > 0 && all_as_long(a.size, forward, walked, abar, delta, o_f, backward_memory),
                "stages with something missing");
        require_sizes(a, delta);
        for (i64 s = 1; s < a.size; s++)
            require(a[s - 1] + abar[s] >= a[s] && a[s] + o_f[s] >= 0, "a stage that holds less than nothing");
    }
};

class FloatingTable {
  public:
    FloatingTable(const Floating& chain, Grid<double> excess) : chain_(chain), excess_(excess) {}

    void fill(i64 last) const {
        for (i64 t = last; t > 0; t--)
            for (i64 s = t; s > 0; s--) {
                if (s == t)
                    run_all(s, last);
                else
                    give_up(s, t, last);
                for (i64 then = t + 1; then <= last; then++) keep_input(s, t, then, last);
            }
    }

  private:
    Array<double> row(i64 s, i64 t, i64 last) const {
        return excess_[(last - 1) * last * (last + 1) / 6 + (t - 1) * t / 2 + s - 1];
    }

    // F_all^s, then the later stages, then B^s.
    void run_all(i64 s, i64 last) const {
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
    i64 walk_needs(i64 s, i64 last) const {
        return chain_.a[s - 1] + chain_.a[s] + chain_.o_f[s] + chain_.delta[last];
    }

    // F_0^s: the input is given up.
    void give_up(i64 s, i64 t, i64 last) const {
        const Array<double> best = row(s, t, last), after = row(s + 1, t, last);
        for (i64 m = walk_needs(s, last); m < best.size; m++) best[m] = chain_.forward[s] + after[m];
    }

    // F_ck^s: the stages s..then-1 run to reach a^{then-1}, and s..t-1 run again for what is left.
    void keep_input(i64 s, i64 t, i64 then, i64 last) const {
        const Floats walked = chain_.walked;
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

inline void fill_floating(i64 last, Grid<double> excess, const Floating& chain) {
    require(0 < last && last < chain.a.size, "a last stage that there is not");
    require(excess.rows > (last - 1) * last * (last + 1) / 6 + (last - 1) * last / 2 + last - 1,
            "a table that is not as large as the chain's");
    FloatingTable(chain, excess).fill(last);
}

}  // namespace remat::chains
