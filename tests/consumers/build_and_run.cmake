# Configures, builds and runs the consumer project SOURCE against the installed package or the source tree.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}\nexit code ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${BUILD})
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -DCMAKE_PREFIX_PATH=${PREFIX} -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_C_FLAGS=${FLAGS} -DGPUMEM_SOURCE=${GPUMEM}
    -DGPUMEM_UNITY_BUILD=ON -DGPUMEM_WARNINGS=OFF)
run(${CMAKE_COMMAND} --build ${BUILD})
run(${BUILD}/consumer ${SUMMARY})
if(NOT output MATCHES "25557032 parameters")
  message(FATAL_ERROR "the consumer printed\n${output}")
endif()
