// Offsets within a given height, or the proof that there are none: the search of canonical.py.
#pragma once

#include <numeric>
#include <tuple>

#include "solvers/native/array.hpp"

namespace remat::placement {

constexpr i64 FITS = 1, IMPOSSIBLE = 0, UNKNOWN = -1;

// Lifetimes by section: `first` is the first that each is in, `last` the one after its last. Above each so much is taken
// already: its `rise`.
struct Sections {
    Ints size, first, last;
    Ints held;  // by section: the sum of the sizes
    Ints rise;

    template <class Visit>
    void fields(Visit visit) {
        visit(size), visit(first), visit(last), visit(held), visit(rise);
    }

    bool meet(i64 one, i64 other) const { return first[one] < last[other] && last[one] > first[other]; }
};

class CanonicalSearch {
  public:
    CanonicalSearch(const Sections& items, Ints rank, i64 height, Ints offset)
        : of_(items), rank_(rank), height_(height), offset_(offset), count_(items.size.size),
          items_(count_), lowest_(count_, 0), waiting_(count_, true), left_(items.held), placed_(count_),
          scratch_(count_), cover_(items.held.size + 1), tally_(items.held.size + 1), twin_(count_, -1),
          by_lowest_(count_), changed_(8 * count_), parts_(2 * count_ + 2), frames_(count_ + 1) {
        std::iota(items_.begin(), items_.end(), 0);
        parts_[0] = {0, count_, 0, items.held.size, -1, -1, -1};
        find_twins();
    }

    // How it ended, and the work: the items looked at. It gives up after `most`, or when `halt` says so.
    std::tuple<i64, i64> run(i64 most, Halt halt) {
        i64 work = 0, depth = -1, pending = 0;
        while (pending >= 0) {
            work += parts_[pending].high - parts_[pending].low;
            if (work > most || halt) return {UNKNOWN, work};
            depth += 1;
            frames_[depth] = opened(pending);
            i64 chosen;
            while ((chosen = next(frames_[depth])) < 0) {
                depth = parts_[frames_[depth].part].parent;
                if (depth < 0) return {IMPOSSIBLE, work};
                undo(frames_[depth]);
            }
            pending = place(chosen, depth);
        }
        return {FITS, work};
    }

  private:
    // A range of items and one of sections that are placed by themselves.
    struct Part {
        i64 low, high, begin, end;
        i64 key;     // the key last placed
        i64 parent;  // the frame that did, or -1
        i64 after;   // the part to do afterwards, or -1
    };

    // What is tried in a part, and marks of what stood when it was opened.
    struct Frame {
        i64 part;
        i64 tried;  // the key last tried
        i64 limit;  // from here on there is nothing to try
        i64 placed, changes, parts;
    };

    struct Change {
        i64 item, lowest;
    };

    Ints items_of(const Part& part) const { return items_.slice(part.low, part.high); }

    Frame opened(i64 pending) {
        const i64 key = parts_[pending].key;
        const i64 limit = limit_of(parts_[pending], std::max(key, i64(0)) / count_);
        return {pending, key, limit, placed_count_, change_count_, part_count_};
    }

    // For each lifetime its equal that comes right before it in rank, and so is placed before it; or -1.
    void find_twins() {
        Owned<i64> order(count_);
        for (i64 item = 0; item < count_; item++) order[rank_[item]] = item;
        for (i64 place = 1; place < count_; place++) {
            const i64 item = order[place], other = order[place - 1];
            if (of_.size[item] == of_.size[other] && of_.first[item] == of_.first[other] &&
                of_.last[item] == of_.last[other] && of_.rise[item] == of_.rise[other])
                twin_[item] = other;
        }
    }

    // Nothing need be tried at this place or above; 0 where the part does not fit. `last` was the last place.
    i64 limit_of(const Part& part, i64 last) {
        const Ints items = items_of(part);
        i64 limit = height_;
        for (i64 item : items) {
            if (std::max(lowest_[item], last) + of_.size[item] > height_ - of_.rise[item]) return 0;
            limit = std::min(limit, lowest_[item] + of_.size[item]);
        }
        const Ints ahead = cover_;  // for each section: itself, or a later one if it has its floor
        for (i64 section = part.begin; section <= part.end; section++) ahead[section] = section;
        const Ints sorted = by_lowest_.slice(0, items.size);
        std::copy(items.begin(), items.end(), sorted.begin());
        std::sort(sorted.begin(), sorted.end(), [&](i64 one, i64 other) { return lowest_[one] < lowest_[other]; });
        for (i64 item : sorted) {
            const i64 floor = std::max(lowest_[item], last);
            i64 section = root(ahead, of_.first[item]);
            while (section < of_.last[item]) {
                if (floor + left_[section] > height_) return 0;
                ahead[section] = section + 1;
                section = root(ahead, section);
            }
        }
        return limit;
    }

    static i64 root(Ints ahead, i64 section) {
        while (ahead[section] != section) {
            ahead[section] = ahead[ahead[section]];
            section = ahead[section];
        }
        return section;
    }

