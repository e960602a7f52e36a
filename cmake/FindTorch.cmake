# Torch::cpu (and with YMIR_CUDA what a GPU needs) from the unpacked PyTorch wheel (scripts/bootstrap puts it into the cache).
# find_package(Torch) of the wheel itself demands a CUDA toolkit, so the targets are made here.
set(_ymir_cache "$ENV{YMIR_CACHE}")
if(NOT _ymir_cache)
  if(DEFINED ENV{XDG_CACHE_HOME})
    set(_ymir_cache "$ENV{XDG_CACHE_HOME}/ymir")
  else()
    set(_ymir_cache "$ENV{HOME}/.cache/ymir")
  endif()
endif()
set(YMIR_TORCH_VERSION 2.15.0)
set(YMIR_LIBTORCH "${_ymir_cache}/libtorch-${YMIR_TORCH_VERSION}" CACHE PATH "unpacked torch wheel")
if(NOT EXISTS "${YMIR_LIBTORCH}/torch/lib/libtorch_cpu.so")
  message(FATAL_ERROR "libtorch ${YMIR_TORCH_VERSION} is not in ${YMIR_LIBTORCH}; run "
                      "scripts/bootstrap, or configure with -DYMIR_TORCH=OFF")
endif()
set(_lib "${YMIR_LIBTORCH}/torch/lib")
if(YMIR_CUDA AND NOT EXISTS "${_lib}/libtorch_cuda.so")
  message(FATAL_ERROR "YMIR_CUDA: no libtorch_cuda.so in ${_lib}. Point -DYMIR_LIBTORCH=DIR at a "
                      "site-packages folder where 'pip install torch==${YMIR_TORCH_VERSION}' put the "
                      "wheel and its NVIDIA libraries")
endif()
file(GLOB _nvidia_lib "${YMIR_LIBTORCH}/nvidia/*/lib")
list(JOIN _nvidia_lib ":" _nvidia_lib)
# The wheel's include folder also holds other libraries' headers (fmt among them), which would hide
# the system's: only torch's own are shown.
set(_include "${CMAKE_BINARY_DIR}/torch_include")
file(MAKE_DIRECTORY "${_include}")
foreach(_folder ATen c10 caffe2 torch)
  file(CREATE_LINK "${YMIR_LIBTORCH}/torch/include/${_folder}" "${_include}/${_folder}" SYMBOLIC)
endforeach()
add_library(Torch::c10 SHARED IMPORTED GLOBAL)
set_target_properties(Torch::c10 PROPERTIES IMPORTED_LOCATION "${_lib}/libc10.so")
# at::parallel_for is a header: compiled without OpenMP it is a plain loop. The wheel brings its own
# run-time, and a process must have one thread pool only, so that one is linked.
add_library(Torch::cpu SHARED IMPORTED GLOBAL)
set_target_properties(Torch::cpu PROPERTIES
  IMPORTED_LOCATION "${_lib}/libtorch_cpu.so"
  INTERFACE_INCLUDE_DIRECTORIES
    "${_include};${_include}/torch/csrc/api/include"
  INTERFACE_COMPILE_OPTIONS -fopenmp
  INTERFACE_LINK_LIBRARIES "Torch::c10;${_lib}/libgomp.so.1"
  INTERFACE_LINK_OPTIONS
    "-Wl,-rpath,${_lib};-Wl,-rpath,${_nvidia_lib};-Wl,-rpath-link,${_lib};-Wl,-rpath-link,${_nvidia_lib}")
# The wheel's CUDA libraries. No toolkit: nothing here is compiled for the device, and the operations
# are reached through libtorch's dispatcher, which finds them once the library is loaded. Nothing
# refers to it by symbol, so the linker must be told to keep it.
if(YMIR_CUDA)
  set_property(TARGET Torch::cpu APPEND PROPERTY INTERFACE_LINK_OPTIONS
    "-Wl,--no-as-needed,${_lib}/libtorch_cuda.so,${_lib}/libc10_cuda.so,--as-needed")
endif()
set(Torch_FOUND TRUE)
