# Installs the component `python` of BUILD to PREFIX, and imports it only from there with PYTHON.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --component python --prefix ${PREFIX} COMMAND_ERROR_IS_FATAL
                ANY OUTPUT_QUIET)
file(GLOB_RECURSE files RELATIVE ${PREFIX}/${PACKAGES}/gpumem ${PREFIX}/*)
list(REMOVE_ITEM files libgpumem_c.so)
set(sources ${CMAKE_CURRENT_LIST_DIR}/../..)
file(GLOB exporter RELATIVE ${sources}/examples/pytorch ${sources}/examples/pytorch/graph_exporter/*.py)
file(GLOB recorder RELATIVE ${sources}/src/python/gpumem ${sources}/src/python/gpumem/record/*.py)
set(expected __init__.py __main__.py _advise.py _answers.py _api.py _arguments.py _errors.py _gpumem.py _machine.py _plan.py _posttrain.py _serve.py export_graph.py py.typed ${exporter} ${recorder})
list(SORT files)
list(SORT expected)
if(NOT files STREQUAL expected)
  message(FATAL_ERROR "in addition to the library were installed: ${files}")
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${PREFIX}/${PACKAGES} ${PYTHON} -B -c
          "import sys, gpumem; print(gpumem.__file__, gpumem.estimate(sys.argv[1], batch_size=32).fits)" ${SUMMARY}
  OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed STREQUAL "${PREFIX}/${PACKAGES}/gpumem/__init__.py True\n")
  message(FATAL_ERROR "printed: ${printed}")
endif()