    // What to place next, the lowest and then the first in rank; -1 if all was tried. Its key is `tried` then.
    i64 next(Frame& frame) const {
        i64 chosen = -1, least = 0;
        for (i64 item : items_of(parts_[frame.part])) {
            if (lowest_[item] >= frame.limit) continue;
            const i64 key = lowest_[item] * count_ + rank_[item];
            if (key <= frame.tried || (chosen >= 0 && key >= least)) continue;
            if (twin_[item] >= 0 && waiting_[twin_[item]]) continue;
            chosen = item;
            least = key;
        }
        if (chosen >= 0) frame.tried = least;
        return chosen;
    }

    // Place the chosen item. Returns the part to do next, or -1.
    i64 place(i64 chosen, i64 depth) {
        const i64 key = frames_[depth].tried, first = part_count_;
        const Part now = parts_[frames_[depth].part];
        offset_[chosen] = key / count_;
        placed_[placed_count_++] = chosen;
        raise_others(now, chosen);
        const i64 made = split(now), end = first + made;
        for (i64 one = first; one < end; one++) {
            parts_[one].key = key;
            parts_[one].parent = depth;
            parts_[one].after = one + 1 < end ? one + 1 : now.after;
        }
        part_count_ = end;
        return made ? first : now.after;
    }

    // Put the chosen item at the head of its range and raise those that it meets; what they were is written down.
    void raise_others(const Part& part, i64 chosen) {
        waiting_[chosen] = false;
        for (i64& left : left_.slice(of_.first[chosen], of_.last[chosen])) left -= of_.size[chosen];
        if (change_count_ + count_ > changed_.size) make_room_for_changes();
        const i64 top = lowest_[chosen] + of_.size[chosen];
        for (i64 place = part.low; place < part.high; place++) {
            const i64 item = items_[place];
            if (item == chosen) {
                items_[place] = items_[part.low];
                items_[part.low] = chosen;
            } else if (of_.meet(item, chosen) && lowest_[item] < top) {
                changed_[change_count_++] = {item, lowest_[item]};
                lowest_[item] = top;
            }
        }
    }

    void make_room_for_changes() {
        Owned<Change> larger(2 * changed_.size);
        std::copy(changed_.begin(), changed_.begin() + change_count_, larger.begin());
        changed_ = std::move(larger);
    }

    // Back to what stood when the frame was opened.
    void undo(const Frame& frame) {
        while (placed_count_ > frame.placed) {
            const i64 item = placed_[--placed_count_];
            waiting_[item] = true;
            for (i64& left : left_.slice(of_.first[item], of_.last[item])) left += of_.size[item];
        }
        while (change_count_ > frame.changes) {
            const Change& change = changed_[--change_count_];
            lowest_[change.item] = change.lowest;
        }
        part_count_ = frame.parts;
    }

    // Group what is left of a part into those that do not meet in time. Returns how many parts that makes.
    i64 split(const Part& now) {
        const Ints rest = items_.slice(now.low + 1, now.high);
        const i64 groups = find_groups(now, rest);
        std::fill(tally_.begin(), tally_.begin() + groups, 0);
        for (i64 item : rest) tally_[group_of(item)] += 1;
        i64 made = 0, place = now.low + 1;
        for (i64 group = 0; group < groups; group++) {
            const i64 size = tally_[group];
            if (!size) continue;
            parts_[part_count_ + made] = {place, place, now.end, now.begin, 0, 0, 0};
            tally_[group] = part_count_ + made;
            made += 1;
            place += size;
        }
        std::copy(rest.begin(), rest.end(), scratch_.begin());
        for (i64 item : scratch_.slice(0, rest.size)) {
            Part& one = parts_[tally_[group_of(item)]];
            items_[one.high++] = item;
            one.begin = std::min(one.begin, of_.first[item]);
            one.end = std::max(one.end, of_.last[item]);
        }
        return made;
    }

    // Number the groups of sections between which no item reaches. Returns how many there are.
    i64 find_groups(const Part& now, Ints rest) {
        std::fill(cover_.begin() + now.begin, cover_.begin() + now.end + 1, 0);
        for (i64 item : rest) {
            cover_[of_.first[item] + 1] += 1;
            cover_[of_.last[item]] -= 1;
        }
        i64 groups = 0, across = 0;
        for (i64 section = now.begin; section < now.end; section++) {
            across += cover_[section];  // how many reach over from the section before
            if (across == 0) groups += 1;
            cover_[section] = groups - 1;
        }
        return groups;
    }

    i64 group_of(i64 item) const { return cover_[of_.first[item]]; }

    const Sections& of_;
    const Ints rank_;
    const i64 height_;
    const Ints offset_;
    const i64 count_;
    Owned<i64> items_;      // a permutation; each part has a range of it
    Owned<i64> lowest_;     // the top of what was placed below an item, in its time
    Owned<bool> waiting_;
    Owned<i64> left_;       // by section: the sum of the sizes that wait
    Owned<i64> placed_;     // in order
    Owned<i64> scratch_, cover_, tally_;  // these hold nothing for long
    Owned<i64> twin_;
    Owned<i64> by_lowest_;
    Owned<Change> changed_;
    Owned<Part> parts_;
    Owned<Frame> frames_;
    i64 placed_count_ = 0, change_count_ = 0, part_count_ = 1;
};

inline std::tuple<i64, i64> search_canonical(const Sections& items, Ints rank, i64 height, i64 most, Ints offset,
                                             Halt halt) {
    return CanonicalSearch(items, rank, height, offset).run(most, halt);
}

}  // namespace remat::placement
