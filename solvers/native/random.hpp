// The Mersenne Twister with the algorithms of numpy's legacy generator: a seed gives the same draws on every machine. What
// a search makes of them is the same wherever the C library rounds exp and pow alike.
//
// `Random random(seed)` draws what numpy.random.RandomState(seed) does: `uniform` is its random_sample, `below` its
// randint for bounds up to 2**32 (held by tests/solvers/test_native.py).
#pragma once

#include <random>

#include "solvers/native/array.hpp"

namespace remat {

class Random {
  public:
    explicit Random(i64 seed) : next_(static_cast<std::uint32_t>(seed)) {}

    // A number from 0 up to, not including, 1.
    double uniform() {
        const std::uint32_t high = next_() >> 5, low = next_() >> 6;
        return (high * 67108864.0 + low) / 9007199254740992.0;
    }

    // An integer from 0 up to, not including, `bound`. Nothing is drawn where there is no choice.
    i64 below(i64 bound) {
        if (bound <= 1) return 0;
        std::uint32_t mask = static_cast<std::uint32_t>(bound - 1);
        for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
        while (true) {
            const i64 drawn = next_() & mask;
            if (drawn < bound) return drawn;
        }
    }

  private:
    // std::mt19937, with words of 32 bits on every machine
    std::mersenne_twister_engine<std::uint32_t, 32, 624, 397, 31, 0x9908b0dfU, 11, 0xffffffffU, 7, 0x9d2c5680U, 15,
                                 0xefc60000U, 18, 1812433253U>
        next_;
};

}  // namespace remat
