// The Python module `solvers._loops`: the loops that Python may call. Their types stand in `solvers/_loops.pyi`.
#include "solvers/native/bind.hpp"

#include "solvers/annealing/anneal.hpp"
#include "solvers/methods/chains/programs.hpp"
#include "solvers/methods/mincut/flow.hpp"
#include "solvers/native/late.hpp"
#include "solvers/native/trials.hpp"
#include "solvers/orders/measure.hpp"
#include "solvers/orders/traces.hpp"
#include "solvers/orders/walk.hpp"
#include "solvers/pebbles/reach.hpp"
#include "solvers/placement/arranging.hpp"
#include "solvers/placement/canonical.hpp"
#include "solvers/placement/ejecting.hpp"
#include "solvers/placement/greedy.hpp"
#include "solvers/placement/reusing.hpp"
#include "solvers/placement/skyline.hpp"

namespace remat {
namespace {

using python::loop;

PyMethodDef LOOPS[] = {
    loop<orders::memory_of>("memory_of"),
    loop<orders::blocks_taken>("blocks_taken"),
    loop<orders::trim>("trim"),
    loop<orders::follow_traces>("follow_traces"),
    loop<orders::walk_through>("walk_through"),
    loop<pebbles::reach>("reach"),
    loop<annealing::anneal>("anneal_orders"),
    loop<chains::fill_segments>("fill_segments"),
    loop<chains::fill_floating>("fill_floating"),
    loop<mincut::minimum_cut>("minimum_cut"),
    loop<placement::place_in_order>("place_in_order"),
    loop<placement::place_from_bottom>("place_from_bottom"),
    loop<placement::search_canonical>("search_canonical"),
    loop<placement::place_by_ejection>("place_by_ejection"),
    loop<placement::take_buffers>("take_buffers"),
    loop<placement::above>("above"),
    loop<placement::held_later>("held_later"),
    loop<placement::arrange>("arrange"),
    loop<trials::drawn>("drawn"),
    loop<trials::annealed>("annealed"),
    loop<late::wait_when_late>("wait_when_late"),
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, reinterpret_cast<void*>(python::prepare)}, {0, nullptr}};
PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_loops", "The compiled loops.", 0, LOOPS, SLOTS,
                      nullptr, nullptr, nullptr};

}  // namespace
}  // namespace remat

PyMODINIT_FUNC PyInit__loops() { return PyModuleDef_Init(&remat::MODULE); }
