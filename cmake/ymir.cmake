# ymir_library(NAME [DEPENDS folder...] [LINK library...] [TEST_LINK library...])
#
# Makes a static library of this folder's sources (sub-folders included) and, from its *_test.cc,
# one GoogleTest program ymir_NAME_test. DEPENDS names other folders of ymir/; what may stand there
# is checked by scripts/check_layers.py.
function(ymir_library NAME)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK;TEST_LINK;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cc)
  foreach(pattern IN LISTS ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${pattern}")
  endforeach()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  list(TRANSFORM ARG_DEPENDS PREPEND ymir_ OUTPUT_VARIABLE depends)
  if(sources)
    add_library(ymir_${NAME} STATIC ${sources})
    target_link_libraries(ymir_${NAME} PUBLIC ymir_options ${depends} ${ARG_LINK})
  else()
    add_library(ymir_${NAME} INTERFACE)
    target_link_libraries(ymir_${NAME} INTERFACE ymir_options ${depends} ${ARG_LINK})
  endif()
  if(tests AND YMIR_TESTS)
    ymir_test(ymir_${NAME}_test SOURCES ${tests} LINK ymir_${NAME} ${ARG_TEST_LINK})
  endif()
endfunction()

# ymir_test(NAME SOURCES file... LINK library...): a GoogleTest program in bin/tests.
function(ymir_test NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest GTest::gtest_main
                                        rapidcheck)
  target_compile_definitions(${NAME} PRIVATE YMIR_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/tests)
  add_test(NAME ${NAME} COMMAND ${NAME})
endfunction()
