// Offsets within a given height, or the proof that there are none: the search of canonical.py.
#pragma once

#include <tuple>

#include "solvers/placement/lives.hpp"

namespace remat::placement {

constexpr i64 FITS = 1, IMPOSSIBLE = 0, UNKNOWN = -1;

class CanonicalSearch {
  public:
    CanonicalSearch(const Sections& items, Sizes rank, i64 height, Array<i64, Item> offset)
        : of_(items), rank_(rank), height_(height), offset_(offset), count_(items.count()), items_(count_),
          lowest_(count_, 0), waiting_(count_, true), left_(items.held), scratch_(count_),
          ahead_(items.held.size + 1), cover_(items.held.size + 1), tally_(items.held.size + 1), twin_(count_, NONE),
          by_lowest_(count_), parts_(2 * count_ + 2), frames_(count_ + 1) {
        for (Item item : rank.places()) items_[i64(item)] = item;
        parts_[0] = {0, count_, Section(0), Section(items.held.size), -1, -1, -1};
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
            Item chosen;
            while (!exists(chosen = next(frames_[depth]))) {
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
        i64 low, high;
        Section begin, end;
        i64 key;     // the key last placed
        i64 parent;  // the frame that did, or -1
        i64 after;   // the part to do afterwards, or -1
    };

    // What is tried in a part, and marks of what stood when it was opened.
    struct Frame {
        i64 part;
        i64 tried;  // the key last tried
        i64 limit;  // from here on there is nothing to try
        std::size_t placed, changes;
        i64 parts;
    };

    struct Change {
        Item item;
        i64 lowest;
    };

    Array<Item> items_of(const Part& part) const { return items_.slice(part.low, part.high); }

    Frame opened(i64 pending) {
        const i64 key = parts_[pending].key;
        const i64 limit = limit_of(parts_[pending], std::max(key, i64(0)) / count_);
        return {pending, key, limit, placed_.size(), changed_.size(), part_count_};
    }

    // For each lifetime its equal that comes right before it in rank, and so is placed before it.
    void find_twins() {
        Owned<Item> order(count_);
        for (Item item : rank_.places()) order[rank_[item]] = item;
        for (i64 place = 1; place < count_; place++) {
            const Item item = order[place], other = order[place - 1];
            if (of_.size[item] == of_.size[other] && of_.first[item] == of_.first[other] &&
                of_.last[item] == of_.last[other])
                twin_[item] = other;
        }
    }

    // Nothing need be tried at this place or above; 0 where the part does not fit. `last` was the last place.
    i64 limit_of(const Part& part, i64 last) {
        const Array<Item> items = items_of(part);
        i64 limit = height_;
        for (Item item : items) {
            if (std::max(lowest_[item], last) + of_.size[item] > height_) return 0;
            limit = std::min(limit, lowest_[item] + of_.size[item]);
        }
        for (Section section : Range<Section>(part.begin, part.end + 1)) ahead_[section] = section;
        const Array<Item> sorted = by_lowest_.first(items.size);
        std::copy(items.begin(), items.end(), sorted.begin());
        std::sort(sorted.begin(), sorted.end(), [&](Item one, Item other) { return lowest_[one] < lowest_[other]; });
        for (Item item : sorted) {
            const i64 floor = std::max(lowest_[item], last);
            Section section = root(of_.first[item]);
            while (section < of_.last[item]) {
                if (floor + left_[section] > height_) return 0;
                ahead_[section] = section + 1;
                section = root(section);
            }
        }
        return limit;
    }

    Section root(Section section) const {
        while (ahead_[section] != section) {
            ahead_[section] = ahead_[ahead_[section]];
            section = ahead_[section];
        }
        return section;
    }

    // What to place next, the lowest and then the first in rank; nothing if all was tried. Its key is `tried` then.
    Item next(Frame& frame) const {
        Item chosen = NONE;
        i64 least = 0;
        for (Item item : items_of(parts_[frame.part])) {
            if (lowest_[item] >= frame.limit) continue;
            const i64 key = lowest_[item] * count_ + rank_[item];
            if (key <= frame.tried || (exists(chosen) && key >= least)) continue;
            if (exists(twin_[item]) && waiting_[twin_[item]]) continue;
            chosen = item;
            least = key;
        }
        if (exists(chosen)) frame.tried = least;
        return chosen;
    }

    // Place the chosen item. Returns the part to do next, or -1.
    i64 place(Item chosen, i64 depth) {
        const i64 key = frames_[depth].tried, first = part_count_;
        const Part now = parts_[frames_[depth].part];
        offset_[chosen] = key / count_;
        placed_.push_back(chosen);
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
    void raise_others(const Part& part, Item chosen) {
        waiting_[chosen] = false;
        for (i64& left : left_.slice(of_.first[chosen], of_.last[chosen])) left -= of_.size[chosen];
        const i64 top = lowest_[chosen] + of_.size[chosen];
        for (i64 place = part.low; place < part.high; place++) {
            const Item item = items_[place];
            if (item == chosen) {
                items_[place] = items_[part.low];
                items_[part.low] = chosen;
            } else if (of_.meet(item, chosen) && lowest_[item] < top) {
                changed_.push_back({item, lowest_[item]});
                lowest_[item] = top;
            }
        }
    }

    // Back to what stood when the frame was opened.
    void undo(const Frame& frame) {
        for (; placed_.size() > frame.placed; placed_.pop_back()) {
            const Item item = placed_.back();
            waiting_[item] = true;
            for (i64& left : left_.slice(of_.first[item], of_.last[item])) left += of_.size[item];
        }
        for (; changed_.size() > frame.changes; changed_.pop_back())
            lowest_[changed_.back().item] = changed_.back().lowest;
        part_count_ = frame.parts;
    }

    // Group what is left of a part into those that do not meet in time. Returns how many parts that makes.
    i64 split(const Part& now) {
        const Array<Item> rest = items_.slice(now.low + 1, now.high);
        const i64 groups = find_groups(now, rest);
        tally_.first(groups).fill(0);
        for (Item item : rest) tally_[group_of(item)] += 1;
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
        for (Item item : scratch_.first(rest.size)) {
            Part& one = parts_[tally_[group_of(item)]];
            items_[one.high++] = item;
            one.begin = std::min(one.begin, of_.first[item]);
            one.end = std::max(one.end, of_.last[item]);
        }
        return made;
    }

    // Number the groups of sections between which no item reaches. Returns how many there are.
    i64 find_groups(const Part& now, Array<Item> rest) {
        cover_.slice(now.begin, now.end + 1).fill(0);
        for (Item item : rest) {
            cover_[of_.first[item] + 1] += 1;
            cover_[of_.last[item]] -= 1;
        }
        i64 groups = 0, across = 0;
        for (Section section : Range<Section>(now.begin, now.end)) {
            across += cover_[section];  // how many reach over from the section before
            if (across == 0) groups += 1;
            cover_[section] = groups - 1;
        }
        return groups;
    }

    i64 group_of(Item item) const { return cover_[of_.first[item]]; }

    const Sections& of_;
    const Sizes rank_;
    const i64 height_;
    const Array<i64, Item> offset_;
    const i64 count_;
    Owned<Item> items_;         // a permutation; each part has a range of it
    Owned<i64, Item> lowest_;   // the top of what was placed below an item, in its time
    Owned<bool, Item> waiting_;
    Owned<i64, Section> left_;  // the sum of the sizes that wait
    std::vector<Item> placed_;  // in order
    Owned<Item> scratch_;       // this and the next three hold nothing for long
    Owned<Section, Section> ahead_;  // itself, or a later one if it has its floor
    Owned<i64, Section> cover_;
    Owned<i64> tally_;
    Owned<Item, Item> twin_;
    Owned<Item> by_lowest_;
    std::vector<Change> changed_;
    Owned<Part> parts_;
    Owned<Frame> frames_;
    i64 part_count_ = 1;
};

inline std::tuple<i64, i64> search_canonical(const Sections& items, Sizes rank, i64 height, i64 most,
                                             Array<i64, Item> offset, Halt halt) {
    require(all_as_long(items.count(), rank, offset), "a rank and an offset for each lifetime");
    Owned<bool> taken(rank.size, false);
    for (i64 one : rank)
        require(one >= 0 && one < rank.size && !std::exchange(taken[one], true), "ranks that do not count all lifetimes");
    return CanonicalSearch(items, rank, height, offset).run(most, halt);
}

}  // namespace remat::placement
