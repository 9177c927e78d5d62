// Arrays as the loops see them: a pointer and a length. The memory is numpy's or the loop's own. `make sanitize` checks
// every place that is read or written; other builds check none.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace remat {

using i64 = std::int64_t;
constexpr double INFINITY_ = std::numeric_limits<double>::infinity();

// A view of items that lie side by side. As with a pointer, a constant view does not make its items constant.
template <class T>
struct Array {
    T* data = nullptr;
    i64 size = 0;

    T& operator[](i64 place) const {
        assert(place >= 0 && place < size);
        return data[place];
    }
    T* begin() const { return data; }
    T* end() const { return data + size; }
    T& last() const { return (*this)[size - 1]; }

    // The items from `first` up to, not including, `end`.
    Array slice(i64 first, i64 end) const {
        assert(first >= 0 && first <= end && end <= size);
        return {data + first, end - first};
    }
};

using Ints = Array<i64>;
using Floats = Array<double>;
using Flags = Array<bool>;

// Rows of equal length.
template <class T>
struct Grid {
    T* data = nullptr;
    i64 rows = 0, columns = 0;

    Array<T> operator[](i64 row) const {
        assert(row >= 0 && row < rows);
        return {data + row * columns, columns};
    }
};

// An array that owns its memory. A returned one becomes a numpy array.
template <class T>
struct Owned : Array<T> {
    std::unique_ptr<T[]> memory;

    Owned() = default;
    // The items are left as they are in memory.
    explicit Owned(i64 size) : memory(new T[static_cast<std::size_t>(size)]) {
        this->data = memory.get();
        this->size = size;
    }
    Owned(i64 size, T fill) : Owned(size) { std::fill(this->begin(), this->end(), fill); }
    explicit Owned(Array<T> from) : Owned(from.size) { std::copy(from.begin(), from.end(), this->begin()); }
    Owned(const Owned& other) : Owned(static_cast<const Array<T>&>(other)) {}
    Owned(Owned&& other) noexcept : Array<T>(other), memory(std::move(other.memory)) {}
    Owned& operator=(Owned&& other) noexcept {
        static_cast<Array<T>&>(*this) = other;
        memory = std::move(other.memory);
        return *this;
    }

    // The same memory, of which only the first items count.
    Owned shortened(i64 length) && {
        this->size = length;
        return std::move(*this);
    }
};

// A flag of Python's that another thread sets when time is up, read anew each time. Without a flag nobody ever sets it.
struct Halt {
    const volatile i64* flag = nullptr;

    explicit operator bool() const { return flag && *flag != 0; }
};

}  // namespace remat
